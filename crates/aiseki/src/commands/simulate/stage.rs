//! What all people of a run share: where they go, how fast they live, what is counted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::clock::Stopwatch;
use crate::commands::server_url::ServerUrl;

/// What all people of a run share.
pub(super) struct Stage {
    pub(super) servers: Vec<ServerUrl>,
    pub(super) topics: Vec<i64>,
    pub(super) room_types: Vec<u8>,
    pub(super) clock: Stopwatch,
    /// When people stop beginning anything new.
    pub(super) until: Duration,
    /// Somebody broke the run off.
    pub(super) broken_off: AtomicBool,
    /// How fast people live.
    pub(super) pace: Pace,
    pub(super) counts: Counts,
}

/// Times that differ between a server of our own and one that others use.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// Between two polls; none: as the server asks for.
    pub(super) poll: Option<Duration>,
    /// The longest time for which somebody vanishes.
    pub(super) vanish: Duration,
    /// The longest time between two waits, and that a conversation lasts.
    pub(super) rest: Duration,
    /// The longest `wait` of a long poll, in seconds.
    pub(super) long_poll: usize,
}

/// What is counted while it happens.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) joins: AtomicUsize,
    pub(super) waiting: AtomicUsize,
    pub(super) seated: AtomicUsize,
    pub(super) seats: AtomicUsize,
    pub(super) vanished: AtomicUsize,
    pub(super) returned: AtomicUsize,
    pub(super) moved: AtomicUsize,
    pub(super) limited: AtomicUsize,
    pub(super) unavailable: AtomicUsize,
    pub(super) lost: AtomicUsize,
    pub(super) unexpected: AtomicUsize,
}

pub(super) fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}
