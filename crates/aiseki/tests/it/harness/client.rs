//! A small HTTP client: a connection for each call, headers exactly as a test gives them.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Answer, Socket, Stream};

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    headers: Vec<(String, String)>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, headers: vec![("host".into(), address.to_string())] }
    }

    /// The same client with one more header.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.retain(|(known, _)| known != name);
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    pub(crate) fn bearer(&self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn cookie(&self, token: &str) -> Self {
        self.with("cookie", &format!("aiseki_session={token}"))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, None).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", path, Some(body.to_string())).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call("PUT", path, Some(body.to_string())).await
    }

    /// Any call. A body is sent as JSON unless the client says what else it is.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<String>) -> Answer {
        let call = format!("{method} {path}");
        match self.try_call(method, path, body).await {
            Ok(answer) => answer,
            Err(error) => panic!("no answer to {call}: {error}"),
        }
    }

    /// A call to a server that may be gone, or go.
    pub(crate) async fn try_call(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let response = self.open(method, path, body).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer {
            call: format!("{method} {path}"),
            status: head.status.as_u16(),
            headers: head.headers,
            body: String::from_utf8(body.to_vec())?,
        })
    }

    /// The head of the answer, with its body still to come.
    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
    ) -> Result<Response<Incoming>, Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect(self.address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        let typed = self.headers.iter().any(|(name, _)| name == "content-type");
        if body.is_some() && !typed {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(body.unwrap_or_default())))?;
        Ok(sender.send_request(request).await?)
    }

    /// An open stream of events.
    pub(crate) async fn stream(&self, path: &str) -> Stream {
        let response = self.open("GET", path, None).await.expect("an answer");
        Stream::new(response)
    }

    /// An open WebSocket, or the refusal of one.
    pub(crate) async fn socket(&self, path: &str) -> Result<Socket, Answer> {
        Socket::open(self.address, path, &self.headers).await
    }

    /// An open WebSocket at a server that may be gone.
    pub(crate) async fn try_socket(&self, path: &str) -> Option<Socket> {
        Socket::try_open(self.address, path, &self.headers).await.ok()?.ok()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends bytes as they are and returns all that comes back until the server closes.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        stream.write_all(bytes).await.expect("sent");
        let mut answer = Vec::new();
        // A server that closes on a client that still sends resets the connection.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }
}
