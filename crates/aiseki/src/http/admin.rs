//! What operators can do over HTTP.

use std::collections::BTreeMap;

use aiseki_lobby::{Millis, SessionId, TopicId};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::error::{Code, Problem, to_the_end};
use super::extract::{Json, Operator, Queried};
use super::rooms::{parse_room, seat_state};
use super::state::timestamp;
use super::topics::Waiting;
use super::{Services, Shared};
use crate::bans::{Ban, BanSubject, REASON_CHARACTERS};
use crate::conversations::Conversation;
use crate::topics::{Title, Topic};

/// Rooms in one page of the list, if the operator does not ask for fewer.
const ROOMS_PER_PAGE: usize = 100;
const MOST_ROOMS_PER_PAGE: usize = 1000;

#[derive(Serialize, ToSchema)]
pub(super) struct TopicList {
    topics: Vec<ListedTopic>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ListedTopic {
    id: i64,
    title: String,
    active: bool,
    /// How many people wait, by room type.
    waiting: BTreeMap<u8, usize>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct TopicBody {
    id: i64,
    title: String,
    active: bool,
}

impl From<Topic> for TopicBody {
    fn from(topic: Topic) -> Self {
        let Topic { id, title, active } = topic;
        Self { id: id.0, title: title.as_str().to_owned(), active }
    }
}

#[derive(Deserialize, ToSchema)]
pub(super) struct NewTopic {
    /// 1 to 200 characters, no control characters; kept exactly.
    title: String,
    /// Whether people can wait for it; true if it is left out.
    active: Option<bool>,
}

#[derive(Deserialize, ToSchema)]
pub(super) struct TopicChange {
    /// Unchanged if it is left out.
    title: Option<String>,
    /// Unchanged if it is left out.
    active: Option<bool>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct BanList {
    bans: Vec<BanBody>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct BanBody {
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
pub(super) struct NewBan {
    /// The id of a session as lists show it, or a session's token. Either this or `address`.
    session: Option<String>,
    /// An address, or a block such as `192.0.2.0/24`. Either this or `session`.
    address: Option<String>,
    /// What to remember, at most 500 characters.
    reason: Option<String>,
    /// Until when; for ever if it is left out.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct QueueList {
    queues: Vec<QueueBody>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct QueueBody {
    topic_id: i64,
    title: Option<String>,
    room_type: u8,
    waiting: usize,
    #[schema(format = DateTime)]
    oldest_waiting_since: String,
    oldest_wait_ms: Millis,
}

#[derive(Serialize, ToSchema)]
pub(super) struct RoomList {
    rooms: Vec<ListedRoom>,
    /// To be given as `after` for the next page; null on the last one.
    next: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ListedRoom {
    #[schema(format = "uuid")]
    room_id: String,
    topic_id: i64,
    room_type: u8,
    #[schema(format = DateTime)]
    created_at: String,
    seats: Vec<ListedSeat>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ListedSeat {
    seat: u8,
    /// The id of the session, in hexadecimal.
    session: String,
    requested_room_type: u8,
    /// `here` or `left`.
    state: &'static str,
}

/// All topics
#[utoipa::path(
    get, path = "/admin/topics", tag = "operators", security(("admin" = [])),
    responses(
        (status = 200, description = "All topics", body = TopicList),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`: the server has no admin token", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list_topics(
    _: Operator,
    State(services): Shared,
) -> Result<axum::Json<TopicList>, Problem> {
    let waiting = Waiting::count(&services).await?;
    let topics = services.topics.all().into_iter().map(|topic| {
        let Topic { id, title, active } = topic;
        let title = title.as_str().to_owned();
        ListedTopic { id: id.0, title, active, waiting: waiting.of(id) }
    });
    Ok(axum::Json(TopicList { topics: topics.collect() }))
}

/// Add a topic
#[utoipa::path(
    post, path = "/admin/topics", tag = "operators", security(("admin" = [])),
    request_body = NewTopic,
    responses(
        (status = 201, description = "Added", body = TopicBody),
        (status = 400, description = "`invalid_body` or `invalid_title`", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`: the server has no admin token", body = Problem, content_type = "application/problem+json"),
        (status = 408, description = "`request_timeout`", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "`body_too_large`", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "`unsupported_media_type`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn add_topic(
    _: Operator,
    State(services): Shared,
    Json(body): Json<NewTopic>,
) -> Result<(StatusCode, axum::Json<TopicBody>), Problem> {
    let title = title(body.title)?;
    let active = body.active.unwrap_or(true);
    let topic = to_the_end(async move { services.topics.add(title, active).await }).await??;
    Ok((StatusCode::CREATED, axum::Json(topic.into())))
}

/// Change a topic
///
/// Switched off, it loses the people who wait for it: they are idle (`topic_closed`).
#[utoipa::path(
    put, path = "/admin/topics/{id}", tag = "operators", security(("admin" = [])),
    params(("id" = i64, Path)),
    request_body = TopicChange,
    responses(
        (status = 200, description = "Changed", body = TopicBody),
        (status = 400, description = "`invalid_body` or `invalid_title`", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        (status = 408, description = "`request_timeout`", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "`body_too_large`", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "`unsupported_media_type`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn change_topic(
    _: Operator,
    State(services): Shared,
    Path(id): Path<String>,
    Json(body): Json<TopicChange>,
) -> Result<axum::Json<TopicBody>, Problem> {
    let id = TopicId(number(&id)?);
    let title = body.title.map(title).transpose()?;
    let operators = services.operators.clone();
    let topic =
        to_the_end(async move { operators.change_topic(id, title, body.active).await }).await??;
    let topic = topic.ok_or_else(|| Problem::new(Code::NotFound))?;
    Ok(axum::Json(topic.into()))
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
pub(super) async fn list_bans(_: Operator, State(services): Shared) -> axum::Json<BanList> {
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
pub(super) async fn add_ban(
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
    let expires_at = body
        .expires_at
        .map(|text| parse_moment(&text).ok_or_else(|| refused("expires_at is no RFC 3339 time")))
        .transpose()?;
    if expires_at.is_some_and(|at| at <= services.matching.now()) {
        return Err(refused("expires_at has passed already"));
    }
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
pub(super) async fn remove_ban(
    _: Operator,
    State(services): Shared,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let id = number(&id)?;
    match to_the_end(async move { services.bans.remove(id).await }).await?? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::new(Code::NotFound)),
    }
}

/// Who waits where
///
/// Every queue that has people.
#[utoipa::path(
    get, path = "/admin/queues", tag = "operators", security(("admin" = [])),
    responses(
        (status = 200, description = "Every queue that has people", body = QueueList),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`: the server has no admin token", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list_queues(
    _: Operator,
    State(services): Shared,
) -> Result<axum::Json<QueueList>, Problem> {
    let now = services.matching.now();
    let queues = services.matching.queues().await?.into_iter().map(|queue| QueueBody {
        topic_id: queue.queue.topic.0,
        title: services.topics.get(queue.queue.topic).map(|topic| topic.title.as_str().to_owned()),
        room_type: queue.queue.room_type,
        waiting: queue.waiting,
        oldest_waiting_since: timestamp(queue.oldest_since),
        oldest_wait_ms: now.saturating_sub(queue.oldest_since),
    });
    Ok(axum::Json(QueueList { queues: queues.collect() }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RoomsQuery {
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
pub(super) async fn list_rooms(
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
    Ok(axum::Json(RoomList { rooms: found.into_iter().map(listed_room).collect(), next }))
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
pub(super) async fn close_room(
    _: Operator,
    State(services): Shared,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let room = parse_room(&id).ok_or_else(|| Problem::new(Code::NotFound))?;
    let operators = services.operators.clone();
    match to_the_end(async move { operators.close_room(room).await }).await?? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::new(Code::NotFound)),
    }
}

fn listed_room(conversation: Conversation) -> ListedRoom {
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
                state: seat_state(participant.left_at.is_some()),
            })
            .collect(),
    }
}

fn title(text: String) -> Result<Title, Problem> {
    Title::try_from(text)
        .map_err(|error| Problem::new(Code::InvalidTitle).with_detail(error.to_string()))
}

/// A number in a path; anything else names nothing.
fn number(text: &str) -> Result<i64, Problem> {
    text.parse().map_err(|_| Problem::new(Code::NotFound))
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

/// A block of addresses, or one address as a block of its own. An IPv4 address in IPv6 clothes is
/// kept as what it is, since clients are known by that.
fn parse_network(text: &str) -> Option<IpNet> {
    let network = match text.parse::<std::net::IpAddr>() {
        Ok(address) => IpNet::from(address.to_canonical()),
        Err(_) => text.parse::<IpNet>().ok()?,
    };
    Some(network.trunc())
}

/// One address without its `/32` or `/128`.
fn shown(network: IpNet) -> String {
    if network.prefix_len() == network.max_prefix_len() {
        network.addr().to_string()
    } else {
        network.to_string()
    }
}

fn parse_moment(text: &str) -> Option<Millis> {
    let moment: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(moment.as_millisecond()).ok()
}
