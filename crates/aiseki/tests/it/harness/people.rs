//! Somebody with a session, and the calls by which people are seated.

use serde_json::{Value, json};

use super::{Answer, Client};

#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) client: Client,
    pub(crate) token: String,
}

impl Person {
    /// A new session at the server.
    pub(crate) async fn new(client: &Client) -> Self {
        let token = client.call("POST", "/api/session", None).await.expect(201)["token"].clone();
        let token = token.as_str().expect("a token").to_owned();
        Self { client: client.bearer(&token), token }
    }

    /// The same person at a server elsewhere, or after a restart.
    pub(crate) fn at(&self, client: &Client) -> Self {
        Self { client: client.bearer(&self.token), token: self.token.clone() }
    }

    pub(crate) async fn join(&self, topic: i64, room_type: u8) -> Answer {
        let body = json!({ "topic_id": topic, "room_type": room_type });
        self.client.post("/api/matching", &body).await
    }

    pub(crate) async fn state(&self) -> Value {
        self.client.get("/api/matching").await.expect(200)
    }

    pub(crate) async fn cancel(&self) -> Answer {
        self.client.delete("/api/matching").await
    }

    pub(crate) async fn long_poll(&self, seconds: u32) -> Answer {
        self.client.get(&format!("/api/matching?wait={seconds}")).await
    }

    pub(crate) async fn leave(&self, room: &str) -> Answer {
        self.client.call("POST", &format!("/api/rooms/{room}/leave"), None).await
    }

    pub(crate) async fn room(&self, room: &str) -> Answer {
        self.client.get(&format!("/api/rooms/{room}")).await
    }
}
