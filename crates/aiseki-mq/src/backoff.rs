//! Waiting longer after each failure, and never all at the same moment.

use std::time::Duration;

/// Exponential backoff with full jitter: after the n-th failure in a row a random time between
/// nothing and `first` doubled n times, at most `most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The bound after the first failure.
    pub first: Duration,
    /// The bound that is never passed.
    pub most: Duration,
    /// After so many doublings the bound stays.
    pub doubling: u32,
}

impl Default for Backoff {
    /// Up to a second after the first failure, up to ten minutes after many.
    fn default() -> Self {
        Self { first: Duration::from_secs(1), most: Duration::from_mins(10), doubling: 16 }
    }
}

impl Backoff {
    /// The longest that [`Backoff::after`] may answer.
    pub fn bound(&self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.min(self.doubling));
        self.first.saturating_mul(doubled).min(self.most)
    }

    /// How long to wait after so many failures before this one.
    pub fn after(&self, failures: u32) -> Duration {
        self.bound(failures).mul_f64(random_fraction())
    }
}

/// A random number from 0 to 1.
fn random_fraction() -> f64 {
    // Without randomness from the system the middle is as good as any.
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_doubles_up_to_the_most() {
        let backoff = Backoff::default();
        assert_eq!(backoff.bound(0), Duration::from_secs(1));
        assert_eq!(backoff.bound(3), Duration::from_secs(8));
        assert_eq!(backoff.bound(1_000), Duration::from_mins(10));
    }

    #[test]
    fn the_jitter_fills_the_whole_range() {
        let backoff = Backoff::default();
        let waits: Vec<_> = (0..500).map(|_| backoff.after(4)).collect();
        assert!(waits.iter().all(|wait| *wait <= Duration::from_secs(16)));
        assert!(waits.iter().any(|wait| *wait < Duration::from_secs(4)));
        assert!(waits.iter().any(|wait| *wait > Duration::from_secs(12)));
    }
}
