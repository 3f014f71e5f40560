//! What goes into a queue and what comes out.

use std::time::Duration;

use uuid::Uuid;

use crate::error::{Result, invalid};

/// The longest id or unique key, in bytes.
pub const LONGEST_NAME: usize = 256;

/// A message to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub(crate) id: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) delay: Duration,
    pub(crate) unique: Option<String>,
}

impl Message {
    /// A message with this payload (any bytes), a new id that is ordered by time, due at once.
    pub fn new(payload: impl Into<Vec<u8>>) -> Self {
        Self {
            id: Uuid::now_v7().to_string(),
            payload: payload.into(),
            delay: Duration::ZERO,
            unique: None,
        }
    }

    /// The same with an id of the caller's: a second message with this id is a duplicate, as long
    /// as the first is in the queue or remembered as done.
    #[must_use]
    pub fn with_id(self, id: impl Into<String>) -> Self {
        Self { id: id.into(), ..self }
    }

    /// The same, not delivered before `delay` has passed (whole milliseconds).
    #[must_use]
    pub fn with_delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// The same, refused while a live message with this key is in the queue. The key is free again
    /// when that message is acked, cancelled or dead.
    #[must_use]
    pub fn with_unique(self, key: impl Into<String>) -> Self {
        Self { unique: Some(key.into()), ..self }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How long it is not delivered.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Its unique key.
    pub fn unique(&self) -> Option<&str> {
        self.unique.as_deref()
    }

    pub(crate) fn check(&self) -> Result<()> {
        check_name("an id", &self.id)?;
        self.unique.as_deref().map_or(Ok(()), |key| check_name("a unique key", key))
    }
}

/// Names go into lists that are separated by line ends, and into terminals.
pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return invalid(format!("{what} has 1 to {LONGEST_NAME} bytes, this one {}", name.len()));
    }
    if name.chars().any(char::is_control) {
        return invalid(format!("{what} has no control characters: {name:?}"));
    }
    Ok(())
}

/// What became of one message of a `publish`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// It is in the queue.
    Accepted,
    /// A message with this id is in the queue already, or was lately done: nothing changed.
    Duplicate,
    /// Its unique key is taken; nothing changed.
    Taken {
        /// The id of the message that has the key.
        by: String,
    },
}

/// Proof of one delivery; settles it and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// The shard that the message is in.
    pub shard: usize,
    /// The message's id.
    pub id: String,
    /// The fencing token: for one message, a later delivery always has a higher one.
    pub token: u64,
}

/// One delivery of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// What to settle it with.
    pub receipt: Receipt,
    /// The payload, byte for byte.
    pub payload: Vec<u8>,
    /// How often its handler has failed.
    pub failures: u32,
    /// How often its worker was lost.
    pub crashes: u32,
    /// When it was published, in milliseconds since 1970; none where the engine does not know.
    pub published_ms: Option<u64>,
}

impl Delivery {
    /// The message's id.
    pub fn id(&self) -> &str {
        &self.receipt.id
    }

    /// 1 for the first delivery; deliveries that were released do not count.
    pub fn attempt(&self) -> u32 {
        1 + self.failures + self.crashes
    }
}

/// What became of an ack or nack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It was done.
    Done,
    /// It was done before, with the same token: an answer was lost, or the caller repeats itself.
    Repeated,
    /// The budget was used up, or it was asked for: the message is a dead letter now.
    Buried,
    /// Somebody else has had this message since, or it is gone. Nothing changed.
    Stale,
}

/// Why a delivery is given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The handler failed. Counted; past the failure budget it is a dead letter.
    Fail {
        /// When to try again.
        delay: Duration,
        /// Kept with the dead letter.
        reason: String,
    },
    /// Not now, and nobody's fault. Not counted.
    Release {
        /// When to try again.
        delay: Duration,
    },
    /// Trying again is useless: a dead letter at once.
    Bury {
        /// Kept with the dead letter.
        reason: String,
    },
}

/// A delivery that is given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nack {
    /// Which.
    pub receipt: Receipt,
    /// Why.
    pub verdict: Verdict,
}

/// What one exchange with the queue brought.
#[derive(Debug, Default)]
pub struct Exchange {
    /// One for each ack, in order.
    pub settled: Vec<Settled>,
    /// New deliveries.
    pub deliveries: Vec<Delivery>,
    /// More may be had at once: no need to wait.
    pub more: bool,
    /// When a lease or delay ends, from now; nobody should wait for longer.
    pub next_due: Option<Duration>,
    /// Somebody has paused the queue.
    pub paused: bool,
}

/// A message that will not be delivered again unless it is replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The shard that it is in.
    pub shard: usize,
    /// Its id.
    pub id: String,
    /// Why it died.
    pub reason: String,
    /// When it died, in milliseconds since 1970; none where the engine does not know.
    pub died_ms: Option<u64>,
    /// How often its handler had failed.
    pub failures: u32,
    /// How often its worker was lost.
    pub crashes: u32,
    /// The payload; empty when it was lost.
    pub payload: Vec<u8>,
}

/// Which dead letters an operation is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// All that are there when the call begins.
    All,
    /// Those with these ids.
    Ids(Vec<String>),
}

impl Which {
    /// Whether it is about this one.
    pub(crate) fn has(&self, id: &String) -> bool {
        match self {
            Self::All => true,
            Self::Ids(ids) => ids.contains(id),
        }
    }
}

/// How many messages are in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Waiting for a worker.
    pub ready: u64,
    /// Not yet due.
    pub delayed: u64,
    /// Out with a worker.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// Acked since the queue exists.
    pub acked: u64,
    /// The age of the oldest ready message, in milliseconds since it was published; 0 when there
    /// is none.
    pub oldest_ms: u64,
    /// Somebody has paused the queue.
    pub paused: bool,
}

impl Stats {
    /// Nothing is ready, delayed or out with a worker.
    pub fn is_empty(&self) -> bool {
        self.ready == 0 && self.delayed == 0 && self.leased == 0
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            ready: self.ready + other.ready,
            delayed: self.delayed + other.delayed,
            leased: self.leased + other.leased,
            dead: self.dead + other.dead,
            acked: self.acked + other.acked,
            oldest_ms: self.oldest_ms.max(other.oldest_ms),
            paused: self.paused || other.paused,
        }
    }
}
