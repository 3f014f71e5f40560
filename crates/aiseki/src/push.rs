//! Who is connected to this server and waits to be told of a change.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aiseki_lobby::SessionId;
use tokio::sync::watch;

/// Long polls, streams and sockets that one session may have open at once on this server.
pub const CONNECTIONS_PER_SESSION: usize = 8;

const SHARDS: usize = 64;

/// Called when the last connection of a session was closed by the person, or was lost.
type OnClosed = Box<dyn Fn(SessionId) + Send + Sync>;

/// Everybody who is connected, by session.
pub struct Push {
    shards: [Mutex<HashMap<SessionId, Connected>>; SHARDS],
    hasher: RandomState,
    on_closed: OnClosed,
}

/// One session's connections on this server.
struct Connected {
    open: usize,
    news: watch::Sender<()>,
}

/// One connection that hears of changes until it is dropped.
pub struct Subscription {
    push: Arc<Push>,
    session: SessionId,
    news: watch::Receiver<()>,
    answered: bool,
}

/// The session has [`CONNECTIONS_PER_SESSION`] connections open already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyConnections;

impl Push {
    /// Nobody is connected yet. `on_closed` is called for a session whose last connection ends
    /// before it was answered, and must not block.
    pub fn new(on_closed: impl Fn(SessionId) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            on_closed: Box::new(on_closed),
        })
    }

    /// From now on the subscription hears of every change of this session.
    pub fn subscribe(
        self: &Arc<Self>,
        session: SessionId,
    ) -> Result<Subscription, TooManyConnections> {
        let mut shard = self.shard(session);
        let connected = shard
            .entry(session)
            .or_insert_with(|| Connected { open: 0, news: watch::Sender::new(()) });
        if connected.open >= CONNECTIONS_PER_SESSION {
            return Err(TooManyConnections);
        }
        connected.open += 1;
        let news = connected.news.subscribe();
        Ok(Subscription { push: Arc::clone(self), session, news, answered: false })
    }

    /// Tells these sessions that their state has changed.
    pub fn announce(&self, session: SessionId) {
        if let Some(connected) = self.shard(session).get(&session) {
            connected.news.send_replace(());
        }
    }

    /// Everybody who is connected now.
    pub fn connected(&self) -> Vec<SessionId> {
        let mut sessions = Vec::new();
        for shard in &self.shards {
            sessions.extend(shard.lock().unwrap_or_else(PoisonError::into_inner).keys());
        }
        sessions
    }

    fn shard(&self, session: SessionId) -> MutexGuard<'_, HashMap<SessionId, Connected>> {
        let hash = usize::try_from(self.hasher.hash_one(session) % SHARDS as u64).unwrap_or(0);
        self.shards[hash].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscription {
    /// Waits until the session's state may have changed since the last call.
    pub async fn changed(&mut self) {
        // The sender lives as long as this subscription, so an error cannot occur.
        let _ = self.news.changed().await;
    }

    /// The person gets an answer, so the end of this connection says nothing about them.
    pub fn answered(&mut self) {
        self.answered = true;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut last = false;
        if let Entry::Occupied(mut connected) = self.push.shard(self.session).entry(self.session) {
            connected.get_mut().open -= 1;
            last = connected.get().open == 0;
            if last {
                connected.remove();
            }
        }
        if last && !self.answered {
            (self.push.on_closed)(self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const ANN: SessionId = SessionId([1; 16]);

    #[tokio::test]
    async fn every_connection_of_a_session_hears_of_a_change() {
        let push = Push::new(|_| {});
        let mut first = push.subscribe(ANN).unwrap();
        let mut second = push.subscribe(ANN).unwrap();
        push.announce(SessionId([2; 16]));
        push.announce(ANN);
        first.changed().await;
        second.changed().await;
        // A change between two waits is not missed either.
        push.announce(ANN);
        first.changed().await;
    }

    #[test]
    fn only_the_end_of_the_last_unanswered_connection_counts_as_closed() {
        let closed = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&closed);
        let push = Push::new(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let (first, mut second) = (push.subscribe(ANN).unwrap(), push.subscribe(ANN).unwrap());
        drop(first);
        assert_eq!(closed.load(Ordering::Relaxed), 0);
        assert_eq!(push.connected(), [ANN]);
        second.answered();
        drop(second);
        assert_eq!(closed.load(Ordering::Relaxed), 0);
        assert!(push.connected().is_empty());
        drop(push.subscribe(ANN).unwrap());
        assert_eq!(closed.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_session_has_a_bounded_number_of_connections() {
        let push = Push::new(|_| {});
        let mut open: Vec<_> =
            (0..CONNECTIONS_PER_SESSION).map(|_| push.subscribe(ANN).unwrap()).collect();
        assert!(push.subscribe(ANN).is_err());
        open.pop();
        assert!(push.subscribe(ANN).is_ok());
    }
}
