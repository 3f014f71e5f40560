//! Waiting for what has to happen, never for time to pass.

use std::time::Duration;

use aiseki::clock::Stopwatch;

/// What takes longer than this does not happen at all.
const DEADLINE: Duration = Duration::from_secs(20);
const BETWEEN_PROBES: Duration = Duration::from_millis(10);

/// Asks `probe` again and again until it finds what is expected, and fails after a while.
pub(crate) async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let probing = async {
        loop {
            if let Some(found) = probe().await {
                return found;
            }
            tokio::time::sleep(BETWEEN_PROBES).await;
        }
    };
    within(DEADLINE, what, probing).await
}

/// Fails when `future` takes longer than it may.
pub(crate) async fn within<T>(limit: Duration, what: &str, future: impl Future<Output = T>) -> T {
    let value = tokio::time::timeout(limit, future).await;
    value.unwrap_or_else(|_| panic!("not within {limit:?}: {what}"))
}

/// How long ago something began.
pub(crate) struct Since(Stopwatch);

impl Since {
    pub(crate) fn now() -> Self {
        Self(Stopwatch::start())
    }

    pub(crate) fn millis(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Lets time pass, where how long something lasts is what a test is about.
pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}
