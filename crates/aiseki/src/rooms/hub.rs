//! Which connections to which rooms are open on this server, and how they hear of something new.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aiseki_lobby::{RoomId, SessionId};
use tokio::sync::broadcast::{self, Receiver, Sender};

use super::{Attendance, RoomStore, Signal};
use crate::port::Unavailable;

/// Connections that one member may have open to a room on this server.
pub const VISITS_PER_MEMBER: usize = 8;

const SHARDS: usize = 64;
/// Signals that a connection may be behind before it reads the log instead.
const SIGNALS: usize = 16;
/// Connections renewed in one call to the store.
const RENEWED_AT_ONCE: usize = 1_000;

/// Everybody who is connected to a room, by room.
pub struct RoomHub {
    shards: [Mutex<HashMap<RoomId, Open>>; SHARDS],
    hasher: RandomState,
    next_connection: AtomicU64,
}

/// The connections to one room.
struct Open {
    signals: Sender<Signal>,
    connections: Vec<Attendance>,
}

impl RoomHub {
    /// How often a store is told that connections are still open.
    pub const RENEW_EVERY: Duration = Duration::from_secs(5);

    /// Nobody is connected yet.
    pub fn new() -> Arc<Self> {
        let hasher = RandomState::new();
        // Random, so that no two servers number their connections alike.
        let first = hasher.hash_one("the first connection");
        Arc::new(Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher,
            next_connection: AtomicU64::new(first),
        })
    }

    /// Tells every connection to this room on this server. Must not block, and does not.
    pub fn tell(&self, room: RoomId, signal: Signal) {
        if let Some(open) = self.shard(room).get(&room) {
            // Nobody listens any more: nobody is to be told.
            let _ = open.signals.send(signal);
        }
    }

    /// Tells all connections that signals may have been missed.
    pub fn tell_all(&self) {
        for shard in &self.shards {
            for open in shard.lock().unwrap_or_else(PoisonError::into_inner).values() {
                // More than anybody can be behind, so that everybody reads the log again.
                for _ in 0..=SIGNALS {
                    let _ = open.signals.send(Signal::Changed);
                }
            }
        }
    }

    /// Every connection to a room that is open on this server.
    pub fn connected(&self) -> Vec<Attendance> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(shard.values().flat_map(|open| open.connections.iter().copied()));
        }
        all
    }

    pub(super) fn number(&self) -> u64 {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers a connection; `None` when the member has too many.
    pub(super) fn open(&self, connection: Attendance) -> Option<Receiver<Signal>> {
        let mut shard = self.shard(connection.room);
        let open = shard.entry(connection.room).or_insert_with(|| Open {
            signals: broadcast::channel(SIGNALS).0,
            connections: Vec::new(),
        });
        let of_member = |session: SessionId| {
            open.connections.iter().filter(|other| other.session == session).count()
        };
        if of_member(connection.session) >= VISITS_PER_MEMBER {
            return None;
        }
        open.connections.push(connection);
        Some(open.signals.subscribe())
    }

    pub(super) fn close(&self, connection: &Attendance) {
        let mut shard = self.shard(connection.room);
        if let Some(open) = shard.get_mut(&connection.room) {
            open.connections.retain(|other| other.connection != connection.connection);
            if open.connections.is_empty() {
                shard.remove(&connection.room);
            }
        }
    }

    /// Tells the store of the open connections. Each part is handed over while no connection of it
    /// can end, so that the end of one always comes after.
    pub(super) async fn renew(&self, store: &dyn RoomStore) -> Result<(), Unavailable> {
        for shard in &self.shards {
            let mut pending = Vec::new();
            {
                let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
                let mut some = Vec::new();
                for open in shard.values() {
                    some.extend_from_slice(&open.connections);
                    if some.len() >= RENEWED_AT_ONCE {
                        pending.push(store.attend(std::mem::take(&mut some)));
                    }
                }
                if !some.is_empty() {
                    pending.push(store.attend(some));
                }
            }
            for renewed in pending {
                renewed.await?;
            }
        }
        Ok(())
    }

    fn shard(&self, room: RoomId) -> MutexGuard<'_, HashMap<RoomId, Open>> {
        let hash = usize::try_from(self.hasher.hash_one(room) % SHARDS as u64).unwrap_or(0);
        self.shards[hash].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
