//! `POST /api/session`, and who may call with the cookie that it sets.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};

use super::error::{Code, Problem, to_the_end};
use super::extract::{Address, COOKIE, Caller, Https, cookies};
use super::state::timestamp;
use super::{Services, Shared};
use crate::sessions::SESSION_LIFETIME;

/// A token, to be sent as `Authorization: Bearer` or as the cookie that comes with it.
#[derive(Serialize, ToSchema)]
pub(super) struct SessionBody {
    token: String,
    #[schema(format = DateTime)]
    expires_at: String,
}

/// Become somebody
///
/// A new anonymous session. With a valid one: the same session, renewed for thirty days.
#[utoipa::path(
    post, path = "/api/session", tag = "matching",
    security((), ("token" = []), ("cookie" = [])),
    responses(
        (status = 200, description = "The same session, renewed", body = SessionBody),
        (status = 201, description = "A new session", body = SessionBody),
        (status = 403, description = "`cross_site`", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "`rate_limited`: too many from this address", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn create_session(
    State(services): Shared,
    Address(address): Address,
    Https(https): Https,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let now = services.matching.now();
    let (status, issued) = match caller.token() {
        Some(token) => (StatusCode::OK, services.sessions.renew(token, now)),
        None => {
            let matching = services.matching.clone();
            to_the_end(async move { matching.admit_new_session(address).await }).await??.map_err(
                |limited| Problem::new(Code::RateLimited).with_retry_after(limited.retry_after),
            )?;
            (StatusCode::CREATED, services.sessions.issue(now))
        }
    };
    // A foreign page may have a session of its own, and never replaces the one in the browser.
    let cookie_kept = is_cross_site(&headers, &services);
    let cookie = set_cookie(&issued.token, &services.outside.base_path, https);
    let cookie = HeaderValue::from_str(&cookie).map_err(|_| Problem::new(Code::Internal))?;
    let body = SessionBody { token: issued.token, expires_at: timestamp(issued.expires_at) };
    let mut response = (status, axum::Json(body)).into_response();
    if !cookie_kept {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

fn set_cookie(token: &str, path: &str, https: bool) -> String {
    let seconds = SESSION_LIFETIME / 1000;
    let secure = if https { "; Secure" } else { "" };
    format!("{COOKIE}={token}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

/// Refuses what a page of a foreign origin sends with the person's cookie, and every WebSocket that
/// such a page opens: browsers let any page do both.
pub(super) async fn refuse_cross_site(
    State(services): Shared,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let by_cookie_alone =
        !headers.contains_key(header::AUTHORIZATION) && cookies(headers).next().is_some();
    let guarded = by_cookie_alone || headers.contains_key(header::SEC_WEBSOCKET_KEY);
    if guarded && is_cross_site(headers, &services) {
        return Problem::new(Code::CrossSite).into_response();
    }
    next.run(request).await
}

fn is_cross_site(headers: &HeaderMap, services: &Arc<Services>) -> bool {
    let fetch_site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    let Some(origin) = headers.get(header::ORIGIN) else {
        // No browser hides where a request comes from in both headers; others send neither.
        return !matches!(fetch_site, None | Some("same-origin" | "none"));
    };
    let Ok(origin) = origin.to_str() else { return true };
    let origin = origin.to_ascii_lowercase();
    if services.outside.allowed_origins.contains(&origin) {
        return false;
    }
    match fetch_site {
        Some(site) => site != "same-origin",
        None => {
            let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
            let own = host.map(str::to_ascii_lowercase);
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            authority.is_none() || authority != own.as_deref()
        }
    }
}

/// Tells the description how callers prove who they are.
pub(super) struct SecuritySchemes;

impl utoipa::Modify for SecuritySchemes {
    fn modify(&self, description: &mut OpenApi) {
        let components = description.components.get_or_insert_default();
        let bearer = |text: &str| {
            let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(text));
            SecurityScheme::Http(scheme.build())
        };
        components.add_security_scheme("token", bearer("The token of `POST /api/session`"));
        components.add_security_scheme("admin", bearer("The admin token"));
        let cookie = ApiKey::Cookie(ApiKeyValue::new(COOKIE));
        components.add_security_scheme("cookie", SecurityScheme::ApiKey(cookie));
    }
}
