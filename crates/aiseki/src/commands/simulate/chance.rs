//! Chance under a seed, so that a run can be repeated as far as its network lets it.

use std::time::Duration;

/// A small generator (`SplitMix64`): good enough for behaviour, not for secrets.
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    /// The generator of one person of a run.
    pub(super) fn new(seed: u64, person: usize) -> Self {
        let mut chance = Self(seed ^ (person as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        chance.next();
        chance
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at least 1.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or(0)
    }

    /// A number below `bound`, each four times as likely as the next.
    pub(super) fn popular(&mut self, bound: usize) -> usize {
        (0..bound.saturating_sub(1)).find(|_| self.percent(75)).unwrap_or(bound.max(1) - 1)
    }

    /// True in so many of a hundred cases.
    pub(super) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A time from `least` to `most`.
    pub(super) fn time(&mut self, least: Duration, most: Duration) -> Duration {
        let span = u64::try_from(most.saturating_sub(least).as_micros()).unwrap_or(u64::MAX);
        least + Duration::from_micros(self.next() % span.max(1))
    }
}
