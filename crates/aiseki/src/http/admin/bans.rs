//! Bans, for operators.

use std::net::IpAddr;

use aiseki_lobby::{Millis, SessionId};
use axum::extract::State;
use axum::http::StatusCode;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::number;
use crate::bans::{Ban, BanSubject, REASON_CHARACTERS};
use crate::http::error::{Code, Problem, to_the_end};
use crate::http::extract::{Json, Named, Operator};
use crate::http::state::timestamp;
use crate::http::{Services, Shared};

/// Bits of an IPv6 address before the IPv4 address that it maps.
const MAPPED_PREFIX: u8 = 96;

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct BanList {
    bans: Vec<BanBody>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct BanBody {
    id: i64,
    /// The id of a session, in hexadecimal.
    session: Option<String>,
    /// An address or a block of addresses.
    address: Option<String>,
    reason: String,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

impl From<Ban> for BanBody {
    fn from(ban: Ban) -> Self {
        let (session, address) = match ban.subject {
            BanSubject::Session(session) => (Some(session.to_string()), None),
            BanSubject::Network(network) => (None, Some(shown(network))),
        };
        Self {
            id: ban.id,
            session,
            address,
            reason: ban.reason,
            created_at: timestamp(ban.created_at),
            expires_at: ban.expires_at.map(timestamp),
        }
    }
}

#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewBan {
    /// The id of a session as lists show it, or a session's token. Either this or `address`.
    session: Option<String>,
    /// An address, or a block such as `192.0.2.0/24`. Either this or `session`.
    address: Option<String>,
    /// What to remember, at most 500 characters.
    #[schema(max_length = 500)]
    reason: Option<String>,
    /// Until when; for ever if it is left out.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// The bans in force
#[utoipa::path(
    get, path = "/admin/bans", tag = "operators", security(("admin" = [])),
    responses(
        (status = 200, description = "The bans in force, oldest first", body = BanList),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`: the server has no admin token", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::http) async fn list_bans(
    _: Operator,
    State(services): Shared,
) -> axum::Json<BanList> {
    let bans = services.bans.in_force(services.matching.now());
    axum::Json(BanList { bans: bans.into_iter().map(Into::into).collect() })
}

/// Ban somebody
///
/// By session or by address. A banned person who waits is taken out (`banned`).
#[utoipa::path(
    post, path = "/admin/bans", tag = "operators", security(("admin" = [])),
    request_body = NewBan,
    responses(
        (status = 201, description = "Banned", body = BanBody),
        (status = 400, description = "`invalid_body` or `invalid_ban`", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`: the server has no admin token", body = Problem, content_type = "application/problem+json"),
        (status = 408, description = "`request_timeout`", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "`body_too_large`", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "`unsupported_media_type`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::http) async fn add_ban(
    _: Operator,
    State(services): Shared,
    Json(body): Json<NewBan>,
) -> Result<(StatusCode, axum::Json<BanBody>), Problem> {
    let refused = |detail: &str| Problem::new(Code::InvalidBan).with_detail(detail);
    let subject = match (&body.session, &body.address) {
        (Some(session), None) => BanSubject::Session(
            parse_session(session, &services)
                .ok_or_else(|| refused("session is no id of 32 hexadecimal digits and no token"))?,
        ),
        (None, Some(address)) => {
            BanSubject::Network(parse_network(address).ok_or_else(|| {
                refused("address is no address and no block such as 192.0.2.0/24")
            })?)
        }
        _ => return Err(refused("either session or address has to be given")),
    };
    let reason = body.reason.unwrap_or_default();
    if reason.chars().count() > REASON_CHARACTERS {
        return Err(refused("reason has more than 500 characters"));
    }
    let expires_at = parse_expiry(body.expires_at, services.matching.now())?;
    let operators = services.operators.clone();
    let ban = to_the_end(async move { operators.ban(subject, reason, expires_at).await }).await??;
    Ok((StatusCode::CREATED, axum::Json(ban.into())))
}

/// Lift a ban
#[utoipa::path(
    delete, path = "/admin/bans/{id}", tag = "operators", security(("admin" = [])),
    params(("id" = i64, Path)),
    responses(
        (status = 204, description = "Lifted"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::http) async fn remove_ban(
    _: Operator,
    State(services): Shared,
    Named(id): Named,
) -> Result<StatusCode, Problem> {
    let id = number(&id)?;
    match to_the_end(async move { services.bans.remove(id).await }).await?? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::new(Code::NotFound)),
    }
}

/// The id of a session as lists show it, or the token that it is derived from.
fn parse_session(text: &str, services: &Services) -> Option<SessionId> {
    if let Ok(token) = services.sessions.verify(text, services.matching.now()) {
        return Some(token.session);
    }
    let is_id = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bits = u128::from_str_radix(text, 16).ok().filter(|_| is_id)?;
    Some(SessionId(bits.to_be_bytes()))
}

/// A block of addresses, or one address as a block of its own. IPv4 in IPv6 clothes is kept as what
/// it is, since clients are known by that: as it was written it would cover nobody.
fn parse_network(text: &str) -> Option<IpNet> {
    let network = match text.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address),
        Err(_) => text.parse::<IpNet>().ok()?,
    };
    let mapped_prefix = network.prefix_len().checked_sub(MAPPED_PREFIX);
    let canonical = match (network.addr().to_canonical(), mapped_prefix) {
        (IpAddr::V4(address), Some(prefix)) if network.addr().is_ipv6() => {
            IpNet::new(address.into(), prefix).ok()?
        }
        _ => network,
    };
    Some(canonical.trunc())
}

/// One address without its `/32` or `/128`.
fn shown(network: IpNet) -> String {
    if network.prefix_len() == network.max_prefix_len() {
        network.addr().to_string()
    } else {
        network.to_string()
    }
}

/// The end of a ban that begins now.
pub(super) fn parse_expiry(text: Option<String>, now: Millis) -> Result<Option<Millis>, Problem> {
    let refused = |detail: &str| Problem::new(Code::InvalidBan).with_detail(detail);
    let Some(text) = text else { return Ok(None) };
    let at = parse_moment(&text).ok_or_else(|| refused("expires_at is no RFC 3339 time"))?;
    if at <= now {
        return Err(refused("expires_at has passed already"));
    }
    Ok(Some(at))
}

fn parse_moment(text: &str) -> Option<Millis> {
    let moment = text.parse().or_else(|error| {
        // The last moments that can be written are beyond the last that can be counted. "For ever" is
        // often written like that.
        match text.get(..10) {
            Some("9999-12-30" | "9999-12-31") => {
                text.replacen("9999-12-3", "9999-12-2", 1).parse::<jiff::Timestamp>()?;
                Ok(jiff::Timestamp::MAX)
            }
            _ => Err(error),
        }
    });
    u64::try_from(moment.ok()?.as_millisecond()).ok()
}
