//! `POST /api/rooms/{room_id}/report` and `…/block`.

use aiseki_lobby::{RoomId, SessionId};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::{Code, Problem, to_the_end};
use super::extract::{Caller, Json, Named};
use super::rooms::parse_room;
use super::{Services, Shared};
use crate::reports::{MESSAGES_KEPT, NewReport, Quote, check_reason};

#[derive(Deserialize, ToSchema)]
pub(super) struct ReportBody {
    /// The seat of who is reported.
    seat: u8,
    /// What happened, for operators.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Reported {
    /// How many of the last messages are kept with the report.
    messages: usize,
}

/// Report somebody
///
/// For those who have or had a seat in the room. Its last 50 messages are kept with the report for the
/// operator; a room that has ended has none any more. The same report again is there already.
#[utoipa::path(
    post, path = "/api/rooms/{room_id}/report", tag = "rooms",
    security(("token" = []), ("cookie" = [])),
    params(("room_id" = String, Path, format = "uuid")),
    request_body = ReportBody,
    responses(
        (status = 201, description = "Kept", body = Reported),
        (status = 400, description = "`invalid_body`, `invalid_reason` or `invalid_seat`: not the seat of somebody else", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "`cross_site`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`: never the caller's room", body = Problem, content_type = "application/problem+json"),
        (status = 408, description = "`request_timeout`", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "`body_too_large`", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "`unsupported_media_type`", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "`rate_limited`, with `Retry-After`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`, with `Retry-After`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn report(
    State(services): Shared,
    Named(room_id): Named,
    caller: Caller,
    Json(body): Json<ReportBody>,
) -> Result<(StatusCode, axum::Json<Reported>), Problem> {
    let session = caller.session()?;
    let not_found = || Problem::new(Code::NotFound);
    let room = parse_room(&room_id).ok_or_else(not_found)?;
    let ReportBody { seat, reason } = body;
    let reported = somebody_else(&services, room, session, seat).await?;
    if !check_reason(&reason) {
        return Err(Problem::new(Code::InvalidReason));
    }
    let kept = to_the_end(async move {
        let said = match &services.rooms {
            Some(rooms) => rooms.last_said(room, MESSAGES_KEPT).await?,
            None => Vec::new(),
        };
        let quote = |said: &crate::rooms::Said| Quote {
            seq: said.seq,
            seat: said.seat,
            text: said.text.clone(),
            at: said.at,
        };
        let said: Vec<Quote> = said.iter().map(|said| quote(said)).collect();
        let messages = said.len();
        let report = NewReport { room, reporter: session, reported, seat, reason, said };
        let added = services.reports.add_report(report).await?;
        Ok::<_, Problem>(added.map(|()| messages))
    });
    match kept.await?? {
        Ok(messages) => Ok((StatusCode::CREATED, axum::Json(Reported { messages }))),
        Err(limited) => Err(Problem::new(Code::RateLimited).with_retry_after(limited.retry_after)),
    }
}

#[derive(Deserialize, ToSchema)]
pub(super) struct BlockBody {
    /// The seat of who is blocked.
    seat: u8,
}

/// Block somebody
///
/// For those who have or had a seat in the room. These two are never seated together again, whoever
/// blocks whom; nobody loses a place in a queue or a seat by it. Repeating it changes nothing.
#[utoipa::path(
    post, path = "/api/rooms/{room_id}/block", tag = "rooms",
    security(("token" = []), ("cookie" = [])),
    params(("room_id" = String, Path, format = "uuid")),
    request_body = BlockBody,
    responses(
        (status = 204, description = "Blocked, now or before"),
        (status = 400, description = "`invalid_body` or `invalid_seat`: not the seat of somebody else", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "`cross_site`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`: never the caller's room", body = Problem, content_type = "application/problem+json"),
        (status = 408, description = "`request_timeout`", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "`body_too_large`", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "`unsupported_media_type`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`, with `Retry-After`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn block(
    State(services): Shared,
    Named(room_id): Named,
    caller: Caller,
    Json(body): Json<BlockBody>,
) -> Result<StatusCode, Problem> {
    let session = caller.session()?;
    let room = parse_room(&room_id).ok_or_else(|| Problem::new(Code::NotFound))?;
    let blocked = somebody_else(&services, room, session, body.seat).await?;
    let matching = services.matching.clone();
    to_the_end(async move { matching.block(session, blocked).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Who has or had a seat in a room of the caller's, if that is not the caller.
async fn somebody_else(
    services: &Services,
    room: RoomId,
    caller: SessionId,
    seat: u8,
) -> Result<SessionId, Problem> {
    let not_found = || Problem::new(Code::NotFound);
    let conversation = services.conversations.conversation(room).await?.ok_or_else(not_found)?;
    let me = conversation.participant(caller).ok_or_else(not_found)?.seat;
    let mut people = conversation.participants.iter();
    let other = people.find(|participant| participant.seat == seat && seat != me);
    Ok(other.ok_or_else(|| Problem::new(Code::InvalidSeat))?.session)
}
