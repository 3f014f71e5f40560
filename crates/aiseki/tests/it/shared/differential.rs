use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use aiseki::matching::{Join, NotEntered};
use aiseki::rooms::RoomRules;
use aiseki::shared::{FormedRoom, FormedRooms as _, Leaving, Outcome, WaitingStore as _};
use aiseki::store::redis::{Listeners, RedisStore, Settings};
use aiseki_lobby::simulation::{
    Answer, BEGIN, Operation, Operations, Reply, Scenario, Shadow, Strangers, numbered, person,
    scenarios,
};
use aiseki_lobby::{
    Change, IdleReason, Millis, Queue, Refused, Reservation, RoomId, SessionId, State, TopicId,
    Undone, Vacate,
};
use aiseki_mq::Server;
use aiseki_testkit::{Redis, RedisOptions};

/// Steps of each scenario in the test command; a campaign asks for more.
const STEPS: u64 = 1_500;
const CAMPAIGN: &str = "AISEKI_REDIS_CAMPAIGN";

/// A Redis as a subject. What the database does in the product, a map of the live rooms does here.
pub(super) struct Subject {
    pub(super) store: RedisStore,
    pub(super) time: Arc<AtomicU64>,
    changes: Arc<Mutex<Vec<Change>>>,
    formed: Vec<Reservation>,
    live: HashMap<RoomId, Vec<SessionId>>,
}

impl Subject {
    pub(super) async fn open(redis: &Redis, namespace: &str, scenario: &Scenario) -> Self {
        let time = Arc::new(AtomicU64::new(BEGIN));
        let changes = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&changes);
        let settings = Settings {
            server: Server::new(&redis.url()).expect("a server"),
            namespace: namespace.to_owned(),
            policy: scenario.policy.clone(),
            rate_limits: None,
            rooms: RoomRules::default(),
            rematch_after: scenario.rematch_after,
            eviction_accepted: false,
            virtual_time: Some(Arc::clone(&time)),
        };
        let listeners = Listeners {
            changes: Box::new(move |changes| {
                told.lock().expect("whole").extend_from_slice(changes);
            }),
            changed: Box::new(|_| {}),
            seated: Box::new(|_| {}),
            missed: Box::new(|| {}),
            room: Box::new(|_| {}),
        };
        let store = RedisStore::new(settings, listeners).expect("a store");
        store.check().await.expect("the server is fit");
        // Rooms can be written for as long as the test takes.
        redis.command(&format!("SET {{{namespace}}}:recorder 1")).expect("a command");
        Self { store, time, changes, formed: Vec::new(), live: HashMap::new() }
    }

    /// Strangers never meet: they have blocked each other before the day begins.
    async fn keep_apart(&self, strangers: Strangers, people: u16) {
        let pairs = (0..people).flat_map(|a| (0..a).map(move |b| (person(a), person(b))));
        let pairs = pairs.filter(|(a, b)| !strangers.may_meet(*a, *b)).collect();
        self.store.keep_apart(pairs).await.expect("the store answers");
    }

    fn formed(&self, back: u16) -> Option<Reservation> {
        self.formed.iter().rev().nth(usize::from(back)).cloned()
    }

    fn name(&self, room: RoomId) -> RoomId {
        numbered(self.formed.iter().rposition(|it| it.room == room).unwrap_or(usize::MAX))
    }

    fn named_state(&self, state: State) -> State {
        match state {
            State::Matched(mut seat) => {
                seat.room = self.name(seat.room);
                State::Matched(seat)
            }
            State::Idle(_) | State::Waiting(_) => state,
        }
    }

    async fn states(&self, people: u16) -> Vec<State> {
        let people: Vec<SessionId> = (0..people).map(person).collect();
        let states = self.store.states(&people).await.expect("the store answers");
        states.into_iter().map(|state| self.named_state(state)).collect()
    }

    async fn apply(&mut self, operation: Operation, now: Millis) -> Answer {
        self.time.store(now, Ordering::SeqCst);
        if self.does_something(operation).await {
            // The lobby sweeps in every transition, this store in its ticks.
            self.store.sweep().await.expect("the store answers");
        }
        let mut ended = Vec::new();
        let reply = self.reply(operation, &mut ended).await;
        let mut changes = self.told();
        // What the database decided comes before what was formed.
        changes.splice(0..0, ended.into_iter().map(|change| self.named(change)));
        Answer { reply, changes }
    }

    /// What was told since this was asked last.
    pub(super) fn told(&mut self) -> Vec<Change> {
        let told = std::mem::take(&mut *self.changes.lock().expect("whole"));
        let mut changes = Vec::new();
        for change in told {
            match &change {
                Change::Reserved(reservation) => {
                    let known = self.formed.iter().any(|it| it.room == reservation.room);
                    assert!(!known, "{:?} was formed twice", reservation.room);
                    self.formed.push(reservation.clone());
                }
                Change::Seated { room, people } => {
                    self.live.entry(*room).or_default().extend(people);
                }
                // The people of a room that ended are told one by one.
                Change::Vacated { .. } => continue,
                _ => {}
            }
            changes.push(self.named(change));
        }
        changes
    }

    /// Whether the lobby would be asked for this, and not only touched.
    async fn does_something(&self, operation: Operation) -> bool {
        match operation {
            Operation::Touch { .. } => false,
            Operation::Confirm { room, .. }
            | Operation::Release { room, .. }
            | Operation::CloseRoom { room }
            | Operation::Vacate { room: Some(room), .. } => self.formed(room).is_some(),
            Operation::Vacate { person: who, room: None } => {
                matches!(self.state(person(who)).await, State::Matched(_))
            }
            _ => true,
        }
    }

    fn named(&self, mut change: Change) -> Change {
        match &mut change {
            Change::Reserved(Reservation { room, .. })
            | Change::Seated { room, .. }
            | Change::Vacated { room, .. }
            | Change::Ended { room, .. } => *room = self.name(*room),
            Change::Entered { .. } | Change::Dropped { .. } | Change::Returned { .. } => {}
        }
        change
    }

    async fn state(&self, session: SessionId) -> State {
        self.store.states(&[session]).await.expect("the store answers")[0]
    }

    async fn reply(&mut self, operation: Operation, ended: &mut Vec<Change>) -> Reply {
        let store = &self.store;
        let answers = "the store answers";
        match operation {
            Operation::Enter { person: who, queue } => {
                let address = std::net::Ipv4Addr::LOCALHOST.into();
                let join = Join { session: person(who), queue, address };
                let entered = store.enter(join, None).await.expect(answers);
                // The name of a room that was formed just now is known after its changes.
                self.learn();
                return Reply::Entered(match entered {
                    Ok(entry) => Ok(self.named_state(entry.entered.state)),
                    Err(NotEntered::InvalidRoomType) => Err(Refused::InvalidRoomType),
                    Err(NotEntered::AlreadyWaiting(state)) => Err(Refused::AlreadyWaiting(state)),
                    Err(NotEntered::AlreadyMatched(state)) => {
                        Err(Refused::AlreadyMatched(self.named_state(state)))
                    }
                    Err(other) => panic!("{other:?}"),
                });
            }
            Operation::Cancel { person: who } => {
                let cancelled = store.cancel(person(who)).await.expect(answers);
                return Reply::Cancelled(cancelled.map_err(|state| self.named_state(state)));
            }
            Operation::Poll { person: who } => {
                let state = store.poll(person(who)).await.expect(answers);
                return Reply::State(self.named_state(state));
            }
            Operation::Touch { first, count, sign } => {
                let people = (first..first + count).map(person).collect();
                store.touch(people, sign).await.expect(answers);
            }
            Operation::Tick => {
                store.tick().await.expect(answers);
            }
            Operation::Confirm { room, missing } => {
                let Some(room) = self.formed(room) else { return Reply::Done };
                let seated = room.people.iter().enumerate();
                let seated = seated.filter(|(i, _)| missing >> i & 1 == 0);
                let seated = seated.map(|(_, person)| person.session).collect();
                let give_up = self.settle(room, Outcome::Written(seated)).await;
                return Reply::GiveUp(give_up);
            }
            Operation::Release { room, undone } => {
                let Some(room) = self.formed(room) else { return Reply::Done };
                let outcome = match undone {
                    Undone::Lapsed => Outcome::Lapsed,
                    Undone::Refused => Outcome::Refused,
                };
                self.settle(room, outcome).await;
            }
            Operation::Vacate { person: who, room } => {
                let seat = match self.state(person(who)).await {
                    State::Matched(seat) => Some(seat.room),
                    _ => None,
                };
                let room = match room {
                    Some(back) => self.formed(back).map(|it| it.room),
                    None => seat,
                };
                let Some(room) = room else { return Reply::Done };
                let sits = seat == Some(room);
                self.leave(person(who), room, sits, ended).await;
                return Reply::Vacated(if sits { Vacate::Left } else { Vacate::NotSeated });
            }
            Operation::CloseRoom { room } => {
                let Some(room) = self.formed(room) else { return Reply::Done };
                return Reply::WasLive(self.end(room.room, ended).await);
            }
            Operation::CloseTopic { topic } => {
                store.close_topic(topic).await.expect(answers);
                return Reply::More(false);
            }
            Operation::Expel { person: who, reason } => {
                store.expel(vec![person(who)], reason).await.expect(answers);
            }
            Operation::Pass { .. }
            | Operation::PassUntilDue
            | Operation::StepBack { .. }
            | Operation::Restart => {}
        }
        Reply::Done
    }

    /// Rooms that were formed in the changes so far, for their names.
    fn learn(&self) {
        for change in &*self.changes.lock().expect("whole") {
            if let Change::Seated { .. } = change {
                panic!("nobody is seated before a room is confirmed");
            }
        }
    }

    async fn settle(&self, reservation: Reservation, outcome: Outcome) -> Vec<SessionId> {
        let room = FormedRoom { reservation, token: 0 };
        let give_up = self.store.settle(vec![(room, outcome)]).await.expect("the store answers");
        give_up.into_iter().map(|(session, _)| session).collect()
    }

    async fn leave(
        &mut self,
        session: SessionId,
        room: RoomId,
        sits: bool,
        ended: &mut Vec<Change>,
    ) {
        // Everybody who ever sat there is named, as by the database.
        let everybody = self.formed.iter().filter(|formed| formed.room == room);
        let everybody = everybody.flat_map(|formed| formed.people.iter().map(|it| it.session));
        let leaving = Leaving {
            room,
            people: vec![(session, IdleReason::Left)],
            others: everybody.filter(|other| *other != session).collect(),
        };
        self.store.vacate(vec![leaving.clone()]).await.expect("the store answers");
        // A repetition changes nothing.
        self.store.vacate(vec![leaving]).await.expect("the store answers");
        if !sits {
            return;
        }
        ended.push(Change::Vacated { room, session });
        let left = self.live.get_mut(&room).expect("a live room");
        left.retain(|other| *other != session);
        if left.len() < 2 {
            self.end(room, ended).await;
        }
    }

    async fn end(&mut self, room: RoomId, ended: &mut Vec<Change>) -> bool {
        let Some(people) = self.live.remove(&room) else { return false };
        let idle = people.iter().map(|session| (*session, IdleReason::RoomClosed)).collect();
        let leaving = Leaving { room, people: idle, others: Vec::new() };
        self.store.vacate(vec![leaving]).await.expect("the store answers");
        ended.push(Change::Ended { room, people });
        true
    }
}

async fn day(redis: &Redis, scenario: &Scenario, seed: u64, steps: u64) {
    let mut scenario = scenario.clone();
    // What restarts is a server, and it knows nothing that could be lost.
    scenario.mix.restarts = false;
    let (scenario, mix) = (&scenario, &scenario.mix);
    let strangers = Strangers { seed, apart: scenario.apart };
    let namespace = format!("day-{}-{seed}", scenario.name.replace(' ', "-"));
    let mut subject = Subject::open(redis, &namespace, scenario).await;
    subject.keep_apart(strangers, mix.people).await;
    let mut shadow = Shadow::new(scenario, seed, false);
    let (mut now, mut last) = (BEGIN, Vec::new());
    for (step, operation) in (0..steps).zip(Operations::new(scenario, seed)) {
        last.push((now - BEGIN, operation));
        let done = match operation {
            Operation::Pass { by } => {
                now += by;
                None
            }
            Operation::StepBack { by } => {
                now = now.saturating_sub(by).max(BEGIN);
                None
            }
            Operation::PassUntilDue => {
                now = shadow.next_event(now).unwrap_or(now).max(now);
                Some(Operation::Tick)
            }
            Operation::Restart => None,
            operation => Some(operation),
        };
        let mut result = Ok(());
        if let Some(operation) = done {
            let answer = subject.apply(operation, now).await;
            result = shadow.follow(operation, now, &answer);
        }
        subject.time.store(now, Ordering::SeqCst);
        let states = subject.states(mix.people).await;
        for (who, told) in (0..mix.people).zip(states) {
            let expected = shadow.state(person(who), now);
            if result.is_ok() && told != expected {
                result = Err(format!("person {who} is told {told:?}\n  instead of {expected:?}"));
            }
        }
        if let Err(message) = result {
            let mut shown = String::new();
            for (at, operation) in &last[last.len().saturating_sub(12)..] {
                let _ = writeln!(shown, "  {at:>12}  {operation:?}");
            }
            panic!("{:?}, seed {seed}, step {step}: {message}\n{shown}", scenario.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_seats_people_as_the_lobby_does() {
    // What the store logs belongs to a failure.
    let _ = tracing_subscriber::fmt().with_test_writer().try_init();
    #[expect(clippy::disallowed_methods, reason = "a campaign is asked for, not configured")]
    let campaign = std::env::var(CAMPAIGN).ok().and_then(|steps| steps.parse().ok());
    let steps: u64 = campaign.unwrap_or(STEPS);
    let redis = Redis::with(RedisOptions::default()).expect("a Redis");
    let first_seed = if campaign.is_some() { u64::from(std::process::id()) } else { 1 };
    for (scenario, seed) in scenarios().iter().zip(first_seed..) {
        let mut left = steps;
        let mut seed = seed;
        while left > 0 {
            let some = left.min(STEPS);
            day(&redis, scenario, seed, some).await;
            redis.command("FLUSHALL").expect("a command");
            left -= some;
            seed += 1_000;
        }
    }
}

#[tokio::test]
async fn people_who_have_met_meet_again_alone_when_both_have_waited_thirty_seconds() {
    let redis = Redis::with(RedisOptions::default()).expect("a Redis");
    let mut scenario = scenarios().swap_remove(0);
    scenario.policy.presence_timeout = scenario.policy.wait_timeout;
    scenario.rematch_after = 600_000;
    let mut subject = Subject::open(&redis, "met", &scenario).await;
    let queue = Queue { topic: TopicId(1), room_type: 2 };
    let enter = |who| Operation::Enter { person: who, queue };
    for operation in [enter(0), enter(1), Operation::Confirm { room: 0, missing: 0 }] {
        subject.apply(operation, BEGIN).await;
    }
    subject.apply(Operation::Vacate { person: 0, room: None }, BEGIN + 1).await;
    subject.apply(enter(0), BEGIN + 1).await;
    subject.apply(enter(1), BEGIN + 1_000).await;
    for (after, formed) in [(30_999, 1), (31_000, 2)] {
        subject.apply(Operation::Poll { person: 0 }, BEGIN + after).await;
        assert_eq!(subject.formed.len(), formed, "{after}");
    }
}
