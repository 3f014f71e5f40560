use std::net::IpAddr;
use std::sync::Arc;

use aiseki::bans::{Ban, BanSubject, Bans};
use aiseki::conversations::Conversation;
use aiseki::matching::{Join, Matching, NotEntered};
use aiseki::operators::Operators;
use aiseki::rate_limit::RateLimits;
use aiseki::topics::{Title, Topics};
use aiseki_lobby::{
    IdleReason, Millis, Queue, RoomId, Seat, SessionId, Sign, State, TopicId, Vacate, Waiting,
};

use super::stores::{Place, Rules, Store};
use crate::harness::eventually;

/// A store that is open, with the product's use cases on it.
pub(crate) struct House {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) operators: Operators,
    pub(crate) topics: Arc<Topics>,
    matching: Matching,
    rules: Rules,
    // Last, so that its files go when nobody has them open any more.
    place: Box<dyn Place>,
}

/// The nth person.
pub(crate) fn person(n: u64) -> SessionId {
    SessionId((u128::from(n) + 1).to_be_bytes())
}

pub(crate) fn home() -> IpAddr {
    IpAddr::from([192, 0, 2, 1])
}

pub(crate) fn title(text: &str) -> Title {
    Title::try_from(text.to_owned()).expect("a title")
}

/// Limits as an operator writes them.
pub(crate) fn limits(session: &str, address: &str) -> RateLimits {
    let limit = |text: &str| text.parse().expect("a limit");
    RateLimits { session: limit(session), address: limit(address) }
}

impl House {
    pub(crate) async fn open(place: Box<dyn Place>) -> Self {
        Self::with(place, |_| {}).await
    }

    pub(crate) async fn with(place: Box<dyn Place>, change: impl FnOnce(&mut Rules)) -> Self {
        let mut rules = Rules::default();
        change(&mut rules);
        Self::enter(place, rules).await
    }

    async fn enter(place: Box<dyn Place>, rules: Rules) -> Self {
        let store = place.open(rules.clone()).await;
        let topics = Arc::new(Topics::load(store.clone()).await.expect("topics"));
        let bans = Arc::new(Bans::load(store.clone()).await.expect("bans"));
        let operators = Operators::new(topics.clone(), bans.clone(), store.clone(), store.clone());
        operators.reconcile().await.expect("the store answers");
        let matching = Matching::new(store.clone(), topics.clone(), bans);
        Self { store, operators, topics, matching, rules, place }
    }

    /// The same data as after a restart.
    pub(crate) async fn reopen(self) -> Self {
        self.reopen_with(|_| {}).await
    }

    /// The same data as after a restart with other settings.
    pub(crate) async fn reopen_with(self, change: impl FnOnce(&mut Rules)) -> Self {
        let Self { store, place, mut rules, .. } = self;
        store.close();
        drop(store);
        change(&mut rules);
        Self::enter(place, rules).await
    }

    pub(crate) async fn topic(&self) -> TopicId {
        self.topics.add(title("topic"), true).await.expect("a topic").id
    }

    pub(crate) async fn enters(
        &self,
        session: SessionId,
        queue: Queue,
        address: IpAddr,
    ) -> Result<State, NotEntered> {
        let join = Join { session, queue, address, resume: None };
        let entered = self.matching.join(join).await.expect("the store answers");
        entered.map(|entered| entered.state)
    }

    /// Joins, which must succeed.
    pub(crate) async fn join(&self, session: SessionId, topic: TopicId, room_type: u8) -> State {
        let queue = Queue { topic, room_type };
        self.enters(session, queue, home()).await.expect("this person may join")
    }

    pub(crate) async fn refused(
        &self,
        session: SessionId,
        topic: TopicId,
        room_type: u8,
    ) -> NotEntered {
        let queue = Queue { topic, room_type };
        self.enters(session, queue, home()).await.expect_err("this person may not join")
    }

    pub(crate) async fn state(&self, session: SessionId) -> State {
        self.matching.poll(session).await.expect("the store answers")
    }

    pub(crate) async fn wait_of(&self, session: SessionId) -> Waiting {
        match self.state(session).await {
            State::Waiting(waiting) => waiting,
            other => panic!("{session} does not wait: {other:?}"),
        }
    }

    /// The seat of somebody who has one, or for whom a room is being written.
    pub(crate) async fn seat_of(&self, session: SessionId) -> Seat {
        eventually("the person is seated", async || match self.state(session).await {
            State::Matched(seat) => Some(seat),
            State::Waiting(_) => None,
            State::Offered(offer) => panic!("{session} has no seat: {offer:?}"),
            State::Idle(reason) => panic!("{session} has no seat: {reason:?}"),
        })
        .await
    }

    pub(crate) async fn idle(&self, session: SessionId) -> Option<IdleReason> {
        match self.state(session).await {
            State::Idle(reason) => reason,
            other => panic!("{session} is not idle: {other:?}"),
        }
    }

    pub(crate) async fn cancel(&self, session: SessionId) -> Result<(), State> {
        self.matching.cancel(session).await.expect("the store answers")
    }

    pub(crate) async fn vacate(&self, session: SessionId, room: RoomId) -> Vacate {
        self.matching.leave(session, room).await.expect("the store answers")
    }

    pub(crate) async fn touch(&self, sessions: &[SessionId], sign: Sign) {
        self.matching.touch(sessions.to_vec(), sign).await.expect("the store answers");
    }

    pub(crate) async fn ban(&self, subject: BanSubject) -> Ban {
        self.operators.ban(subject, "test".into(), None).await.expect("the store answers")
    }

    pub(crate) async fn switch(&self, topic: TopicId, active: bool) {
        let changed = self.operators.change_topic(topic, None, Some(active)).await;
        changed.expect("the store answers").expect("the topic exists");
    }

    pub(crate) async fn conversation(&self, room: RoomId) -> Conversation {
        let found = self.store.conversation(room).await.expect("the store answers");
        found.expect("the room is written down")
    }

    pub(crate) async fn live(&self) -> Vec<Conversation> {
        self.store.live_conversations(None, None, 100_000).await.expect("the store answers")
    }

    /// How many wait, asked without a sign of life of anybody.
    pub(crate) async fn waiting(&self) -> usize {
        let queues = self.store.queues().await.expect("the store answers");
        queues.iter().map(|queue| queue.waiting).sum()
    }

    /// Waits until so many wait, with nobody polling.
    pub(crate) async fn until_waiting(&self, people: usize) {
        eventually("the queues have the right length", async || {
            (self.waiting().await == people).then_some(())
        })
        .await;
    }

    pub(crate) fn now(&self) -> Millis {
        self.store.now()
    }
}
