//! `POST /api/rooms/{room_id}/report`.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Shared;
use super::error::{Code, Problem, to_the_end};
use super::extract::{Caller, Json, Named};
use super::rooms::parse_room;
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
    let conversation = services.conversations.conversation(room).await?.ok_or_else(not_found)?;
    let me = conversation.participant(session).ok_or_else(not_found)?.seat;
    let ReportBody { seat, reason } = body;
    let reported = conversation
        .participants
        .iter()
        .find(|participant| participant.seat == seat && seat != me)
        .ok_or_else(|| Problem::new(Code::InvalidSeat))?
        .session;
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
