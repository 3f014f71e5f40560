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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_outage_is_one_line_and_its_end_another() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            let outage = Outage::new("database");
            outage.succeeded();
            for _ in 0..100 {
                outage.failed("writing", &"refused");
            }
            assert!(outage.lasts());
            outage.succeeded();
            outage.succeeded();
            assert!(!outage.lasts());
            // One that follows at once is no news.
            outage.failed("writing", &"refused");
            outage.succeeded();
        });
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("refused") && text.contains("is back"), "{text}");
    }
}
