//! `GET /ws/rooms/{room_id}`: the conversation of a room.

mod frames;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use utoipa::IntoParams;

use self::frames::{Asked, ErrorCode, RoomFrame};
use super::error::{Code, Problem};
use super::events::{RETRY, agreed_subprotocol, broken, close, read_to_the_end, send};
use super::extract::{Address, Caller, Named, Queried};
use super::rooms::parse_room;
use super::{Services, Shared};
use crate::port::Unavailable;
use crate::rooms::{Closing, Event, NotSaid, NotVisited, Visit, Welcome};
use crate::sessions::VerifiedToken;

/// The largest frame that is looked at: 2,000 characters, each written as two escapes of six bytes.
const FRAME_BYTES: usize = 32 * 1024;
/// Frames up to this size are taken and refused; larger ones break the connection.
const LARGEST_FRAME: usize = 256 * 1024;
/// Bytes that wait to be sent: one page of the longest messages.
const UNSENT_BYTES: usize = 4 << 20;
/// Refusals of one connection before it is closed, and after how long one of them is forgotten.
const REFUSALS: u32 = 10;
const REFUSAL_FORGOTTEN: Duration = Duration::from_secs(1);
/// Somebody who goes on typing is told of once in this time.
const TYPING_EVERY: Duration = Duration::from_secs(1);

/// How often the other end is pinged, and after how long without a word from it, not even a pong, it
/// is given up: half-open connections are found within half a minute.
const PING_EVERY: Duration = Duration::from_secs(8);
const SILENT_FOR: Duration = Duration::from_secs(20);

const UNAUTHENTICATED: u16 = 4401;
const NOT_A_MEMBER: u16 = 4403;
const NO_ROOM: u16 = 4404;
const TOO_SLOW: u16 = 4408;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TalkQuery {
    /// The `seq` of the last message that this client has: what follows it is sent.
    after: Option<u64>,
}

/// Talk (WebSocket)
///
/// Frames as `docs/api.md` describes them.
#[utoipa::path(
    get, path = "/ws/rooms/{room_id}", tag = "rooms",
    security(("token" = []), ("cookie" = [])),
    params(("room_id" = String, Path, format = "uuid"), TalkQuery),
    responses(
        (status = 101, description = "A WebSocket"),
        (status = 400, description = "`invalid_query`", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "`not_a_member`, `banned` or `cross_site`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        (status = 426, description = "`upgrade_required`", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "`too_many_connections`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`, with `Retry-After`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn socket(
    State(services): Shared,
    Named(room_id): Named,
    Queried(query): Queried<TalkQuery>,
    Address(address): Address,
    caller: Caller,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let token = *caller.token().ok_or_else(|| Problem::new(Code::Unauthenticated))?;
    let session = token.session;
    let not_found = || Problem::new(Code::NotFound);
    let rooms = services.rooms.as_ref().ok_or_else(not_found)?;
    let room = parse_room(&room_id).ok_or_else(not_found)?;
    if services.draining.is_cancelled() {
        return Err(Problem::new(Code::Unavailable).with_retry_after(1000));
    }
    let upgrade = upgrade.map_err(|_| Problem::new(Code::UpgradeRequired))?;
    let visited = rooms.visit(room, session, address, query.after.unwrap_or(0)).await?;
    let begun = match visited {
        Ok(begun) => {
            if services.bans.banned(session, address, services.matching.now()) {
                return Err(Problem::new(Code::Banned));
            }
            Ok(begun)
        }
        Err(NotVisited::NoRoom) => return Err(not_found()),
        Err(NotVisited::NotSeated) => return Err(Problem::new(Code::NotAMember)),
        Err(NotVisited::TooMany) => {
            return Err(Problem::new(Code::TooManyConnections).with_retry_after(1000));
        }
        // A browser shows a page nothing of a refusal, so those who sat there are told in a frame.
        Err(NotVisited::Ended(why)) => {
            let conversation = services.conversations.conversation(room).await?;
            let sat = conversation.is_some_and(|it| it.participant(session).is_some());
            if !sat {
                return Err(Problem::new(Code::NotAMember));
            }
            Err(why)
        }
    };
    let upgrade = upgrade
        .protocols(agreed_subprotocol(&headers))
        // The default allocates 128 KiB for each of many idle connections.
        .read_buffer_size(4096)
        .write_buffer_size(0)
        .max_write_buffer_size(UNSENT_BYTES)
        .max_frame_size(LARGEST_FRAME)
        .max_message_size(LARGEST_FRAME);
    let tasks = services.sockets.clone();
    Ok(upgrade.on_upgrade(move |socket| {
        tasks.track_future(async move {
            let room_id = room.to_string();
            match begun {
                Ok((visit, welcome)) => {
                    let talk = Talk::new(socket, visit, token, services);
                    talk.run(&room_id, &welcome).await;
                }
                Err(why) => tell_ended(socket, why).await,
            }
        })
    }))
}

/// One connection to a room.
struct Talk {
    socket: WebSocket,
    visit: Visit,
    token: VerifiedToken,
    services: Arc<Services>,
    /// Refusals so far, and since when one of them is to be forgotten.
    refusals: u32,
    forgotten: Instant,
    typed: Option<Instant>,
    /// Whether this connection asked to leave.
    leaving: bool,
}

/// Why a connection ends.
enum End {
    /// The other end is gone: there is nobody to tell.
    Gone,
    /// The other end closes, and waits for the answer to that.
    Closed,
    Close(u16, &'static str),
}

impl Talk {
    fn new(socket: WebSocket, visit: Visit, token: VerifiedToken, services: Arc<Services>) -> Self {
        let forgotten = Instant::now();
        Self { socket, visit, token, services, refusals: 0, forgotten, typed: None, leaving: false }
    }

    async fn run(mut self, room_id: &str, welcome: &Welcome) {
        let welcome = RoomFrame::welcome(room_id, welcome);
        let end = match self.tell(&welcome).await {
            Ok(()) => self.follow().await,
            Err(end) => end,
        };
        match end {
            End::Gone => {}
            End::Closed => read_to_the_end(&mut self.socket).await,
            End::Close(code, reason) => close(&mut self.socket, code, reason).await,
        }
    }

    async fn follow(&mut self) -> End {
        let draining = self.services.draining.clone();
        let mut heartbeat: Interval = tokio::time::interval(PING_EVERY);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        heartbeat.reset();
        let silence = tokio::time::sleep(SILENT_FOR);
        tokio::pin!(silence);
        loop {
            let step = tokio::select! {
                event = next_patiently(&mut self.visit) => self.pass_on(event).await,
                frame = self.socket.recv() => {
                    silence.as_mut().reset(Instant::now() + SILENT_FOR);
                    self.take(frame).await
                }
                _ = heartbeat.tick() => self.beat().await,
                () = &mut silence => Err(End::Gone),
                () = draining.cancelled() => {
                    Err(End::Close(close_code::AWAY, "the server is going away"))
                }
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    async fn beat(&mut self) -> Result<(), End> {
        if self.token.expires_at() <= self.services.matching.now() {
            return Err(End::Close(UNAUTHENTICATED, "the session has ended"));
        }
        self.send(Message::Ping(axum::body::Bytes::new())).await
    }

    async fn pass_on(&mut self, event: Event) -> Result<(), End> {
        self.tell(&RoomFrame::from(&event)).await?;
        match event {
            Event::Closed(Closing::StoreLost) => Err(End::Close(NO_ROOM, "the room is lost")),
            Event::Closed(_) => Err(End::Close(close_code::NORMAL, "the room is closed")),
            Event::Dismissed(Closing::Banned) => Err(End::Close(close_code::POLICY, "banned")),
            Event::Dismissed(_) if self.leaving => Err(End::Close(close_code::NORMAL, "left")),
            Event::Dismissed(_) => Err(End::Close(NOT_A_MEMBER, "the seat was given up")),
            _ => Ok(()),
        }
    }

    async fn take(&mut self, frame: Option<Result<Message, axum::Error>>) -> Result<(), End> {
        match frame {
            Some(Ok(Message::Text(text))) if text.len() > FRAME_BYTES => {
                Err(End::Close(close_code::SIZE, "a frame is too large"))
            }
            Some(Ok(Message::Text(text))) => match Asked::read(&text) {
                Ok(asked) => self.answer(asked).await,
                Err((code, detail)) => self.refuse(code, detail).await,
            },
            Some(Ok(Message::Binary(_))) => {
                self.refuse(ErrorCode::InvalidFrame, "Frames are texts.").await
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
            Some(Ok(Message::Close(_))) => Err(End::Closed),
            None => Err(End::Gone),
            Some(Err(error)) => Err(match broken(&error) {
                Some((close_code::INVALID, _)) => {
                    End::Close(close_code::POLICY, ErrorCode::InvalidFrame.as_str())
                }
                Some((code, reason)) => End::Close(code, reason),
                None => End::Gone,
            }),
        }
    }

    async fn answer(&mut self, asked: Asked) -> Result<(), End> {
        match asked {
            Asked::Say { id, text } => match self.visit.say(id, text).await {
                // What was said comes back from the log, which is the acknowledgement.
                // Somebody who has no seat any more is about to be told so.
                Ok(Ok(_) | Err(NotSaid::NotSeated)) => Ok(()),
                Ok(Err(NotSaid::TooFast(_))) => {
                    self.refuse(ErrorCode::TooFast, "Wait a little before you say more.").await
                }
                Err(Unavailable) => self.unavailable().await,
            },
            Asked::Typing => {
                let now = Instant::now();
                if self.typed.is_none_or(|last| now >= last + TYPING_EVERY) {
                    self.typed = Some(now);
                    // Nobody misses it when the store is away.
                    let _ = self.visit.typing().await;
                }
                Ok(())
            }
            Asked::Leave => {
                self.leaving = true;
                let (matching, session) = (self.services.matching.clone(), self.token.session);
                let room = self.visit.room();
                let left = tokio::spawn(async move { matching.leave(session, room).await }).await;
                match left {
                    Ok(Ok(_)) => Ok(()),
                    _ => self.unavailable().await,
                }
            }
        }
    }

    async fn unavailable(&mut self) -> Result<(), End> {
        let detail = "Not available now; send it again with the same id.";
        self.tell(&RoomFrame::Error { code: ErrorCode::Unavailable, detail }).await
    }

    /// Says what was wrong, and closes on somebody who does not stop.
    async fn refuse(&mut self, code: ErrorCode, detail: &'static str) -> Result<(), End> {
        let now = Instant::now();
        while self.refusals > 0 && now >= self.forgotten + REFUSAL_FORGOTTEN {
            self.refusals -= 1;
            self.forgotten += REFUSAL_FORGOTTEN;
        }
        if self.refusals == 0 {
            self.forgotten = now;
        }
        self.refusals += 1;
        self.tell(&RoomFrame::Error { code, detail }).await?;
        if self.refusals >= REFUSALS {
            return Err(End::Close(close_code::POLICY, code.as_str()));
        }
        Ok(())
    }

    async fn tell(&mut self, frame: &RoomFrame<'_>) -> Result<(), End> {
        let Ok(text) = serde_json::to_string(frame) else { return Err(End::Gone) };
        self.send(Message::Text(text.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), End> {
        match send(&mut self.socket, message).await {
            true => Ok(()),
            false => Err(End::Close(TOO_SLOW, "a slow reader; come again with ?after=")),
        }
    }
}

/// What is to be told next, with patience for a store that is away.
async fn next_patiently(visit: &mut Visit) -> Event {
    loop {
        match visit.next().await {
            Ok(event) => return event,
            Err(Unavailable) => tokio::time::sleep(RETRY).await,
        }
    }
}

async fn tell_ended(mut socket: WebSocket, why: Closing) {
    let frame = RoomFrame::Closed { reason: why.as_str() };
    if let Ok(text) = serde_json::to_string(&frame)
        && send(&mut socket, Message::Text(text.into())).await
    {
        close(&mut socket, close_code::NORMAL, "the room is closed").await;
    }
}
