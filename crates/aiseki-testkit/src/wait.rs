//! Waiting for a condition, with a deadline: the only way tests here wait for a result.

use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(5);

/// Asks `condition` again and again until it holds.
///
/// # Panics
///
/// When it does not hold within `deadline`; the message names `what`.
pub async fn eventually<F>(what: &str, deadline: Duration, mut condition: impl FnMut() -> F)
where
    F: Future<Output = bool>,
{
    let end = tokio::time::Instant::now() + deadline;
    while !condition().await {
        assert!(tokio::time::Instant::now() < end, "not within {deadline:?}: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// The same for code outside a runtime; the answer says whether the condition came to hold.
#[expect(clippy::disallowed_methods, reason = "the one place where a test run looks at a clock")]
pub fn eventually_blocking(deadline: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = std::time::Instant::now() + deadline;
    while !condition() {
        if std::time::Instant::now() >= end {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}
