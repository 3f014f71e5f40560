//! `aiseki mq dead`: dead letters.

use aiseki_mq::{DeadLetter, Which};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{At, Failure, Limits, failed, output};
use crate::config::Environment;

/// So much of a payload is shown in a table.
const SHOWN: usize = 40;

/// List dead letters, replay or drop them
#[derive(Args)]
pub(super) struct Dead {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List dead letters, the oldest first
    List {
        queue: String,

        /// How many to skip
        #[arg(long, value_name = "N", default_value_t = 0)]
        skip: usize,

        /// How many to list
        #[arg(long, value_name = "N", default_value_t = 100)]
        count: usize,

        #[command(flatten)]
        at: At,
    },
    /// Make dead letters ready again, with their id and a fresh budget
    Replay {
        queue: String,

        /// Which; all when none is named
        ids: Vec<String>,

        #[command(flatten)]
        at: At,
    },
    /// Remove dead letters for good
    Drop {
        queue: String,

        /// Which; all when none is named
        ids: Vec<String>,

        #[command(flatten)]
        at: At,
    },
}

impl Dead {
    pub(super) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        match self.command {
            Command::List { queue, skip, count, at } => {
                let opened = at.open(&queue, Limits::default(), environment)?;
                let letters = opened.dead_letters(skip, count).await.map_err(failed)?;
                let json = letters.iter().map(as_json).collect();
                at.print(&json, || as_table(&letters))
            }
            Command::Replay { queue, ids, at } => {
                let opened = at.open(&queue, Limits::default(), environment)?;
                let count = opened.replay(&which(ids)).await.map_err(failed)?;
                at.print(&json!({ "replayed": count }), || format!("{count} replayed\n"))
            }
            Command::Drop { queue, ids, at } => {
                let opened = at.open(&queue, Limits::default(), environment)?;
                let count = opened.drop_dead(&which(ids)).await.map_err(failed)?;
                at.print(&json!({ "dropped": count }), || format!("{count} dropped\n"))
            }
        }
    }
}

fn which(ids: Vec<String>) -> Which {
    if ids.is_empty() { Which::All } else { Which::Ids(ids) }
}

/// The payload as text where it is text, and always as base64.
fn as_json(letter: &DeadLetter) -> Value {
    json!({
        "id": letter.id,
        "reason": letter.reason,
        "died_ms": letter.died_ms,
        "failures": letter.failures,
        "crashes": letter.crashes,
        "payload": std::str::from_utf8(&letter.payload).ok(),
        "payload_base64": STANDARD.encode(&letter.payload),
    })
}

fn as_table(letters: &[DeadLetter]) -> String {
    let rows = letters.iter().map(|letter| {
        let payload: String =
            String::from_utf8_lossy(&letter.payload).chars().take(SHOWN).collect();
        let counts = format!("{}/{}", letter.failures, letter.crashes);
        [letter.id.clone(), counts, letter.reason.clone(), payload]
    });
    output::table(["ID", "FAILED/CRASHED", "REASON", "PAYLOAD"], rows)
}
