//! How a simulated person reaches a server: real HTTP, a connection that can be lost at any moment.

use std::time::Duration;

use aiseki_lobby::Millis;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::Message;

use super::history::{RoomView, Seat, State, Waiting};
use crate::commands::server_url::ServerUrl;

/// How long an answer may take beyond what was asked of a long poll. Longer than any stop of a
/// server's store that still counts as working.
const PATIENCE: Duration = Duration::from_secs(10);
const LARGEST_ANSWER: usize = 4 << 20;

/// One person's way to a server.
pub(super) struct Phone {
    server: ServerUrl,
    token: Option<String>,
    connection: Option<SendRequest<Full<Bytes>>>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Value,
}

/// The answer did not come: what was asked happened, or it did not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost;

/// States as they are pushed.
pub(super) enum Pushed {
    Events { body: Incoming, read: BytesMut },
    Socket(Box<WebSocketStream<TcpStream>>),
}

impl Phone {
    pub(super) fn new(server: ServerUrl) -> Self {
        Self { server, token: None, connection: None }
    }

    /// From now on another server is asked.
    pub(super) fn turn_to(&mut self, server: ServerUrl) {
        self.hang_up();
        self.server = server;
    }

    /// Whether the person has a session.
    pub(super) fn has_session(&self) -> bool {
        self.token.is_some()
    }

    pub(super) fn take_session(&mut self, answer: &Answer) {
        self.token = answer.body["token"].as_str().map(str::to_owned);
    }

    /// Drops the connection without a word.
    pub(super) fn hang_up(&mut self) {
        self.connection = None;
    }

    /// Asks, waiting for the answer so much longer than usual.
    pub(super) async fn ask(
        &mut self,
        method: Method,
        route: &str,
        body: Option<Value>,
        longer: Duration,
    ) -> Result<Answer, Lost> {
        // The connection is back in its place only once the answer is complete: a question that is
        // broken off takes its connection with it.
        let connection = self.connection.take();
        let asked = timeout(PATIENCE + longer, self.exchange(connection, method, route, body));
        let (answer, connection) = asked.await.map_err(|_| Lost)??;
        self.connection = Some(connection);
        Ok(answer)
    }

    async fn exchange(
        &self,
        connection: Option<SendRequest<Full<Bytes>>>,
        method: Method,
        route: &str,
        body: Option<Value>,
    ) -> Result<(Answer, SendRequest<Full<Bytes>>), Lost> {
        let (response, connection) = self.send(connection, method, route, body).await?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, LARGEST_ANSWER).collect().await.map_err(|_| Lost)?;
        let retry_after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let answer = Answer {
            status: head.status.as_u16(),
            retry_after: retry_after.and_then(|text| text.parse().ok()).map(Duration::from_secs),
            body: serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null),
        };
        Ok((answer, connection))
    }

    async fn send(
        &self,
        connection: Option<SendRequest<Full<Bytes>>>,
        method: Method,
        route: &str,
        body: Option<Value>,
    ) -> Result<(Response<Incoming>, SendRequest<Full<Bytes>>), Lost> {
        let mut kept = connection;
        if let Some(connection) = &mut kept
            && connection.ready().await.is_err()
        {
            kept = None;
        }
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let mut request = Request::builder()
            .method(method)
            .uri(self.server.path(route))
            .header(HOST, self.server.authority());
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let body = match body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        let request = request.body(Full::new(body)).map_err(|_| Lost)?;
        let response = connection.send_request(request).await.map_err(|_| Lost)?;
        Ok((response, connection))
    }

    async fn tcp(&self) -> Result<TcpStream, Lost> {
        let stream = TcpStream::connect(self.server.host_and_port()).await.map_err(|_| Lost)?;
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Lost> {
        let stream = self.tcp().await?;
        let (connection, driver) = handshake(TokioIo::new(stream)).await.map_err(|_| Lost)?;
        tokio::spawn(driver);
        Ok(connection)
    }

    /// Opens the stream of events.
    pub(super) async fn events(&self) -> Result<Pushed, Lost> {
        let opened = self.send(None, Method::GET, "/api/matching/events", None);
        let (response, _) = timeout(PATIENCE, opened).await.map_err(|_| Lost)??;
        if response.status() != 200 {
            return Err(Lost);
        }
        Ok(Pushed::Events { body: response.into_body(), read: BytesMut::new() })
    }

    /// Opens the socket.
    pub(super) async fn socket(&self) -> Result<Pushed, Lost> {
        let opened = async {
            let url =
                format!("ws://{}{}", self.server.authority(), self.server.path("/ws/matching"));
            let mut request = url.into_client_request().map_err(|_| Lost)?;
            let token = format!("Bearer {}", self.token.as_deref().unwrap_or_default());
            request.headers_mut().insert(AUTHORIZATION, token.parse().map_err(|_| Lost)?);
            let stream = self.tcp().await?;
            let opened = tokio_tungstenite::client_async(request, stream).await;
            let (socket, _) = opened.map_err(|_| Lost)?;
            Ok(Pushed::Socket(Box::new(socket)))
        };
        timeout(PATIENCE, opened).await.map_err(|_| Lost)?
    }
}

impl Pushed {
    /// The next state; [`Lost`] when the connection ended.
    pub(super) async fn next(&mut self) -> Result<State, Lost> {
        loop {
            match self {
                Self::Events { body, read } => {
                    if let Some(event) = take_event(read) {
                        let data = event.lines().find_map(|line| line.strip_prefix("data:"));
                        // Comments show that the stream is alive and tell nothing.
                        let Some(data) = data else { continue };
                        let value = serde_json::from_str(data.trim()).map_err(|_| Lost)?;
                        return state(&value).ok_or(Lost);
                    }
                    let frame = body.frame().await.ok_or(Lost)?.map_err(|_| Lost)?;
                    if let Ok(data) = frame.into_data() {
                        read.extend_from_slice(&data);
                    }
                    if read.len() > LARGEST_ANSWER {
                        return Err(Lost);
                    }
                }
                Self::Socket(socket) => match socket.next().await.ok_or(Lost)?.map_err(|_| Lost)? {
                    Message::Text(text) => {
                        let value = serde_json::from_str(&text).map_err(|_| Lost)?;
                        return state(&value).ok_or(Lost);
                    }
                    Message::Close(_) => return Err(Lost),
                    _ => {}
                },
            }
        }
    }
}

/// Takes a complete event from what was read.
fn take_event(read: &mut BytesMut) -> Option<String> {
    let end = read.windows(2).position(|pair| pair == b"\n\n")?;
    let event = read.split_to(end + 2);
    Some(String::from_utf8_lossy(&event).into_owned())
}

fn moment(value: &Value) -> Option<Millis> {
    let moment: jiff::Timestamp = value.as_str()?.parse().ok()?;
    u64::try_from(moment.as_millisecond()).ok()
}

fn small(value: &Value) -> Option<u8> {
    value.as_u64().and_then(|number| u8::try_from(number).ok())
}

/// A state as the interface writes it.
pub(super) fn state(value: &Value) -> Option<State> {
    match value["status"].as_str()? {
        "idle" => Some(State::Idle { reason: value["reason"].as_str().map(str::to_owned) }),
        "waiting" => Some(State::Waiting(Waiting {
            queue: (value["topic_id"].as_i64()?, small(&value["room_type"])?),
            since: moment(&value["waiting_since"])?,
            expires_at: moment(&value["expires_at"])?,
            fallback_at: moment(&value["fallback_at"]),
            poll_after: value["poll_after_ms"].as_u64().unwrap_or(2_000),
        })),
        "matched" => Some(State::Matched(Seat {
            room: value["room_id"].as_str()?.to_owned(),
            topic: value["topic_id"].as_i64()?,
            size: small(&value["room_type"])?,
            requested: small(&value["requested_room_type"])?,
            at: moment(&value["matched_at"])?,
        })),
        _ => None,
    }
}

/// A room as the interface shows it to a member.
pub(super) fn room_view(value: &Value) -> Option<RoomView> {
    let seats = value["seats"].as_array()?;
    Some(RoomView {
        room: value["room_id"].as_str()?.to_owned(),
        topic: value["topic_id"].as_i64()?,
        size: small(&value["room_type"])?,
        created_at: moment(&value["created_at"])?,
        ended_at: moment(&value["ended_at"]),
        me: small(&value["me"])?,
        here: seats.iter().map(|seat| seat["state"] != "left").collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_one_by_one_and_only_when_they_are_complete() {
        let mut read =
            BytesMut::from("event: state\ndata: {\"status\":\"idle\"}\n\n: alive\n\ndat");
        assert!(take_event(&mut read).unwrap().contains("idle"));
        assert_eq!(take_event(&mut read).unwrap(), ": alive\n\n");
        assert_eq!(take_event(&mut read), None);
        assert_eq!(&read[..], b"dat");
    }

    #[test]
    fn states_are_read_as_the_interface_writes_them() {
        let value = serde_json::json!({
            "status": "matched", "room_id": "r", "topic_id": 4, "room_type": 2,
            "requested_room_type": 3, "matched_at": "2026-01-02T03:04:05.678Z"
        });
        let Some(State::Matched(seat)) = state(&value) else { panic!("{value}") };
        assert_eq!((seat.size, seat.requested, seat.at), (2, 3, 1_767_323_045_678));
        assert_eq!(state(&serde_json::json!({ "status": "other" })), None);
    }
}
