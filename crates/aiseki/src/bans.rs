//! Who may not join.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use aiseki_lobby::{Millis, SessionId};
use ipnet::IpNet;

use crate::port::{Pending, Unavailable};

/// A reason has at most so many characters.
pub const REASON_CHARACTERS: usize = 500;

/// Somebody who may not join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ban {
    /// Its number, which is never used again.
    pub id: i64,
    /// Who.
    pub subject: BanSubject,
    /// What the operator noted.
    pub reason: String,
    /// Since when.
    pub created_at: Millis,
    /// Until when; `None` for ever.
    pub expires_at: Option<Millis>,
}

impl Ban {
    /// Whether it counts at `now`.
    pub fn in_force(&self, now: Millis) -> bool {
        self.expires_at.is_none_or(|at| now < at)
    }
}

/// Whom a ban is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BanSubject {
    /// One person.
    Session(SessionId),
    /// Everybody of a network, or of a single address.
    Network(IpNet),
}

impl BanSubject {
    /// Whether it is about this person at this address.
    pub fn covers(&self, session: SessionId, address: IpAddr) -> bool {
        match self {
            Self::Session(banned) => *banned == session,
            Self::Network(network) => network.contains(&address.to_canonical()),
        }
    }
}

/// Where bans are kept.
pub trait BanStore: Send + Sync {
    /// All bans that have not been removed, also those whose time is over.
    fn bans(&self) -> Pending<'_, Vec<Ban>>;
    /// Adds a ban under a new number.
    fn add_ban(
        &self,
        subject: BanSubject,
        reason: String,
        expires_at: Option<Millis>,
    ) -> Pending<'_, Ban>;
    /// Removes a ban; false when there is none with this number.
    fn remove_ban(&self, id: i64) -> Pending<'_, bool>;
}

/// The bans, known on this server without asking the store.
pub struct Bans {
    store: Arc<dyn BanStore>,
    known: RwLock<Known>,
}

/// The bans by number, and by what is asked of them at every join.
#[derive(Default)]
struct Known {
    bans: BTreeMap<i64, Ban>,
    sessions: HashMap<SessionId, Vec<i64>>,
    networks: Vec<i64>,
    /// How many changes were learned one by one. What was read before one of them may lack it.
    learned: u64,
}

impl Bans {
    /// Reads the bans from their store.
    pub async fn load(store: Arc<dyn BanStore>) -> Result<Self, Unavailable> {
        let bans = Self { store, known: RwLock::default() };
        bans.refresh().await?;
        Ok(bans)
    }

    /// Reads all bans again, which other servers may have changed, and says whether they have.
    pub async fn refresh(&self) -> Result<bool, Unavailable> {
        loop {
            let learned = self.known().learned;
            let mut read = Known { learned, ..Known::default() };
            for ban in self.store.bans().await? {
                read.insert(ban);
            }
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            if known.learned == learned {
                let changed = known.bans != read.bans;
                *known = read;
                return Ok(changed);
            }
        }
    }

    /// The bans in force at `now`, oldest first.
    pub fn in_force(&self, now: Millis) -> Vec<Ban> {
        self.known().bans.values().filter(|ban| ban.in_force(now)).cloned().collect()
    }

    /// Whether this person at this address may not join at `now`.
    pub fn banned(&self, session: SessionId, address: IpAddr, now: Millis) -> bool {
        let known = self.known();
        let of_session = known.sessions.get(&session).into_iter().flatten();
        of_session
            .chain(&known.networks)
            .filter_map(|id| known.bans.get(id))
            .any(|ban| ban.in_force(now) && ban.subject.covers(session, address))
    }

    /// Adds a ban.
    pub async fn add(
        &self,
        subject: BanSubject,
        reason: String,
        expires_at: Option<Millis>,
    ) -> Result<Ban, Unavailable> {
        let ban = self.store.add_ban(subject, reason, expires_at).await?;
        self.learn(|known| known.insert(ban.clone()));
        Ok(ban)
    }

    /// Removes a ban; false when there is none with this number.
    pub async fn remove(&self, id: i64) -> Result<bool, Unavailable> {
        let removed = self.store.remove_ban(id).await?;
        self.learn(|known| known.remove(id));
        Ok(removed)
    }

    fn learn(&self, change: impl FnOnce(&mut Known)) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.learned += 1;
        change(&mut known);
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn insert(&mut self, ban: Ban) {
        // A refresh may have brought it before the call that added it was answered.
        self.remove(ban.id);
        match ban.subject {
            BanSubject::Session(session) => self.sessions.entry(session).or_default().push(ban.id),
            BanSubject::Network(_) => self.networks.push(ban.id),
        }
        self.bans.insert(ban.id, ban);
    }

    fn remove(&mut self, id: i64) {
        let Some(ban) = self.bans.remove(&id) else { return };
        if let BanSubject::Session(session) = ban.subject {
            self.sessions.remove(&session);
            let others = self.bans.values().filter(|other| other.subject == ban.subject);
            let others: Vec<i64> = others.map(|other| other.id).collect();
            if !others.is_empty() {
                self.sessions.insert(session, others);
            }
        }
        self.networks.retain(|network| *network != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ban_covers_one_session_or_a_whole_network() {
        let (ann, bob) = (SessionId([1; 16]), SessionId([2; 16]));
        let home: IpAddr = "192.0.2.7".parse().unwrap();
        assert!(BanSubject::Session(ann).covers(ann, home));
        assert!(!BanSubject::Session(ann).covers(bob, home));
        let network = BanSubject::Network("192.0.2.0/24".parse().unwrap());
        assert!(network.covers(ann, home));
        assert!(network.covers(ann, "::ffff:192.0.2.7".parse().unwrap()));
        assert!(!network.covers(ann, "192.0.3.7".parse().unwrap()));
        assert!(!network.covers(ann, "2001:db8::1".parse().unwrap()));
    }
}
