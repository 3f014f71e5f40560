//! `aiseki queues`: who waits for what, and for how long.

use clap::Args;
use serde::Deserialize;

use super::client::{self, Connection};
use super::{Failure, output};
use crate::config::Environment;
use crate::duration::{SECOND, Shown};

/// Show the queues of a running server in which people wait
#[derive(Args)]
#[command(after_help = client::HELP)]
pub(super) struct Queues {
    #[command(flatten)]
    connection: Connection,
}

#[derive(Deserialize)]
struct All {
    queues: Vec<Queue>,
}

#[derive(Deserialize)]
struct Queue {
    topic_id: i64,
    /// None when the topic has gone meanwhile.
    title: Option<String>,
    room_type: u8,
    waiting: u64,
    oldest_waiting_since: String,
    oldest_wait_ms: u64,
}

impl Queues {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let json = self.connection.json;
        let answer = self.connection.client(environment)?.get("/admin/queues")?;
        output::print(&if json { answer.json() } else { table(answer.read()?) })
    }
}

fn table(All { queues }: All) -> String {
    if queues.is_empty() {
        return "Nobody waits.\n".into();
    }
    let rows = queues.into_iter().map(|queue| {
        // Whole seconds are enough for people.
        let wait = Shown(queue.oldest_wait_ms / SECOND * SECOND).to_string();
        [
            queue.topic_id.to_string(),
            queue.room_type.to_string(),
            queue.waiting.to_string(),
            wait,
            queue.oldest_waiting_since,
            queue.title.unwrap_or_default(),
        ]
    });
    output::table(["TOPIC", "ROOM TYPE", "WAITING", "OLDEST", "SINCE", "TITLE"], rows)
}
