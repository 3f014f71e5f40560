//! Every refusal, in one table.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::state::StateBody;
use crate::port::Unavailable;

/// What went wrong, as a client's program reads it. The words are part of the public contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Code {
    InvalidRequest,
    InvalidBody,
    InvalidQuery,
    InvalidRoomType,
    InvalidTitle,
    InvalidBan,
    InvalidReason,
    InvalidSeat,
    UnknownTopic,
    InactiveTopic,
    Unauthenticated,
    Banned,
    NotAMember,
    CrossSite,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    AlreadyWaiting,
    AlreadyMatched,
    BodyTooLarge,
    UnsupportedMediaType,
    UpgradeRequired,
    RateLimited,
    TooManyConnections,
    Internal,
    Unavailable,
}

impl Code {
    /// Its status and its sentence. The sentence is for people and may change.
    fn meaning(self) -> (StatusCode, &'static str) {
        use StatusCode as S;
        match self {
            Self::InvalidRequest => (S::BAD_REQUEST, "A request names one host."),
            Self::InvalidBody => (S::BAD_REQUEST, "The body is not what this call takes."),
            Self::InvalidQuery => (S::BAD_REQUEST, "The query is not what this call takes."),
            Self::InvalidRoomType => (S::BAD_REQUEST, "There are no rooms of this type."),
            Self::InvalidTitle => (S::BAD_REQUEST, "This is no title for a topic."),
            Self::InvalidBan => (S::BAD_REQUEST, "This cannot be banned."),
            Self::InvalidReason => (S::BAD_REQUEST, "A reason has 1 to 500 characters."),
            Self::InvalidSeat => (S::BAD_REQUEST, "This is nobody else's seat."),
            Self::UnknownTopic => (S::BAD_REQUEST, "There is no such topic."),
            Self::InactiveTopic => (S::BAD_REQUEST, "This topic is closed."),
            Self::Unauthenticated => (S::UNAUTHORIZED, "A valid token is needed."),
            Self::Banned => (S::FORBIDDEN, "You may not join."),
            Self::NotAMember => (S::FORBIDDEN, "You have no seat in this room."),
            Self::CrossSite => (S::FORBIDDEN, "Pages of this origin may not call here."),
            Self::NotFound => (S::NOT_FOUND, "There is nothing here."),
            Self::MethodNotAllowed => (S::METHOD_NOT_ALLOWED, "This method has no meaning here."),
            Self::RequestTimeout => (S::REQUEST_TIMEOUT, "The body took too long to arrive."),
            Self::AlreadyWaiting => (S::CONFLICT, "You are waiting in another queue."),
            Self::AlreadyMatched => (S::CONFLICT, "You have a seat already."),
            Self::BodyTooLarge => (S::PAYLOAD_TOO_LARGE, "The body is too large."),
            Self::UnsupportedMediaType => {
                (S::UNSUPPORTED_MEDIA_TYPE, "The body has to be application/json.")
            }
            Self::UpgradeRequired => (S::UPGRADE_REQUIRED, "This is a WebSocket."),
            Self::RateLimited => (S::TOO_MANY_REQUESTS, "Too many attempts; wait a little."),
            Self::TooManyConnections => {
                (S::TOO_MANY_REQUESTS, "This session has too many connections open.")
            }
            Self::Internal => (S::INTERNAL_SERVER_ERROR, "Something went wrong here."),
            Self::Unavailable => (S::SERVICE_UNAVAILABLE, "Not available now; try again soon."),
        }
    }
}

/// A refusal as `application/problem+json` (RFC 9457).
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Problem {
    /// Always `about:blank`: the code says what the problem is.
    #[serde(rename = "type")]
    #[schema(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    /// What went wrong, for programs.
    code: Code,
    /// What went wrong, for people.
    detail: String,
    /// The state of the person, for a conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Box<StateBody>>,
    #[serde(skip)]
    retry_after_seconds: Option<u64>,
}

impl Problem {
    pub(super) fn new(code: Code) -> Self {
        let (status, detail) = code.meaning();
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Problem"),
            status: status.as_u16(),
            code,
            detail: detail.to_owned(),
            state: None,
            retry_after_seconds: None,
        }
    }

    /// With a sentence of its own. It must not hold anything that the client did not send.
    pub(super) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    pub(super) fn with_state(mut self, state: StateBody) -> Self {
        self.state = Some(Box::new(state));
        self
    }

    /// Says when to try again, in whole seconds of which there is at least one.
    pub(super) fn with_retry_after(mut self, millis: u64) -> Self {
        self.retry_after_seconds = Some(millis.div_ceil(1000).max(1));
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = self.retry_after_seconds;
        let challenge = self.code == Code::Unauthenticated;
        let mut response = (status, axum::Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if challenge {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Unavailable> for Problem {
    fn from(_: Unavailable) -> Self {
        Self::new(Code::Unavailable).with_retry_after(1000)
    }
}

/// Runs work that changes something to its end, whether or not the client stays to hear of it.
pub(super) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Problem> {
    tokio::spawn(work).await.map_err(|_| Problem::new(Code::Internal))
}
