//! A WebSocket as a client holds it.

use std::net::SocketAddr;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::Answer;

pub(crate) struct Socket {
    inner: WebSocketStream<TcpStream>,
    /// The subprotocol that the server agreed to.
    pub(crate) protocol: Option<String>,
}

/// What came on the socket.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame {
    State(Value),
    Ping,
    Closed(u16),
    /// The connection broke off without a closing frame.
    Broken,
}

impl Socket {
    pub(super) async fn open(
        address: SocketAddr,
        path: &str,
        headers: &[(String, String)],
    ) -> Result<Self, Answer> {
        match Self::try_open(address, path, headers).await {
            Ok(opened) => opened,
            Err(error) => panic!("no WebSocket at {path}: {error}"),
        }
    }

    /// At a server that may be gone.
    pub(super) async fn try_open(
        address: SocketAddr,
        path: &str,
        headers: &[(String, String)],
    ) -> Result<Result<Self, Answer>, Error> {
        let stream = TcpStream::connect(address).await?;
        let mut request = format!("ws://{address}{path}").into_client_request().expect("a request");
        for (name, value) in headers {
            let name: HeaderName = name.parse().expect("a name");
            let value: HeaderValue = value.parse().expect("a value");
            request.headers_mut().insert(name, value);
        }
        match client_async(request, stream).await {
            Ok((inner, response)) => {
                let protocol = response.headers().get("sec-websocket-protocol");
                let protocol = protocol.map(|text| text.to_str().expect("a text").to_owned());
                Ok(Ok(Self { inner, protocol }))
            }
            Err(Error::Http(response)) => {
                let (head, body) = response.into_parts();
                let body = String::from_utf8(body.unwrap_or_default()).expect("UTF-8");
                let call = format!("GET {path} (WebSocket)");
                let status = head.status.as_u16();
                Ok(Err(Answer { call, status, headers: head.headers, body }))
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn next(&mut self) -> Frame {
        match self.inner.next().await {
            Some(Ok(Message::Text(text))) => {
                Frame::State(serde_json::from_str(&text).expect("JSON"))
            }
            Some(Ok(Message::Ping(_))) => Frame::Ping,
            Some(Ok(Message::Close(frame))) => {
                Frame::Closed(frame.map_or(1005, |frame| frame.code.into()))
            }
            Some(Ok(other)) => panic!("an unexpected frame: {other:?}"),
            Some(Err(_)) | None => Frame::Broken,
        }
    }

    /// The next state, with pings passed over.
    pub(crate) async fn state(&mut self) -> Value {
        loop {
            match self.next().await {
                Frame::State(state) => return state,
                Frame::Ping => {}
                ended => panic!("the socket ended: {ended:?}"),
            }
        }
    }

    /// Says something to a server that may be gone; whether it was sent.
    pub(crate) async fn try_say(&mut self, text: &str) -> bool {
        self.inner.send(Message::text(text)).await.is_ok()
    }

    /// The same with a binary frame.
    pub(crate) async fn try_send_bytes(&mut self, bytes: Vec<u8>) -> bool {
        self.inner.send(Message::binary(bytes)).await.is_ok()
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.inner.send(Message::text(text)).await.expect("sent");
    }

    pub(crate) async fn close(mut self) {
        self.inner.close(None).await.expect("closed");
    }
}
