//! What is wrong with a queue or its server, and what the server's settings can lose.
//!
//! The server is looked at from outside, a page at a time, so that nothing is held up. What looks
//! wrong then is asked for again in one step, and only what is wrong there too is reported.

mod invariants;
mod settings;
pub(crate) mod simple;

use crate::error::Result;
use crate::link::Link;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::plain::Plain;
use crate::server::Server;
use crate::streams::Streams;

/// So many dead letters want a person's eyes.
const MANY_DEAD: u64 = 1_000;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Good,
    /// Something to know: a choice, and what it can lose.
    Note,
    /// Something is wrong.
    Wrong,
}

impl Level {
    /// `good`, `note` or `wrong`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Wrong => "wrong",
        }
    }
}

/// One thing that the doctor found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// What it is about, such as `eviction` or `leases`.
    pub subject: &'static str,
    /// The finding, in plain words.
    pub text: String,
}

impl Finding {
    fn good(subject: &'static str, text: impl Into<String>) -> Self {
        Self { level: Level::Good, subject, text: text.into() }
    }

    fn note(subject: &'static str, text: impl Into<String>) -> Self {
        Self { level: Level::Note, subject, text: text.into() }
    }

    fn wrong(subject: &'static str, text: impl Into<String>) -> Self {
        Self { level: Level::Wrong, subject, text: text.into() }
    }
}

/// Looks at a server's version, persistence, eviction, memory and replication.
pub async fn examine_server(server: &Server) -> Result<Vec<Finding>> {
    let link = Link::new(server.clone(), Metrics::default());
    settings::examine(&link).await
}

/// Looks at a `lists` queue: every message in exactly one state, no payload without a message, no
/// unique key that points nowhere; the longest list, its encoding, and the dead letters.
pub async fn examine_queue(queue: &Lists) -> Result<Vec<Finding>> {
    invariants::examine(queue.shared()).await
}

/// Looks at a `plain` queue: its length, what is out with workers, lists of workers that nobody
/// knows of and will never give back, dead letters.
pub async fn examine_plain(queue: &Plain) -> Result<Vec<Finding>> {
    let (link, parts) = queue.parts().await?;
    simple::examine_plain(link, parts).await
}

/// Looks at a `streams` queue: its length, its group, entries that are out and were deleted or
/// trimmed, dead letters.
pub async fn examine_streams(queue: &Streams) -> Result<Vec<Finding>> {
    let (link, keys) = queue.parts();
    simple::examine_streams(link, keys).await
}

/// Dead letters wait for somebody.
fn dead_letters(name: &str, count: u64) -> Option<Finding> {
    let text = format!("{name}: {count} dead letters wait for replay or drop");
    match count {
        0 => None,
        count if count < MANY_DEAD => Some(Finding::note("dead letters", text)),
        _ => Some(Finding::wrong("dead letters", text)),
    }
}
