//! Rooms, for operators.

use aiseki_lobby::TopicId;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::conversations::Conversation;
use crate::http::Shared;
use crate::http::error::{Code, Problem, to_the_end};
use crate::http::extract::{Named, Operator, Queried};
use crate::http::rooms::parse_room;
use crate::http::state::timestamp;

/// Rooms in one page of the list, if the operator does not ask for fewer.
const ROOMS_PER_PAGE: usize = 100;
const MOST_ROOMS_PER_PAGE: usize = 1000;

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct RoomList {
    rooms: Vec<ListedRoom>,
    /// To be given as `after` for the next page; null on the last one.
    next: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ListedRoom {
    #[schema(format = "uuid")]
    room_id: String,
    topic_id: i64,
    room_type: u8,
    #[schema(format = DateTime)]
    created_at: String,
    seats: Vec<ListedSeat>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ListedSeat {
    seat: u8,
    /// The id of the session, in hexadecimal.
    session: String,
    requested_room_type: u8,
    /// `left`; there is none while the seat is held, when `GET /api/rooms/{room_id}` says whether
    /// somebody is here or away.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct RoomsQuery {
    /// Only rooms of this topic.
    topic: Option<i64>,
    /// The `next` of the page before.
    after: Option<String>,
    /// Rooms in a page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
}

/// Live rooms
#[utoipa::path(
    get, path = "/admin/rooms", tag = "operators", security(("admin" = [])),
    params(RoomsQuery),
    responses(
        (status = 200, description = "A page of live rooms, oldest first", body = RoomList),
        (status = 400, description = "`invalid_query`", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`: the server has no admin token", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::http) async fn list_rooms(
    _: Operator,
    State(services): Shared,
    Queried(query): Queried<RoomsQuery>,
) -> Result<axum::Json<RoomList>, Problem> {
    let refused = |detail: &str| Problem::new(Code::InvalidQuery).with_detail(detail);
    let limit = query.limit.unwrap_or(ROOMS_PER_PAGE);
    if !(1..=MOST_ROOMS_PER_PAGE).contains(&limit) {
        return Err(refused("limit is a number from 1 to 1000"));
    }
    let after = query
        .after
        .map(|text| parse_room(&text).ok_or_else(|| refused("after is the next of another page")))
        .transpose()?;
    // One more than asked for tells whether there is another page.
    let mut found = services
        .conversations
        .live_conversations(query.topic.map(TopicId), after, limit + 1)
        .await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|room| room.room.to_string());
    Ok(axum::Json(RoomList { rooms: found.iter().map(listed_room).collect(), next }))
}

/// Close a room
///
/// Everybody in it is idle afterwards (`room_closed`).
#[utoipa::path(
    post, path = "/admin/rooms/{id}/close", tag = "operators", security(("admin" = [])),
    params(("id" = String, Path, format = "uuid")),
    responses(
        (status = 204, description = "Closed, now or before"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::http) async fn close_room(
    _: Operator,
    State(services): Shared,
    Named(id): Named,
) -> Result<StatusCode, Problem> {
    let room = parse_room(&id).ok_or_else(|| Problem::new(Code::NotFound))?;
    let operators = services.operators.clone();
    match to_the_end(async move { operators.close_room(room).await }).await?? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::new(Code::NotFound)),
    }
}

fn listed_room(conversation: &Conversation) -> ListedRoom {
    ListedRoom {
        room_id: conversation.room.to_string(),
        topic_id: conversation.topic.0,
        room_type: conversation.size,
        created_at: timestamp(conversation.created_at),
        seats: conversation
            .participants
            .iter()
            .map(|participant| ListedSeat {
                seat: participant.seat,
                session: participant.session.to_string(),
                requested_room_type: participant.requested,
                state: participant.left_at.map(|_| "left"),
            })
            .collect(),
    }
}
