//! What handlers bring along: the caller, the address, the operator, a JSON body.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use aiseki_lobby::SessionId;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Body as _;
use serde::de::DeserializeOwned;
use subtle::ConstantTimeEq as _;

use super::Services;
use super::client::{self, Peer};
use super::error::{Code, Problem};
use crate::sessions::{BadToken, VerifiedToken};

/// The largest body that any call takes.
pub(super) const BODY_LIMIT: usize = 16 * 1024;
/// A body that takes longer to arrive is not waited for.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The name of the cookie that carries the token.
pub(super) const COOKIE: &str = "aiseki_session";
/// A WebSocket subprotocol that carries the token, for pages that can set no header.
pub(super) const TOKEN_SUBPROTOCOL: &str = "aiseki.token.";

/// Whoever is asking, with a valid token or without one. Handlers ask when it is its turn among the
/// checks.
pub(super) struct Caller(Result<VerifiedToken, BadToken>);

impl Caller {
    /// The session, or 401.
    pub(super) fn session(&self) -> Result<SessionId, Problem> {
        self.token().map(|token| token.session).ok_or_else(|| Problem::new(Code::Unauthenticated))
    }

    pub(super) fn token(&self) -> Option<&VerifiedToken> {
        self.0.as_ref().ok()
    }
}

impl FromRequestParts<Arc<Services>> for Caller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        services: &Arc<Services>,
    ) -> Result<Self, Self::Rejection> {
        let now = services.matching.now();
        let verify = |token: &str| services.sessions.verify(token, now);
        // Who says who they are is taken at their word, and not for whom the browser holds a cookie.
        let verified = if parts.headers.contains_key(header::AUTHORIZATION) {
            bearer(&parts.headers).ok_or(BadToken).and_then(verify)
        } else if let Some(token) = subprotocol_token(&parts.headers) {
            verify(token)
        } else {
            cookies(&parts.headers).map(verify).find(Result::is_ok).unwrap_or(Err(BadToken))
        };
        Ok(Self(verified))
    }
}

/// The token of an `Authorization: Bearer` header.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// The tokens that our cookie carries; a browser sends more than one when paths overlap.
pub(super) fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, _)| *name == COOKIE)
        .map(|(_, token)| token)
}

/// The subprotocols that a WebSocket offers.
pub(super) fn subprotocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(header::SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(str::trim)
}

fn subprotocol_token(headers: &HeaderMap) -> Option<&str> {
    subprotocols(headers).find_map(|protocol| protocol.strip_prefix(TOKEN_SUBPROTOCOL))
}

/// The client's address.
pub(super) struct Address(pub(super) IpAddr);

impl FromRequestParts<Arc<Services>> for Address {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        services: &Arc<Services>,
    ) -> Result<Self, Problem> {
        let Peer(peer) = peer(parts)?;
        let trusted = &services.outside.trusted_proxies;
        Ok(Self(client::client_address(peer.ip(), &parts.headers, trusted)))
    }
}

/// Whether the client's connection was encrypted.
pub(super) struct Https(pub(super) bool);

impl FromRequestParts<Arc<Services>> for Https {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        services: &Arc<Services>,
    ) -> Result<Self, Problem> {
        let Peer(peer) = peer(parts)?;
        let trusted = &services.outside.trusted_proxies;
        Ok(Self(client::is_https(peer.ip(), &parts.headers, trusted)))
    }
}

fn peer(parts: &Parts) -> Result<Peer, Problem> {
    parts.extensions.get::<Peer>().copied().ok_or_else(|| Problem::new(Code::Internal))
}

/// An operator. Without an admin token the routes of operators do not exist.
pub(super) struct Operator;

impl FromRequestParts<Arc<Services>> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        services: &Arc<Services>,
    ) -> Result<Self, Problem> {
        if services.outside.admin_token.is_none() {
            Err(Problem::new(Code::NotFound))
        } else if is_operator(&parts.headers, services) {
            Ok(Self)
        } else {
            Err(Problem::new(Code::Unauthenticated))
        }
    }
}

/// Whether the request carries the admin token.
pub(super) fn is_operator(headers: &HeaderMap, services: &Services) -> bool {
    let (Some(expected), Some(given)) = (&services.outside.admin_token, bearer(headers)) else {
        return false;
    };
    // In constant time, so that answers do not tell how much of a guess was right.
    expected.expose().as_bytes().ct_eq(given.as_bytes()).into()
}

/// The one name in the path. What cannot be decoded names nothing.
pub(super) struct Named(pub(super) String);

impl FromRequestParts<Arc<Services>> for Named {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        services: &Arc<Services>,
    ) -> Result<Self, Problem> {
        let name = Path::from_request_parts(parts, services).await;
        name.map(|Path(name)| Self(name)).map_err(|_| Problem::new(Code::NotFound))
    }
}

/// A body of JSON.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Services>> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Arc<Services>) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::new(Code::UnsupportedMediaType));
        }
        // What is announced to be too large is neither waited for nor asked for.
        if request.body().size_hint().lower() > BODY_LIMIT as u64 {
            return Err(Problem::new(Code::BodyTooLarge));
        }
        let body = Limited::new(request.into_body(), BODY_LIMIT).collect();
        let body = tokio::time::timeout(BODY_TIMEOUT, body)
            .await
            .map_err(|_| Problem::new(Code::RequestTimeout))?
            .map_err(|error| {
                let too_large = error.is::<http_body_util::LengthLimitError>();
                Problem::new(if too_large { Code::BodyTooLarge } else { Code::InvalidBody })
            })?;
        parse_object(&body.to_bytes()).map(Self)
    }
}

/// Reads a JSON object. The library would also take an array of the members in their order, which is
/// nobody's interface.
pub(super) fn parse_object<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let refused = |detail: String| Problem::new(Code::InvalidBody).with_detail(detail);
    // The library does not look into texts that nobody asks for, and they have to be UTF-8 too.
    let text = std::str::from_utf8(body).map_err(|_| refused("The body is not UTF-8.".into()))?;
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    let value = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        if error.is_data() {
            refused(format!(
                "The body lacks a member, or one has another type (column {column} of line {line})."
            ))
        } else {
            refused(format!("The body is not JSON (column {column} of line {line})."))
        }
    })?;
    match first {
        Some(b'{') => Ok(value),
        _ => Err(refused("The body is not a JSON object.".to_owned())),
    }
}

/// `application/json` or anything `+json`, with or without parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// The query, or 400.
pub(super) struct Queried<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Services>> for Queried<T> {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        services: &Arc<Services>,
    ) -> Result<Self, Problem> {
        let query = Query::from_request_parts(parts, services).await;
        query.map(|Query(query)| Self(query)).map_err(|_| Problem::new(Code::InvalidQuery))
    }
}
