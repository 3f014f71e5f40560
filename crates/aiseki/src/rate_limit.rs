//! How often somebody may do something.

mod limiter;

use std::fmt;
use std::str::FromStr;

use aiseki_lobby::Millis;

use crate::duration;

pub use limiter::{AddressGroup, Limited, RateLimiter, RateLimits};

/// The most that a limit lets through at once.
pub const LARGEST_BURST: u32 = 1_000_000;

/// `30/1m`: so many are let through at once, and refill evenly over so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// How many are let through at once: 1 to [`LARGEST_BURST`].
    pub burst: u32,
    /// How long the whole burst takes to refill: 1 ms to a day.
    pub per: Millis,
}

impl RateLimit {
    /// Counts an attempt if it is let through. `empty_at` is all that has to be remembered of the
    /// attempts before: when the bucket will be empty, in parts of a millisecond of which there are
    /// as many as the burst. 0 at first.
    pub fn take(self, empty_at: &mut u64, now: Millis) -> Result<(), Limited> {
        let burst = u64::from(self.burst);
        let after_this = (*empty_at).max(now * burst) + self.per;
        let retry_after = after_this.saturating_sub((now + self.per) * burst).div_ceil(burst);
        if retry_after > 0 {
            return Err(Limited { retry_after });
        }
        *empty_at = after_this;
        Ok(())
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.burst, duration::Shown(self.per))
    }
}

/// Why a text is no limit: one clause for the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimitError(String);

impl fmt::Display for RateLimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RateLimitError {}

impl FromStr for RateLimit {
    type Err = RateLimitError;

    fn from_str(text: &str) -> Result<Self, RateLimitError> {
        let malformed =
            || RateLimitError("expected a number per duration, such as 30/1m or 5/10s".into());
        let (burst, per) = text.split_once('/').ok_or_else(malformed)?;
        let (burst, per) = (burst.trim(), per.trim());
        if burst.is_empty() || !burst.bytes().all(|b| b.is_ascii_digit()) || per.is_empty() {
            return Err(malformed());
        }
        let burst =
            burst.parse().ok().filter(|burst| (1..=LARGEST_BURST).contains(burst)).ok_or_else(
                || RateLimitError(format!("expected 1 to {LARGEST_BURST} before the /")),
            )?;
        let per = duration::parse(per, 1..=duration::DAY)
            .map_err(|error| RateLimitError(format!("after the /, {error}")))?;
        Ok(Self { burst, per })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_written_alike() {
        for (text, burst, per, shown) in [
            ("30/1m", 30, 60_000, "30/1m"),
            (" 600 / 60s ", 600, 60_000, "600/1m"),
            ("1/1ms", 1, 1, "1/1ms"),
        ] {
            let limit: RateLimit = text.parse().unwrap();
            assert_eq!((limit, limit.to_string().as_str()), (RateLimit { burst, per }, shown));
        }
    }

    #[test]
    fn what_is_no_limit_is_refused_with_what_is_expected() {
        for (text, expected) in [
            ("", "expected a number per duration"),
            ("30", "expected a number per duration"),
            ("/1m", "expected a number per duration"),
            ("30/", "expected a number per duration"),
            ("-1/1m", "expected a number per duration"),
            ("0/1m", "expected 1 to 1000000 before the /"),
            ("99999999999/1m", "expected 1 to 1000000 before the /"),
            ("30/1", "after the /, a duration needs a unit"),
            ("30/0s", "after the /, expected a duration from 1ms to 1d"),
            ("30/2d", "after the /, expected a duration from 1ms to 1d"),
        ] {
            let error = text.parse::<RateLimit>().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }
}
