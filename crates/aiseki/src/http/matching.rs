//! The three calls by which people are seated: `POST`, `GET` and `DELETE /api/matching`.

use std::sync::Arc;
use std::time::Duration;

use aiseki_lobby::{Queue, RoomId, TopicId};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use utoipa::{IntoParams, ToSchema};

use super::Shared;
use super::error::{Code, Problem, to_the_end};
use super::events::Watcher;
use super::extract::{Address, Caller, Json, Queried};
use super::rooms::parse_room;
use super::state::StateBody;
use crate::matching::{Join, NotEntered, TurnedAway};

/// The longest wait that a client may ask for; the server may be set to less.
const LONGEST_WAIT_SECONDS: u64 = 55;

/// What somebody wants to talk about, and how many they want to be.
#[derive(Deserialize, ToSchema)]
pub(super) struct JoinBody {
    topic_id: i64,
    /// A size of room that the server offers, 2 or 3 if its operator has not decided otherwise.
    #[schema(minimum = 2, maximum = 8)]
    room_type: i64,
    /// The room of the `resume` that the caller's state shows, to take up that place again.
    #[serde(default, deserialize_with = "room")]
    #[schema(value_type = Option<String>, format = "uuid")]
    resume: Option<RoomId>,
}

impl JoinBody {
    /// The topic and the size.
    pub(super) fn asked(&self) -> (i64, i64) {
        (self.topic_id, self.room_type)
    }
}

/// The name of a room, if there is one.
fn room<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RoomId>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let room = |text: String| parse_room(&text).ok_or_else(|| D::Error::custom("not a room's id"));
    text.map(room).transpose()
}

/// Join a queue
///
/// Waits for a room, or is seated at once. Repeating it keeps the place.
#[utoipa::path(
    post, path = "/api/matching", tag = "matching",
    security(("token" = []), ("cookie" = [])),
    request_body = JoinBody,
    responses(
        (status = 200, description = "Matched", body = StateBody),
        (status = 202, description = "Waiting", body = StateBody),
        (status = 400, description = "`invalid_body`, `invalid_room_type`, `unknown_topic` or `inactive_topic`", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "`banned` or `cross_site`", body = Problem, content_type = "application/problem+json"),
        (status = 408, description = "`request_timeout`", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "`already_waiting` or `already_matched`, with the state", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "`body_too_large`", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "`unsupported_media_type`", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "`rate_limited`, with `Retry-After`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`, with `Retry-After`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn join(
    State(services): Shared,
    Address(address): Address,
    caller: Caller,
    Json(body): Json<JoinBody>,
) -> Result<Response, Problem> {
    let session = caller.session()?;
    // A number that no room type can have is one that this policy does not have.
    let room_type =
        u8::try_from(body.room_type).map_err(|_| Problem::new(Code::InvalidRoomType))?;
    let queue = Queue { topic: TopicId(body.topic_id), room_type };
    let join = Join { session, queue, address, resume: body.resume };
    let entered = services.matching.join(join).await?;
    let state = entered.map_err(not_entered)?.state;
    let status = match StateBody::from(state) {
        StateBody::Matched { .. } => StatusCode::OK,
        _ => StatusCode::ACCEPTED,
    };
    Ok((status, axum::Json(StateBody::from(state))).into_response())
}

fn not_entered(why: NotEntered) -> Problem {
    match why {
        NotEntered::InvalidRoomType => Problem::new(Code::InvalidRoomType),
        NotEntered::RateLimited(limited) => {
            Problem::new(Code::RateLimited).with_retry_after(limited.retry_after)
        }
        NotEntered::TurnedAway(TurnedAway::Banned) => Problem::new(Code::Banned),
        NotEntered::TurnedAway(TurnedAway::UnknownTopic) => Problem::new(Code::UnknownTopic),
        NotEntered::TurnedAway(TurnedAway::InactiveTopic) => Problem::new(Code::InactiveTopic),
        NotEntered::AlreadyWaiting(state) => {
            Problem::new(Code::AlreadyWaiting).with_state(state.into())
        }
        NotEntered::AlreadyMatched(state) => {
            Problem::new(Code::AlreadyMatched).with_state(state.into())
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PollQuery {
    /// Hold the answer while the state is `waiting`, until it changes or so many seconds pass.
    #[param(minimum = 1, maximum = 55)]
    wait: Option<u64>,
}

/// Ask how it stands
///
/// The caller's state, which is also a sign of life. With `wait` the answer is held open while the
/// state is `waiting`.
#[utoipa::path(
    get, path = "/api/matching", tag = "matching",
    security(("token" = []), ("cookie" = [])),
    params(PollQuery),
    responses(
        (status = 200, description = "The state", body = StateBody),
        (status = 400, description = "`invalid_query`", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "`cross_site`", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "`too_many_connections`: too many long polls, streams and sockets of this session", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`, with `Retry-After`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn poll(
    State(services): Shared,
    caller: Caller,
    Queried(query): Queried<PollQuery>,
) -> Result<axum::Json<StateBody>, Problem> {
    let session = caller.session()?;
    let Some(seconds) = query.wait else {
        return Ok(axum::Json(services.matching.poll(session).await?.into()));
    };
    if !(1..=LONGEST_WAIT_SECONDS).contains(&seconds) {
        let detail = format!("wait is a number of seconds from 1 to {LONGEST_WAIT_SECONDS}");
        return Err(Problem::new(Code::InvalidQuery).with_detail(detail));
    }
    let wait = Duration::from_secs(seconds).min(services.outside.max_wait);
    let draining = services.draining.clone();
    let mut watcher = Watcher::new(Arc::clone(&services), session)?;
    let first = watcher.next().await?;
    if !matches!(first, StateBody::Waiting { .. }) {
        watcher.answered();
        return Ok(axum::Json(first));
    }
    let state = tokio::select! {
        changed = watcher.next() => changed?,
        () = tokio::time::sleep(wait) => services.matching.poll(session).await?.into(),
        () = draining.cancelled() => services.matching.poll(session).await?.into(),
    };
    watcher.answered();
    Ok(axum::Json(state))
}

/// Stop waiting
///
/// Afterwards nobody is seated from that wait. Also when idle: it is idempotent.
#[utoipa::path(
    delete, path = "/api/matching", tag = "matching",
    security(("token" = []), ("cookie" = [])),
    responses(
        (status = 204, description = "Not waiting any more"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "`cross_site`", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "`already_matched`: a room was formed first", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`, with `Retry-After`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn cancel(State(services): Shared, caller: Caller) -> Result<StatusCode, Problem> {
    let session = caller.session()?;
    let matching = services.matching.clone();
    match to_the_end(async move { matching.cancel(session).await }).await?? {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(state) => Err(Problem::new(Code::AlreadyMatched).with_state(state.into())),
    }
}
