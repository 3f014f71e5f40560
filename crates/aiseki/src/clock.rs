//! The only place that reads a clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aiseki_lobby::Millis;

/// Beyond this a stored time is no longer taken for the true one that the wall has stepped back from.
const TRUSTED_AHEAD: Millis = 24 * 3_600_000;

/// A store's clock: the wall's time when it was started, and from then on a monotonic one. It never
/// goes back, whatever happens to the wall clock meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started_at: Millis,
    started: Instant,
}

impl Clock {
    /// Starts a clock that shows no time before `seen`, the latest time that the store has written:
    /// after a restart people would otherwise wait in the future. A `seen` of more than a day ahead
    /// of the wall is taken for a mistake of the past and not followed.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn start(seen: Millis) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall = Millis::try_from(wall.as_millis()).unwrap_or(Millis::MAX);
        let followed = seen.saturating_sub(wall) <= TRUSTED_AHEAD;
        Self { started_at: if followed { wall.max(seen) } else { wall }, started: Instant::now() }
    }

    /// Milliseconds since the Unix epoch.
    pub fn now(&self) -> Millis {
        let elapsed = Millis::try_from(self.started.elapsed().as_millis()).unwrap_or(Millis::MAX);
        self.started_at.saturating_add(elapsed)
    }
}

/// Measures how long something takes.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_shows_no_time_before_the_latest_that_was_written() {
        let wall = Clock::start(0).now();
        let ten_minutes_ahead = wall + 600_000;
        assert!(Clock::start(ten_minutes_ahead).now() >= ten_minutes_ahead);
        // A clock that once stood ten years ahead does not decide the time for ever.
        let years_ahead = wall + 10 * 365 * TRUSTED_AHEAD;
        assert!(Clock::start(years_ahead).now() < years_ahead);
    }
}
