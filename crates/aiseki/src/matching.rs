//! Seating people: who may join, and what a join, a poll and a cancellation do.

use std::net::IpAddr;
use std::sync::Arc;

use aiseki_lobby::{Millis, Queue, RoomId, SessionId, Sign, State, TopicId, Vacate};

use crate::bans::Bans;
use crate::port::{Pending, Unavailable};
use crate::rate_limit::{AddressGroup, Limited};
use crate::topics::{TopicRefusal, Topics};

/// Where people wait and sit. Each call is one atomic step, it goes on to its end when the caller
/// stops listening, and once it is answered it survives a crash.
pub trait LobbyStore: Send + Sync {
    /// Begins to wait, in the order of checks of the public contract: a mere repetition, the rate
    /// limits, the door, then the person's own state.
    fn enter(&self, join: Join, door: Arc<dyn Door>) -> Pending<'_, Result<Entered, NotEntered>>;
    /// Stops waiting; the error is the state of somebody for whom a room was formed first.
    fn cancel(&self, session: SessionId) -> Pending<'_, Result<(), State>>;
    /// The person's state, which is a sign of life.
    fn poll(&self, session: SessionId) -> Pending<'_, State>;
    /// Signs of life of many people.
    fn touch(&self, sessions: Vec<SessionId>, sign: Sign) -> Pending<'_, ()>;
    /// Gives up a seat.
    fn vacate(&self, session: SessionId, room: RoomId) -> Pending<'_, Vacate>;
    /// These two are never seated together again. Nobody loses a place or a seat by it.
    fn block(&self, by: SessionId, whom: SessionId) -> Pending<'_, ()>;
    /// Ends a room; false when it was not live.
    fn close_room(&self, room: RoomId) -> Pending<'_, bool>;
    /// Takes everybody out who waits for a topic.
    fn close_topic(&self, topic: TopicId) -> Pending<'_, ()>;
    /// Takes everybody out who waits and is banned by `bans`.
    fn expel_banned(&self, bans: Arc<Bans>) -> Pending<'_, ()>;
    /// Counts a new session against the limit of its address.
    fn count_new_session(&self, address: AddressGroup) -> Pending<'_, Result<(), Limited>>;
    /// How many people wait in each queue that has people.
    fn lengths(&self) -> Pending<'_, Vec<(Queue, usize)>>;
    /// Every queue that has people, by topic and room type, with its oldest wait.
    fn queues(&self) -> Pending<'_, Vec<QueueLength>>;
    /// The time by the store's clock.
    fn now(&self) -> Millis;
    /// Whether the store can be asked.
    fn available(&self) -> bool;
    /// Whether people can wait, and are not seated, because rooms cannot be written.
    fn degraded(&self) -> bool {
        false
    }
}

/// Somebody wants to wait.
#[derive(Clone, Copy, Debug)]
pub struct Join {
    /// Who.
    pub session: SessionId,
    /// For what.
    pub queue: Queue,
    /// From where.
    pub address: IpAddr,
    /// For which room a place is to be taken up again, when it is kept and in this queue.
    pub resume: Option<RoomId>,
}

/// Somebody waits, or is seated at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// The state now.
    pub state: State,
}

/// Why somebody does not wait now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotEntered {
    /// The policy has no such room type.
    InvalidRoomType,
    /// Too many attempts.
    RateLimited(Limited),
    /// The door stayed shut.
    TurnedAway(TurnedAway),
    /// Waiting in another queue: this is the state.
    AlreadyWaiting(State),
    /// Seated: this is the state.
    AlreadyMatched(State),
}

/// Why somebody may not join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnedAway {
    /// On the ban list.
    Banned,
    /// There is no such topic.
    UnknownTopic,
    /// The topic is switched off.
    InactiveTopic,
}

/// A queue that has people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLength {
    /// Which.
    pub queue: Queue,
    /// How many.
    pub waiting: usize,
    /// The `since` of the oldest.
    pub oldest_since: Millis,
}

/// Says who may join. Asked by the store in its place among the checks, so it must answer at once.
pub trait Door: Send + Sync {
    /// Whether this join may go on.
    fn check(&self, join: &Join, now: Millis) -> Result<(), TurnedAway>;
}

/// The door of the product: bans and topics.
struct Doorkeeper {
    topics: Arc<Topics>,
    bans: Arc<Bans>,
}

impl Door for Doorkeeper {
    fn check(&self, join: &Join, now: Millis) -> Result<(), TurnedAway> {
        if self.bans.banned(join.session, join.address, now) {
            return Err(TurnedAway::Banned);
        }
        self.topics.check(join.queue.topic).map_err(|refusal| match refusal {
            TopicRefusal::Unknown => TurnedAway::UnknownTopic,
            TopicRefusal::Inactive => TurnedAway::InactiveTopic,
        })
    }
}

/// The use cases of matching.
#[derive(Clone)]
pub struct Matching {
    store: Arc<dyn LobbyStore>,
    topics: Arc<Topics>,
    door: Arc<dyn Door>,
}

impl Matching {
    /// Matching on this store, with this door.
    pub fn new(store: Arc<dyn LobbyStore>, topics: Arc<Topics>, bans: Arc<Bans>) -> Self {
        let door = Arc::new(Doorkeeper { topics: Arc::clone(&topics), bans });
        Self { store, topics, door }
    }

    /// Joins a queue, and forms a room if that is possible now.
    pub async fn join(&self, join: Join) -> Result<Result<Entered, NotEntered>, Unavailable> {
        // Another server may have added the topic a moment ago, and the door answers from what is known.
        self.topics.look_up(join.queue.topic).await?;
        self.store.enter(join, Arc::clone(&self.door)).await
    }

    /// The person's state, and a room if one is possible now.
    pub async fn poll(&self, session: SessionId) -> Result<State, Unavailable> {
        self.store.poll(session).await
    }

    /// Stops waiting.
    pub async fn cancel(&self, session: SessionId) -> Result<Result<(), State>, Unavailable> {
        self.store.cancel(session).await
    }

    /// Gives up a seat.
    pub async fn leave(&self, session: SessionId, room: RoomId) -> Result<Vacate, Unavailable> {
        self.store.vacate(session, room).await
    }

    /// These two are never seated together again.
    pub async fn block(&self, by: SessionId, whom: SessionId) -> Result<(), Unavailable> {
        self.store.block(by, whom).await
    }

    /// Signs of life of people who hold a connection open, or the end of one.
    pub async fn touch(&self, sessions: Vec<SessionId>, sign: Sign) -> Result<(), Unavailable> {
        self.store.touch(sessions, sign).await
    }

    /// Lets an address make a new session.
    pub async fn admit_new_session(
        &self,
        address: IpAddr,
    ) -> Result<Result<(), Limited>, Unavailable> {
        self.store.count_new_session(address.into()).await
    }

    /// How many people wait in each queue that has people.
    pub async fn lengths(&self) -> Result<Vec<(Queue, usize)>, Unavailable> {
        self.store.lengths().await
    }

    /// Every queue that has people, by topic and room type, with its oldest wait.
    pub async fn queues(&self) -> Result<Vec<QueueLength>, Unavailable> {
        self.store.queues().await
    }

    /// The time by the store's clock.
    pub fn now(&self) -> Millis {
        self.store.now()
    }

    /// Whether matching is possible here.
    pub fn available(&self) -> bool {
        self.store.available()
    }

    /// Whether people can wait and are not seated for now.
    pub fn degraded(&self) -> bool {
        self.store.degraded()
    }
}
