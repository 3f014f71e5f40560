//! Being told of changes: server-sent events and the WebSocket of matching.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use aiseki_lobby::{RoomId, SessionId, State, TicketNumber};
use axum::extract::State as Extracted;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use tokio_util::sync::CancellationToken;

use super::error::{Code, Problem};
use super::extract::{Caller, TOKEN_SUBPROTOCOL, subprotocols};
use super::state::StateBody;
use super::{Services, Shared};
use crate::port::Unavailable;
use crate::push::Subscription;

/// How often an open stream or socket shows that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A socket whose other end has said nothing for so long, not even pong, is given up.
const SILENCE: Duration = Duration::from_secs(30);
/// A frame that cannot be sent for so long means that nobody reads.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a slow reader has to take the frame that says so, and a client to answer a close.
const FAREWELL: Duration = Duration::from_secs(10);
/// How long the answer to a client's close may take.
const LAST_ANSWER: Duration = Duration::from_secs(2);
/// How soon the state is asked for again when the store was away.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// The subprotocol that a socket agrees to when it is offered.
const SUBPROTOCOL: &str = "aiseki";

/// Follows one session's state: first the present one, then every change.
pub(super) struct Watcher {
    services: Arc<Services>,
    session: SessionId,
    subscription: Subscription,
    told: Option<Told>,
    /// Whether there may be something to tell. Kept here, so that a wait for it can be broken off.
    stale: bool,
}

/// What makes two states different things to be told.
#[derive(PartialEq, Eq)]
enum Told {
    Idle,
    Waiting(TicketNumber),
    Matched(RoomId),
}

impl From<&State> for Told {
    fn from(state: &State) -> Self {
        match state {
            State::Idle(_) | State::Offered(_) => Self::Idle,
            State::Waiting(waiting) => Self::Waiting(waiting.ticket),
            State::Matched(seat) => Self::Matched(seat.room),
        }
    }
}

impl Watcher {
    pub(super) fn new(services: Arc<Services>, session: SessionId) -> Result<Self, Problem> {
        let subscription = services
            .push
            .subscribe(session)
            .map_err(|_| Problem::new(Code::TooManyConnections).with_retry_after(1000))?;
        services.metrics.subscriptions.inc();
        Ok(Self { services, session, subscription, told: None, stale: true })
    }

    /// The next state that differs from the last one told. May be dropped and called again.
    pub(super) async fn next(&mut self) -> Result<StateBody, Unavailable> {
        loop {
            if !self.stale {
                self.subscription.changed().await;
                self.stale = true;
            }
            let state = self.services.matching.poll(self.session).await?;
            self.stale = false;
            let told = Some(Told::from(&state));
            if told != self.told {
                self.told = told;
                return Ok(state.into());
            }
        }
    }

    /// The same, with patience for a store that is away.
    async fn next_patiently(&mut self) -> StateBody {
        loop {
            match self.next().await {
                Ok(state) => return state,
                Err(Unavailable) => tokio::time::sleep(RETRY).await,
            }
        }
    }

    /// The end of this connection says nothing about the person.
    pub(super) fn answered(&mut self) {
        self.subscription.answered();
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.services.metrics.subscriptions.dec();
    }
}

/// Be told of every change (server-sent events)
///
/// Events named `state`: the present one first, then every change. A comment every 15 s.
#[utoipa::path(
    get, path = "/api/matching/events", tag = "matching",
    security(("token" = []), ("cookie" = [])),
    responses(
        (status = 200, description = "Events named `state`", body = StateBody, content_type = "text/event-stream"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "`cross_site`", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "`too_many_connections`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`, with `Retry-After`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn stream(
    Extracted(services): Shared,
    caller: Caller,
) -> Result<Response, Problem> {
    let session = caller.session()?;
    let draining = services.draining.clone();
    let mut watcher = Watcher::new(services, session)?;
    let first = watcher.next().await?;
    let states = stream::unfold(Some((Some(first), watcher, draining)), next_event);
    // Proxies that collect answers before they pass them on would hold back every event.
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    let events = Sse::new(states).keep_alive(KeepAlive::new().interval(HEARTBEAT).text("alive"));
    Ok(([unbuffered], events).into_response())
}

type Stream = Option<(Option<StateBody>, Watcher, CancellationToken)>;

async fn next_event(stream: Stream) -> Option<(Result<Event, Infallible>, Stream)> {
    let (first, mut watcher, draining) = stream?;
    let state = match first {
        Some(state) => state,
        None => tokio::select! {
            state = watcher.next_patiently() => state,
            () = draining.cancelled() => {
                watcher.answered();
                return None;
            }
        },
    };
    let event = Event::default().event("state").json_data(state).ok()?;
    Some((Ok(event), Some((None, watcher, draining))))
}

/// Be told of every change (WebSocket)
///
/// Text frames with the state as JSON: the present one first, then every change.
#[utoipa::path(
    get, path = "/ws/matching", tag = "matching",
    security(("token" = []), ("cookie" = [])),
    responses(
        (status = 101, description = "A WebSocket"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "`cross_site`", body = Problem, content_type = "application/problem+json"),
        (status = 426, description = "`upgrade_required`", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "`too_many_connections`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`, with `Retry-After`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn socket(
    Extracted(services): Shared,
    caller: Caller,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let session = caller.session()?;
    let upgrade = upgrade.map_err(|_| Problem::new(Code::UpgradeRequired))?;
    let tasks = services.sockets.clone();
    let draining = services.draining.clone();
    let mut watcher = Watcher::new(services, session)?;
    let first = watcher.next().await?;
    let upgrade = upgrade
        .protocols(agreed_subprotocol(&headers))
        // The default allocates 128 KiB for each of many idle connections.
        .read_buffer_size(4096)
        .write_buffer_size(0)
        .max_write_buffer_size(64 * 1024)
        .max_message_size(4096);
    Ok(upgrade
        .on_upgrade(move |socket| tasks.track_future(follow(socket, watcher, first, draining))))
}

/// A browser breaks off when none of the subprotocols that it offered is agreed to.
pub(super) fn agreed_subprotocol(headers: &HeaderMap) -> Option<String> {
    let offered = || subprotocols(headers);
    offered()
        .find(|protocol| *protocol == SUBPROTOCOL)
        .or_else(|| offered().find(|protocol| protocol.starts_with(TOKEN_SUBPROTOCOL)))
        .map(str::to_owned)
}

async fn follow(
    mut socket: WebSocket,
    mut watcher: Watcher,
    first: StateBody,
    draining: CancellationToken,
) {
    let mut next = Some(first);
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    heartbeat.reset();
    let silence = tokio::time::sleep(SILENCE);
    tokio::pin!(silence);
    loop {
        if let Some(state) = next.take() {
            let Ok(text) = serde_json::to_string(&state) else { return };
            if !send(&mut socket, Message::Text(text.into())).await {
                return;
            }
        }
        tokio::select! {
            state = watcher.next_patiently() => next = Some(state),
            frame = socket.recv() => match frame {
                // There is nothing to be said here, but whatever is said is a sign of life.
                Some(Ok(Message::Close(_))) => {
                    drop(watcher);
                    return read_to_the_end(&mut socket).await;
                }
                Some(Err(error)) => {
                    drop(watcher);
                    if let Some((code, reason)) = broken(&error) {
                        close(&mut socket, code, reason).await;
                    }
                    return;
                }
                None => return,
                Some(Ok(_)) => silence.as_mut().reset(tokio::time::Instant::now() + SILENCE),
            },
            _ = heartbeat.tick() => {
                if !send(&mut socket, Message::Ping(axum::body::Bytes::new())).await {
                    return;
                }
            }
            () = &mut silence => return,
            () = draining.cancelled() => {
                watcher.answered();
                let reason = "the server is going away".into();
                let close = CloseFrame { code: close_code::AWAY, reason };
                send(&mut socket, Message::Close(Some(close))).await;
                return;
            }
        }
    }
}

pub(super) async fn send(socket: &mut WebSocket, message: Message) -> bool {
    matches!(tokio::time::timeout(SEND_TIMEOUT, socket.send(message)).await, Ok(Ok(())))
}

/// What is said to the other end of a connection of which nothing can be read any more.
pub(super) fn broken(error: &axum::Error) -> Option<(u16, &'static str)> {
    let text = error.to_string();
    if text.contains("too long") || text.contains("too big") {
        Some((close_code::SIZE, "a frame is too large"))
    } else if text.to_ascii_lowercase().contains("utf-8") {
        Some((close_code::INVALID, "a text is not UTF-8"))
    } else if text.starts_with("WebSocket protocol error") {
        Some((close_code::PROTOCOL, "this is not how frames are"))
    } else {
        None
    }
}

/// The other end closes. The answer to that goes out while the rest is read.
pub(super) async fn read_to_the_end(socket: &mut WebSocket) {
    let rest = async { while let Some(Ok(_)) = socket.recv().await {} };
    let _ = tokio::time::timeout(LAST_ANSWER, rest).await;
}

/// Closes, and reads what is still on its way: a connection that is closed with something unread is
/// reset, and the other end might never see why.
pub(super) async fn close(socket: &mut WebSocket, code: u16, reason: &'static str) {
    let farewell = async {
        let frame = CloseFrame { code, reason: reason.into() };
        if socket.send(Message::Close(Some(frame))).await.is_ok() {
            while let Some(Ok(_)) = socket.recv().await {}
        }
    };
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}
