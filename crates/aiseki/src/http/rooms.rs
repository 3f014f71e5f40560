//! Rooms and seats: `GET /api/rooms/{room_id}` and leaving.

use aiseki_lobby::{RoomId, Vacate};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use super::Shared;
use super::error::{Code, Problem, to_the_end};
use super::extract::{Caller, Named, is_operator};
use super::state::timestamp;
use crate::conversations::Participant;
use crate::rooms::{SeatState, View};

/// A room as its members see it.
#[derive(Serialize, ToSchema)]
pub(super) struct RoomBody {
    #[schema(format = "uuid")]
    room_id: String,
    topic_id: i64,
    /// The title of the topic.
    topic: Option<String>,
    /// How many people were seated when the room was formed.
    room_type: u8,
    /// `live` or `ended`.
    status: &'static str,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    ended_at: Option<String>,
    /// The caller's seat; none for an operator.
    me: Option<u8>,
    seats: Vec<SeatBody>,
}

/// A seat of a room.
#[derive(Serialize, ToSchema)]
pub(super) struct SeatBody {
    seat: u8,
    /// `here`, `away` (no connection to the room) or `left`.
    state: &'static str,
    /// When somebody who is away loses the seat.
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

/// Look at a room
///
/// For those who have or had a seat in it, and for operators.
#[utoipa::path(
    get, path = "/api/rooms/{room_id}", tag = "rooms",
    security(("token" = []), ("cookie" = []), ("admin" = [])),
    params(("room_id" = String, Path, format = "uuid")),
    responses(
        (status = 200, description = "The room", body = RoomBody),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "`cross_site`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`, with `Retry-After`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn get_room(
    State(services): Shared,
    Named(room_id): Named,
    caller: Caller,
    headers: HeaderMap,
) -> Result<axum::Json<RoomBody>, Problem> {
    let session = match is_operator(&headers, &services) {
        true => None,
        false => Some(caller.session()?),
    };
    let not_found = || Problem::new(Code::NotFound);
    let room = parse_room(&room_id).ok_or_else(not_found)?;
    let conversation = services.conversations.conversation(room).await?.ok_or_else(not_found)?;
    let me = match session {
        None => None,
        Some(session) => Some(conversation.participant(session).ok_or_else(not_found)?.seat),
    };
    let topic = services.topics.get(conversation.topic);
    let view = match &services.rooms {
        Some(rooms) if conversation.ended_at.is_none() => rooms.view(room).await?,
        _ => None,
    };
    Ok(axum::Json(RoomBody {
        room_id: room.to_string(),
        topic_id: conversation.topic.0,
        topic: topic.map(|topic| topic.title.as_str().to_owned()),
        room_type: conversation.size,
        status: if conversation.ended_at.is_some() { "ended" } else { "live" },
        created_at: timestamp(conversation.created_at),
        ended_at: conversation.ended_at.map(timestamp),
        me,
        seats: conversation
            .participants
            .iter()
            .map(|participant| seat_body(participant, view.as_ref()))
            .collect(),
    }))
}

/// Leave a room
///
/// Gives up the caller's seat. Afterwards the caller holds no seat in that room, also when it is
/// repeated.
#[utoipa::path(
    post, path = "/api/rooms/{room_id}/leave", tag = "rooms",
    security(("token" = []), ("cookie" = [])),
    params(("room_id" = String, Path, format = "uuid")),
    responses(
        (status = 204, description = "No seat there any more"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "`cross_site`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`: never the caller's room", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`, with `Retry-After`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn leave_room(
    State(services): Shared,
    Named(room_id): Named,
    caller: Caller,
) -> Result<StatusCode, Problem> {
    let session = caller.session()?;
    let not_found = || Problem::new(Code::NotFound);
    let room = parse_room(&room_id).ok_or_else(not_found)?;
    let matching = services.matching.clone();
    if to_the_end(async move { matching.leave(session, room).await }).await?? == Vacate::Left {
        return Ok(StatusCode::NO_CONTENT);
    }
    let conversation = services.conversations.conversation(room).await?.ok_or_else(not_found)?;
    conversation.participant(session).ok_or_else(not_found)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The seat as it stands, by the record for a room without a live side.
fn seat_body(participant: &Participant, view: Option<&View>) -> SeatBody {
    let members = match view {
        Some(View::Live(members)) => members.as_slice(),
        _ => &[],
    };
    let seat = participant.seat;
    let away = members.iter().find_map(|member| match member.state {
        SeatState::Away { until } if member.seat == seat => Some(until),
        _ => None,
    });
    match away.filter(|_| participant.left_at.is_none()) {
        Some(until) => SeatBody { seat, state: "away", until: until.map(timestamp) },
        None => SeatBody { seat, state: seat_state(participant.left_at.is_some()), until: None },
    }
}

fn seat_state(left: bool) -> &'static str {
    if left { "left" } else { "here" }
}

/// A room id as it is written: a UUID, in either case.
pub(super) fn parse_room(text: &str) -> Option<RoomId> {
    let dashed = text.len() == 36
        && text.char_indices().all(|(i, c)| {
            if matches!(i, 8 | 13 | 18 | 23) { c == '-' } else { c.is_ascii_hexdigit() }
        });
    let digits: String = dashed.then(|| text.chars().filter(|c| *c != '-').collect())?;
    u128::from_str_radix(&digits, 16).ok().map(|bits| RoomId(bits.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_id_is_read_as_it_is_written_and_nothing_else_is_one() {
        let text = "0197f3a1-5b2c-7d4e-8f90-a1b2c3d4e5f6";
        let room = parse_room(text).unwrap();
        assert_eq!(room.to_string(), text);
        assert_eq!(parse_room(&text.to_uppercase()), Some(room));
        for other in [
            "",
            "0197f3a15b2c7d4e8f90a1b2c3d4e5f6",
            "{0197f3a1-5b2c-7d4e-8f90-a1b2c3d4e5f6}",
            "0197f3a1-5b2c-7d4e-8f90-a1b2c3d4e5fg",
            "0197f3a1-5b2c-7d4e-8f90-a1b2c3d4e5f",
            "0197f3a1+5b2c-7d4e-8f90-a1b2c3d4e5f6",
            "\u{ff10}197f3a1-5b2c-7d4e-8f90-a1b2c3d4e",
        ] {
            assert_eq!(parse_room(other), None, "{other}");
        }
    }
}
