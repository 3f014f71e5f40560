use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use aiseki::matching::{Join, NotEntered};
use aiseki::rooms::{Attendance, RoomRules};
use aiseki::shared::{
    FormedRoom, FormedRooms as _, Leaving, Outcome, RoomLog as _, WaitingStore as _,
};
use aiseki::store::redis::{Listeners, RedisStore, Settings};
use aiseki_lobby::simulation::{
    Answer, BEGIN, Operation, Reply, Scenario, Strangers, numbered, person,
};
use aiseki_lobby::{
    Change, IdleReason, Millis, Queue, Refused, Reservation, RoomId, SessionId, State, Undone,
    Vacate,
};
use aiseki_mq::Server;
use aiseki_testkit::Redis;

/// A Redis as a subject. What the database does in the product, a map of the live rooms does here.
pub(in crate::shared) struct Subject {
    pub(in crate::shared) store: RedisStore,
    pub(in crate::shared) time: Arc<AtomicU64>,
    changes: Arc<Mutex<Vec<Change>>>,
    pub(super) formed: Vec<Reservation>,
    live: HashMap<RoomId, Vec<SessionId>>,
}

impl Subject {
    pub(in crate::shared) async fn open(
        redis: &Redis,
        namespace: &str,
        scenario: &Scenario,
    ) -> Self {
        let time = Arc::new(AtomicU64::new(BEGIN));
        let changes = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&changes);
        let settings = Settings {
            server: Server::new(&redis.url()).expect("a server"),
            namespace: namespace.to_owned(),
            policy: scenario.policy.clone(),
            rate_limits: None,
            rooms: RoomRules { rooms: true, ..RoomRules::default() },
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
    pub(super) async fn keep_apart(&self, strangers: Strangers, people: u16) {
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
            State::Offered(mut offer) => {
                offer.room = self.name(offer.room);
                State::Offered(offer)
            }
            State::Idle(_) | State::Waiting(_) => state,
        }
    }

    pub(super) async fn states(&self, people: u16) -> Vec<State> {
        let people: Vec<SessionId> = (0..people).map(person).collect();
        let states = self.store.states(&people).await.expect("the store answers");
        states.into_iter().map(|state| self.named_state(state)).collect()
    }

    pub(super) async fn apply(&mut self, operation: Operation, now: Millis) -> Answer {
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
    pub(in crate::shared) fn told(&mut self) -> Vec<Change> {
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
            Operation::Touch { .. } | Operation::Come { .. } => false,
            Operation::Confirm { room, .. }
            | Operation::Release { room, .. }
            | Operation::CloseRoom { room }
            | Operation::Away { room, .. }
            | Operation::Resume { room, .. }
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
                return self.enter(person(who), queue, None).await;
            }
            Operation::Resume { room, nth, queue } => {
                let Some((who, room, from)) = self.member(room, nth) else { return Reply::Done };
                return self.enter(who, queue.unwrap_or(from), Some(room)).await;
            }
            Operation::Come { room, nth } => {
                let Some((session, room, _)) = self.member(room, nth) else { return Reply::Done };
                let connection = Attendance {
                    room,
                    session,
                    connection: u64::from(nth),
                    address: std::net::Ipv4Addr::LOCALHOST.into(),
                };
                store.attend(vec![connection]).await.expect(answers);
            }
            Operation::Away { room, nth } => {
                let Some((who, room, _)) = self.member(room, nth) else { return Reply::Done };
                let state = self.state(who).await;
                let sits = matches!(state, State::Matched(seat) if seat.room == room);
                self.leave(who, room, IdleReason::Absent, sits, ended).await;
                return Reply::Vacated(if sits { Vacate::Left } else { Vacate::NotSeated });
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
                self.leave(person(who), room, IdleReason::Left, sits, ended).await;
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

    async fn enter(&self, session: SessionId, queue: Queue, resume: Option<RoomId>) -> Reply {
        let address = std::net::Ipv4Addr::LOCALHOST.into();
        let join = Join { session, queue, address, resume };
        let entered = self.store.enter(join, None).await.expect("the store answers");
        // The name of a room that was formed just now is known after its changes.
        self.learn();
        Reply::Entered(match entered {
            Ok(entry) => Ok(self.named_state(entry.entered.state)),
            Err(NotEntered::InvalidRoomType) => Err(Refused::InvalidRoomType),
            Err(NotEntered::AlreadyWaiting(state)) => Err(Refused::AlreadyWaiting(state)),
            Err(NotEntered::AlreadyMatched(state)) => {
                Err(Refused::AlreadyMatched(self.named_state(state)))
            }
            Err(other) => panic!("{other:?}"),
        })
    }

    /// Somebody who was taken for a room, with the queue from which they came.
    fn member(&self, back: u16, nth: u8) -> Option<(SessionId, RoomId, Queue)> {
        let room = self.formed(back)?;
        let person = room.people[usize::from(nth) % room.people.len()];
        let queue = Queue { topic: room.topic, room_type: person.requested };
        Some((person.session, room.room, queue))
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
        reason: IdleReason,
        sits: bool,
        ended: &mut Vec<Change>,
    ) {
        let mut people = vec![(session, reason)];
        if sits {
            ended.push(Change::Vacated { room, session });
            let left = self.live.get_mut(&room).expect("a live room");
            left.retain(|other| *other != session);
            if left.len() < 2 {
                let others = self.live.remove(&room).unwrap_or_default();
                people.extend(others.iter().map(|other| (*other, IdleReason::RoomClosed)));
                ended.push(Change::Ended { room, people: others });
            }
        }
        // Everybody who ever sat there is named, as by the database.
        let everybody = self.formed.iter().filter(|formed| formed.room == room);
        let everybody = everybody.flat_map(|formed| formed.people.iter().map(|it| it.session));
        let leaving = Leaving {
            room,
            others: everybody.filter(|it| people.iter().all(|(gone, _)| gone != it)).collect(),
            people,
        };
        self.store.vacate(vec![leaving.clone()]).await.expect("the store answers");
        // A repetition changes nothing.
        self.store.vacate(vec![leaving]).await.expect("the store answers");
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
