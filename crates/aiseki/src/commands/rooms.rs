//! `aiseki rooms`: who sits where.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{self, Client, Connection};
use super::{Exit, Failure, output};
use crate::config::Environment;

/// As many as a server gives at once.
const ROOMS_PER_PAGE: &str = "1000";

/// List and close the live rooms of a running server
#[derive(Args)]
#[command(after_help = client::HELP)]
pub(super) struct Rooms {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    list: List,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Subcommand)]
enum Action {
    /// List the live rooms, a line for each seat (the default)
    List(List),
    /// Close a room; everybody in it is idle then
    Close {
        /// The room
        #[arg(value_parser = room_id)]
        id: String,
    },
}

#[derive(Args)]
struct List {
    /// Only rooms of this topic
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(i64).range(1..))]
    topic: Option<i64>,
}

/// It becomes a part of a path, so it must look like what `aiseki rooms` shows.
fn room_id(text: &str) -> Result<String, &'static str> {
    let plain = |b: u8| b.is_ascii_hexdigit() || b == b'-';
    if text.len() <= 36 && !text.is_empty() && text.bytes().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("expected the id of a room, as `aiseki rooms` shows it")
    }
}

#[derive(Deserialize)]
struct Page {
    rooms: Vec<Value>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct LiveRoom {
    room_id: String,
    topic_id: i64,
    room_type: u8,
    created_at: String,
    seats: Vec<Occupant>,
}

#[derive(Deserialize)]
struct Occupant {
    seat: u8,
    session: String,
    requested_room_type: u8,
    state: Option<String>,
}

impl Rooms {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let json = self.connection.json;
        let client = self.connection.client(environment)?;
        let text = match self.action {
            Some(Action::Close { .. }) if self.list.topic.is_some() => {
                return Err(Failure::new(Exit::Usage, "--topic is for listing rooms only"));
            }
            Some(Action::Close { id }) => {
                let route = format!("/admin/rooms/{id}/close");
                let answer = client.send(&Method::POST, &route, None)?;
                if json { answer.json() } else { format!("room {id} is closed\n") }
            }
            Some(Action::List(List { topic })) => list(&client, topic.or(self.list.topic), json)?,
            None => list(&client, self.list.topic, json)?,
        };
        output::print(&text)
    }
}

fn list(client: &Client, topic: Option<i64>, json: bool) -> Result<String, Failure> {
    let rooms = all(client, topic)?;
    if json {
        return Ok(format!("{}\n", json!({ "rooms": rooms, "next": null })));
    }
    let rooms: Result<Vec<LiveRoom>, _> = rooms.into_iter().map(serde_json::from_value).collect();
    let rooms = rooms.map_err(|error| {
        Failure::new(Exit::Failed, format_args!("the answer is not as aiseki's are: {error}"))
    })?;
    Ok(table(rooms))
}

/// Turns the pages until there are no more.
fn all(client: &Client, topic: Option<i64>) -> Result<Vec<Value>, Failure> {
    let (mut rooms, mut after) = (Vec::new(), None);
    loop {
        let page: Page = client.get(&route(topic, after.as_deref()))?.read()?;
        rooms.extend(page.rooms);
        if page.next.is_none() {
            return Ok(rooms);
        }
        if page.next == after {
            return Err(Failure::new(Exit::Failed, "the server gives the same page twice"));
        }
        after = page.next;
    }
}

fn route(topic: Option<i64>, after: Option<&str>) -> String {
    let mut route = String::from("/admin/rooms");
    let mut separator = '?';
    let mut parameter = |name: &str, value: &str| {
        let _ = write!(route, "{separator}{name}=");
        separator = '&';
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                route.push(char::from(byte));
            } else {
                let _ = write!(route, "%{byte:02X}");
            }
        }
    };
    parameter("limit", ROOMS_PER_PAGE);
    if let Some(topic) = topic {
        parameter("topic", &topic.to_string());
    }
    if let Some(after) = after {
        parameter("after", after);
    }
    route
}

/// A line for each seat, each complete, so that it can be searched; the session is what a ban takes.
fn table(rooms: Vec<LiveRoom>) -> String {
    if rooms.is_empty() {
        return "There are no live rooms.\n".into();
    }
    let rows = rooms.into_iter().flat_map(|room| {
        let LiveRoom { room_id, topic_id, room_type, created_at, seats } = room;
        seats.into_iter().map(move |seat| {
            [
                room_id.clone(),
                topic_id.to_string(),
                room_type.to_string(),
                created_at.clone(),
                seat.seat.to_string(),
                seat.state.unwrap_or_else(|| "held".into()),
                seat.requested_room_type.to_string(),
                seat.session,
            ]
        })
    });
    output::table(
        ["ROOM", "TOPIC", "ROOM TYPE", "SINCE", "SEAT", "STATE", "ASKED FOR", "SESSION"],
        rows,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_escaped() {
        assert_eq!(route(None, None), "/admin/rooms?limit=1000");
        assert_eq!(
            route(Some(4), Some("a/ =&é")),
            "/admin/rooms?limit=1000&topic=4&after=a%2F%20%3D%26%C3%A9"
        );
    }

    #[test]
    fn a_room_is_named_by_its_id() {
        assert!(room_id("0197a3c4-0000-7000-8000-000000000001").is_ok());
        for text in ["", "..", "a/b", "0197 a", "xyz"] {
            assert!(room_id(text).is_err(), "{text}");
        }
    }
}
