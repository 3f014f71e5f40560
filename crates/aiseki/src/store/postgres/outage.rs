//! Says once that something is away, and once that it is back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Stopwatch;

/// Outages that follow each other faster than this are one in the log.
const QUIET: Duration = Duration::from_secs(10);

/// Whether something answers, and what of it the log was told. A hundred calls a second that fail for
/// one reason are one line.
pub(super) struct Outage {
    name: &'static str,
    away: AtomicBool,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    /// The line that says that it is away has not been followed by one that says that it is back.
    open: bool,
    last: Option<Stopwatch>,
}

impl Outage {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, away: AtomicBool::new(false), told: Mutex::default() }
    }

    /// Something failed because of an outage.
    pub(super) fn failed(&self, what: &'static str, cause: &dyn std::fmt::Display) {
        self.away.store(true, Ordering::Release);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.open && told.last.is_none_or(|last| last.elapsed() >= QUIET) {
            tracing::error!(during = what, %cause, "the {} is away", self.name);
            *told = Told { open: true, last: Some(Stopwatch::start()) };
        }
    }

    /// Something succeeded.
    pub(super) fn succeeded(&self) {
        if self.away.load(Ordering::Acquire) && self.away.swap(false, Ordering::AcqRel) {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if std::mem::take(&mut told.open) {
                tracing::info!("the {} is back", self.name);
            }
        }
    }

    /// Whether the last that was tried failed because of an outage.
    pub(super) fn lasts(&self) -> bool {
        self.away.load(Ordering::Acquire)
    }
}
