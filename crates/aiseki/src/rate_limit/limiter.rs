//! The rule that counts: the generic cell rate algorithm (ITU-T I.371), with time as an argument.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

use aiseki_lobby::{Millis, SessionId};

use super::RateLimit;

/// The two limits on joining.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// Joins of one session.
    pub session: RateLimit,
    /// Joins and new sessions of one address.
    pub address: RateLimit,
}

/// Whose attempts are counted together: an IPv4 address, or the /64 network of an IPv6 address,
/// since a subscriber has a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressGroup(IpAddr);

impl fmt::Display for AddressGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<IpAddr> for AddressGroup {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
            }
        })
    }
}

/// Too many attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    /// The next attempt is let through after this long, if no other comes before it.
    pub retry_after: Millis,
}

/// Counts the attempts of everybody. A value without a clock.
pub struct RateLimiter(Option<(Buckets<SessionId>, Buckets<AddressGroup>)>);

impl RateLimiter {
    /// Without limits everything is let through.
    pub fn new(limits: Option<RateLimits>) -> Self {
        Self(limits.map(|limits| (Buckets::new(limits.session), Buckets::new(limits.address))))
    }

    /// A join: counted for the session and for its address when both let it through, and for neither
    /// otherwise.
    pub fn join(
        &mut self,
        session: SessionId,
        address: AddressGroup,
        now: Millis,
    ) -> Result<(), Limited> {
        let Some((sessions, addresses)) = &mut self.0 else { return Ok(()) };
        let retry_after = sessions.wait(session, now).max(addresses.wait(address, now));
        if retry_after > 0 {
            return Err(Limited { retry_after });
        }
        sessions.count(session, now);
        addresses.count(address, now);
        Ok(())
    }

    /// A new session from an address.
    pub fn new_session(&mut self, address: AddressGroup, now: Millis) -> Result<(), Limited> {
        let Some((_, addresses)) = &mut self.0 else { return Ok(()) };
        match addresses.wait(address, now) {
            0 => {
                addresses.count(address, now);
                Ok(())
            }
            retry_after => Err(Limited { retry_after }),
        }
    }
}

/// One bucket for each key, as the moment at which it will be empty again. That moment is kept in
/// fractions of a millisecond (`1 / burst`), so that nothing is lost to rounding.
struct Buckets<K> {
    limit: RateLimit,
    /// Keys counted in this period. One that was counted in neither period is empty for sure, so
    /// forgetting a whole generation at once costs nothing and forgets nothing.
    recent: HashMap<K, u64>,
    older: HashMap<K, u64>,
    turns_at: Millis,
}

impl<K: Copy + Eq + Hash> Buckets<K> {
    fn new(limit: RateLimit) -> Self {
        Self { limit, recent: HashMap::new(), older: HashMap::new(), turns_at: 0 }
    }

    /// How long until an attempt is let through; 0 for now.
    fn wait(&mut self, key: K, now: Millis) -> Millis {
        self.turn(now);
        let burst = u64::from(self.limit.burst);
        let full = self.limit.per * burst;
        let after_this = self.empty_at(key, now) + self.limit.per;
        after_this.saturating_sub(now * burst + full).div_ceil(burst)
    }

    fn count(&mut self, key: K, now: Millis) {
        let empty_at = self.empty_at(key, now) + self.limit.per;
        self.recent.insert(key, empty_at);
    }

    fn empty_at(&self, key: K, now: Millis) -> u64 {
        let known = self.recent.get(&key).or_else(|| self.older.get(&key)).copied();
        known.unwrap_or(0).max(now * u64::from(self.limit.burst))
    }

    fn turn(&mut self, now: Millis) {
        if now >= self.turns_at {
            self.older = std::mem::take(&mut self.recent);
            self.turns_at = now + self.limit.per;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_800_000_000_000;

    fn limiter(session: &str, address: &str) -> RateLimiter {
        RateLimiter::new(Some(RateLimits {
            session: session.parse().unwrap(),
            address: address.parse().unwrap(),
        }))
    }

    fn address(text: &str) -> AddressGroup {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn a_burst_passes_at_once_and_refills_evenly() {
        let mut limiter = limiter("3/1m", "600/1m");
        let (session, home) = (SessionId([1; 16]), address("192.0.2.1"));
        for _ in 0..3 {
            assert_eq!(limiter.join(session, home, NOW), Ok(()));
        }
        // One of three comes back every 20 s; refused attempts do not push it away.
        for at in [0, 1, 5_000, 19_999] {
            let refused = limiter.join(session, home, NOW + at).unwrap_err();
            assert_eq!(refused.retry_after, 20_000 - at);
        }
        assert_eq!(limiter.join(session, home, NOW + 20_000), Ok(()));
        assert!(limiter.join(session, home, NOW + 20_000).is_err());
        for at in [80_000, 80_000, 80_000] {
            assert_eq!(limiter.join(session, home, NOW + at), Ok(()));
        }
        assert!(limiter.join(session, home, NOW + 80_000).is_err());
    }

    #[test]
    fn a_limit_that_does_not_divide_evenly_loses_nothing_to_rounding() {
        let mut limiter = limiter("7/1s", "600/1m");
        let (session, home) = (SessionId([1; 16]), address("192.0.2.1"));
        let mut passed = 0;
        for at in 0..60_000 {
            passed += u32::from(limiter.join(session, home, NOW + at).is_ok());
        }
        assert_eq!(passed, 7 + 7 * 59 + 6);
    }

    #[test]
    fn an_attempt_that_one_limit_refuses_is_not_counted_by_the_other() {
        let mut limiter = limiter("2/1m", "1/1m");
        let (ann, bob, home) = (SessionId([1; 16]), SessionId([2; 16]), address("192.0.2.1"));
        assert!(limiter.join(ann, home, NOW).is_ok());
        assert_eq!(limiter.join(bob, home, NOW), Err(Limited { retry_after: 60_000 }));
        assert_eq!(limiter.new_session(home, NOW), Err(Limited { retry_after: 60_000 }));
        let elsewhere = address("192.0.2.2");
        assert!(limiter.join(bob, elsewhere, NOW).is_ok());
        assert!(limiter.join(bob, address("192.0.2.3"), NOW).is_ok());
        assert!(limiter.join(bob, address("192.0.2.4"), NOW).is_err());
    }

    #[test]
    fn an_ipv6_network_counts_as_one_and_a_mapped_address_as_ipv4() {
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:0:0:2"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
    }

    #[test]
    fn keys_that_are_empty_again_are_forgotten() {
        let mut limiter = limiter("2/1s", "1000000/1s");
        for i in 0..10_000_u64 {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&i.to_be_bytes());
            assert!(limiter.join(SessionId(id), address("192.0.2.1"), NOW + i).is_ok());
        }
        let (sessions, _) = limiter.0.as_ref().unwrap();
        assert!(sessions.recent.len() + sessions.older.len() <= 2_001);
    }

    #[test]
    fn without_limits_everything_passes() {
        let mut limiter = RateLimiter::new(None);
        for _ in 0..1_000 {
            assert!(limiter.join(SessionId([1; 16]), address("192.0.2.1"), NOW).is_ok());
            assert!(limiter.new_session(address("192.0.2.1"), NOW).is_ok());
        }
    }
}
