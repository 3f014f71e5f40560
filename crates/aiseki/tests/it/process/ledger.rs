//! What was answered to people, and whether it still holds.

use std::collections::HashMap;

use serde_json::Value;

use crate::harness::{Client, Person};

/// Somebody who comes and goes, and remembers the last answer.
pub(super) struct Life {
    person: Person,
    random: u64,
    told: Told,
    /// The call that was not answered.
    unsure: Option<Call>,
}

/// What the last answer said.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    Fresh,
    Waiting { since: Value },
    Matched { room: String },
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Join,
    Poll,
    Cancel,
    Leave,
}

impl Told {
    fn by(state: &Value) -> Self {
        match state["status"].as_str() {
            Some("waiting") => Self::Waiting { since: state["waiting_since"].clone() },
            Some("matched") => {
                Self::Matched { room: state["room_id"].as_str().expect("a room").to_owned() }
            }
            Some("idle") if state.get("reason").is_none() => Self::Fresh,
            _ => Self::Gone,
        }
    }
}

impl Life {
    pub(super) fn new(person: Person, seed: u64) -> Self {
        let random = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { person, random, told: Told::Fresh, unsure: None }
    }

    pub(super) fn moves_to(&mut self, client: &Client) {
        self.person = self.person.at(client);
    }

    fn roll(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    /// One call; false when the server has gone.
    pub(super) async fn step(&mut self, topics: &[i64]) -> bool {
        let poll = self.roll(3) == 0;
        let call = match &self.told {
            _ if poll => Call::Poll,
            Told::Fresh | Told::Gone => Call::Join,
            Told::Waiting { .. } => Call::Cancel,
            Told::Matched { .. } => Call::Leave,
        };
        let (method, path, body) = match (call, &self.told) {
            (Call::Poll, _) => ("GET", "/api/matching".to_owned(), None),
            (Call::Cancel, _) => ("DELETE", "/api/matching".to_owned(), None),
            (Call::Leave, Told::Matched { room }) => {
                ("POST", format!("/api/rooms/{room}/leave"), None)
            }
            _ => {
                let topic = topics[usize::try_from(self.roll(topics.len() as u64)).unwrap()];
                let room_type = 2 + self.roll(2);
                let body = serde_json::json!({ "topic_id": topic, "room_type": room_type });
                ("POST", "/api/matching".to_owned(), Some(body.to_string()))
            }
        };
        self.unsure = Some(call);
        let Ok(answer) = self.person.client.try_call(method, &path, body).await else {
            return false;
        };
        self.unsure = None;
        self.told = match (call, answer.status) {
            (Call::Poll, 200) | (Call::Join, 200 | 202) => Told::by(&answer.json()),
            (Call::Cancel, 409) => Told::by(&answer.json()["state"]),
            (Call::Cancel | Call::Leave, 204) => Told::Gone,
            _ => panic!("{:?} was told {answer:?}", self.told),
        };
        true
    }

    /// Whether the state after the crash follows from what was answered before it.
    fn follows(&self, state: &Value) -> bool {
        let now = Told::by(state);
        let joining = self.unsure == Some(Call::Join);
        match (&self.told, &now) {
            // The same still; or it was a mere wait, from which others may have made more.
            (Told::Fresh, Told::Fresh)
            | (Told::Gone, Told::Gone)
            | (Told::Waiting { .. }, Told::Matched { .. }) => true,
            (Told::Fresh | Told::Gone, _) => joining,
            (Told::Waiting { since: before }, Told::Waiting { since }) => before == since,
            (Told::Matched { room: before }, Told::Matched { room }) => before == room,
            // The call that was not answered was carried out, or the others left the room.
            (Told::Waiting { .. } | Told::Matched { .. }, Told::Gone) => {
                state["reason"] == "room_closed"
                    || (state["reason"] == "left"
                        && matches!(self.unsure, Some(Call::Cancel | Call::Leave)))
            }
            _ => false,
        }
    }

    pub(super) async fn judge(&mut self, ledger: &mut Ledger) {
        let state = self.person.state().await;
        assert!(
            self.follows(&state),
            "told {:?}, then asked {:?}, and now {state}",
            self.told,
            self.unsure
        );
        self.told = Told::by(&state);
        self.unsure = None;
        if let Told::Matched { room } = &self.told {
            let view = self.person.room(room).await.expect(200);
            assert_eq!(view["status"], "live");
            let seat = view["me"].as_u64().expect("a seat");
            let other = ledger.seats.insert((room.clone(), seat), self.person.token.clone());
            assert_eq!(other, None, "two people on seat {seat} of {room}");
        }
    }
}

/// Everybody's seats together.
#[derive(Default)]
pub(super) struct Ledger {
    seats: HashMap<(String, u64), String>,
}

impl Ledger {
    /// The operators' list shows exactly these seats, each with another person on it.
    pub(super) async fn agrees_with(&self, admin: &Client) {
        let rooms = admin.get("/admin/rooms?limit=1000").await.expect(200);
        let mut sessions = Vec::new();
        for room in rooms["rooms"].as_array().expect("a list") {
            let seats = room["seats"].as_array().expect("a list");
            assert_eq!(seats.len() as u64, room["room_type"].as_u64().expect("a number"));
            let held: Vec<_> = seats.iter().filter(|seat| seat["state"] != "left").collect();
            assert!(held.len() >= 2, "{room} is live");
            for seat in held {
                let key = (
                    room["room_id"].as_str().expect("a room").to_owned(),
                    seat["seat"].as_u64().expect("a seat"),
                );
                assert!(self.seats.contains_key(&key), "nobody knows of {key:?}");
                sessions.push(seat["session"].as_str().expect("a session").to_owned());
            }
        }
        assert_eq!(sessions.len(), self.seats.len());
        sessions.sort();
        sessions.dedup();
        assert_eq!(sessions.len(), self.seats.len(), "somebody sits twice");
    }
}
