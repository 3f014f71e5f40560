//! The waiting store on Redis or Valkey: one script for each transition, everything of a namespace in
//! one slot. See `ARCHITECTURE.md` for why it is built like this, and `lua/parts/lobby.lua` for what
//! each key holds.

mod announcements;
mod batch;
mod calls;
mod check;
mod doctor;
mod keys;
mod rooms;
mod scripts;
mod talk;
mod waiting;
mod words;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aiseki_lobby::{Change, Millis, Policy, RoomId, SessionId, State};
use aiseki_mq::{
    Consumer, Link, Lists, ListsOptions, Metrics, Queue as _, QueueName, Server, Timeouts,
};
use tokio::task::JoinHandle;

pub use check::CheckError;
pub use doctor::{Examination, Looked, Page};
pub use scripts::all_scripts;

use self::batch::Batch;
use self::calls::{JoinCall, cancel, enter, poll};
use self::keys::Keys;
use crate::clock::{Clock, Stopwatch};
use crate::matching::NotEntered;
use crate::port::Unavailable;
use crate::rate_limit::RateLimits;
use crate::rooms::{RoomRules, Signal};
use crate::shared::{Entry, Tick};

/// Joins, polls and cancels in one call of a script, at most: some milliseconds of the store's time.
const AT_ONCE: usize = 64;
/// A recorder that has taken a room and is silent for so long has lost it to the others.
const LEASE: Duration = Duration::from_secs(5);
/// Rooms that were settled lately are remembered, so that settling them again is known to be that.
const SETTLED_KEPT: u32 = 10_000;
/// How long an answer may take before the connection is given up, and a call with its repetitions. What
/// was not answered in that time is not repeated: the caller may do something else by then.
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(1),
    response: Duration::from_secs(2),
    operation: Duration::from_secs(2),
};

/// Before the first answer of the store.
const UNKNOWN: i64 = i64::MIN;

/// Where the waiting people are, and by which rules.
#[derive(Clone)]
pub struct Settings {
    /// The Redis or Valkey.
    pub server: Server,
    /// Everything is under this name.
    pub namespace: String,
    /// Who is seated when.
    pub policy: Policy,
    /// How often somebody may join.
    pub rate_limits: Option<RateLimits>,
    /// What was decided about rooms.
    pub rooms: RoomRules,
    /// For how long people who have shared a room meet others first, in milliseconds; 0: not at all.
    pub rematch_after: Millis,
    /// An evicting `maxmemory-policy` is accepted although it loses people.
    pub eviction_accepted: bool,
    /// For tests: milliseconds to use instead of the server's time.
    pub virtual_time: Option<Arc<AtomicU64>>,
}

/// Is told of something.
type Told<T> = Box<dyn Fn(&T) + Send + Sync>;

/// Is told what is new in a room, or that something may have been missed.
type Heard = Box<dyn Fn(Option<(RoomId, Signal)>) + Send + Sync>;

/// Who is told of what.
pub struct Listeners {
    /// What happened in the steps of this server.
    pub changes: Told<[Change]>,
    /// Whose state has changed, in the steps of all servers.
    pub changed: Box<dyn Fn(SessionId) + Send + Sync>,
    /// Who was seated, in the steps of all servers.
    pub seated: Told<[SessionId]>,
    /// Announcements may have been missed.
    pub missed: Box<dyn Fn() + Send + Sync>,
    /// What is new in rooms, of all servers; `None` when something may have been missed.
    pub room: Heard,
}

/// The waiting people, and the rooms that are to be written.
pub struct RedisStore {
    inner: Arc<Inner>,
    joins: Batch<JoinCall, Result<Entry, NotEntered>>,
    polls: Batch<SessionId, State>,
    cancels: Batch<SessionId, Result<(), State>>,
    listening: [JoinHandle<()>; 2],
}

struct Inner {
    link: Link,
    keys: Keys,
    policy: Policy,
    policy_text: String,
    rate_limits: Option<RateLimits>,
    room_rules: RoomRules,
    eviction_accepted: bool,
    virtual_time: Option<Arc<AtomicU64>>,
    rooms: Arc<dyn Consumer>,
    clock: Clock,
    /// What the store's clock is ahead of this process's, or [`UNKNOWN`].
    ahead: AtomicI64,
    available: AtomicBool,
    /// The number of the last announcement that was heard.
    heard: AtomicU64,
    counted: Mutex<Option<waiting::Count>>,
    /// When it was last said that memory is short.
    short_of_memory: Mutex<Option<Stopwatch>>,
    listeners: Listeners,
}

impl RedisStore {
    /// A store at this place. Nothing has to be there yet: as long as the server is away, calls are
    /// answered with [`Unavailable`].
    ///
    /// # Errors
    ///
    /// When the namespace cannot be one.
    pub fn new(settings: Settings, listeners: Listeners) -> aiseki_mq::Result<Self> {
        let Settings {
            server,
            namespace,
            policy,
            rate_limits,
            rooms: room_rules,
            rematch_after,
            eviction_accepted,
            virtual_time,
        } = settings;
        let server = server.with_timeouts(TIMEOUTS);
        let keys = Keys::new(&namespace);
        let options = ListsOptions {
            failure_budget: u32::MAX,
            crash_budget: u32::MAX,
            memo_limit: SETTLED_KEPT,
            virtual_time: virtual_time.clone(),
            ..ListsOptions::default()
        };
        let queue = Lists::new(&server, QueueName::new(keys.rooms())?, options);
        let rooms = queue.consumer("recorder", LEASE)?;
        let (every, width) = (tick_every(&policy), alarm_width(&policy, virtual_time.is_some()));
        let inner = Arc::new(Inner {
            link: Link::new(server.clone(), Metrics::default()),
            policy_text: words::policy(
                &policy,
                width,
                untended(&policy, every),
                room_rules,
                rematch_after,
            ),
            keys,
            policy,
            rate_limits,
            room_rules,
            eviction_accepted,
            virtual_time,
            rooms,
            clock: Clock::start(0),
            ahead: AtomicI64::new(UNKNOWN),
            available: AtomicBool::new(false),
            heard: AtomicU64::new(0),
            counted: Mutex::default(),
            short_of_memory: Mutex::default(),
            listeners,
        });
        let listening = [
            tokio::spawn(announcements::listen(Arc::clone(&inner), server.clone())),
            tokio::spawn(talk::listen(Arc::clone(&inner), server)),
        ];
        let (a, b, c) = (Arc::clone(&inner), Arc::clone(&inner), Arc::clone(&inner));
        Ok(Self {
            joins: Batch::new(AT_ONCE, move |joins| Box::pin(enter(Arc::clone(&a), joins))),
            polls: Batch::new(AT_ONCE, move |people| Box::pin(poll(Arc::clone(&b), people))),
            cancels: Batch::new(AT_ONCE, move |people| Box::pin(cancel(Arc::clone(&c), people))),
            inner,
            listening,
        })
    }

    /// How long a server may be silent until another tick is due.
    pub fn tick_every(&self) -> Duration {
        Duration::from_millis(tick_every(&self.inner.policy))
    }

    /// The number of the last announcement that was heard.
    pub fn last_heard(&self) -> u64 {
        self.inner.heard.load(Ordering::Acquire)
    }

    /// Does what is due, except that no room is formed.
    pub async fn sweep(&self) -> Result<Tick, Unavailable> {
        self.tick_with(0).await
    }

    /// The states of people, without a sign of life and without changing anything.
    pub async fn states(&self, people: &[SessionId]) -> Result<Vec<State>, Unavailable> {
        calls::states(&self.inner, &scripts::STATE, people).await
    }

    /// Gives back the rooms that this server has taken and not settled.
    pub async fn give_back(&self) {
        let _ = self.inner.rooms.drain(&[]).await;
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        for task in &self.listening {
            task.abort();
        }
    }
}

/// Presence is judged by signs of life, so a server ticks well within the presence time.
fn tick_every(policy: &Policy) -> Millis {
    (policy.presence_timeout / 6).clamp(50, 1_000)
}

/// After how long without a tick presence begins anew: over a third of the presence time, and more than
/// a server that is merely busy is late.
fn untended(policy: &Policy, every: Millis) -> Millis {
    (policy.presence_timeout / 3).max(2 * every + 500)
}

/// People are looked at in moments of this width: a fine one for short times.
fn alarm_width(policy: &Policy, exact: bool) -> Millis {
    if exact {
        return 1;
    }
    let shortest = policy.presence_timeout.min(policy.fallback_after).min(policy.wait_timeout);
    (shortest / 30).clamp(5, 200)
}
