use aiseki_lobby::simulation::person;
use aiseki_lobby::{
    Anyone, Change, Companions, IdleReason, Lobby, Millis, Policy, Queue, Refused, Reservation,
    SessionId, Sign, State, TicketNumber, TopicId, Undone, Vacate, Waiting,
};

/// When every test begins.
pub(crate) const BEGIN: Millis = 1_700_000_000_000;
pub(crate) const SECOND: Millis = 1_000;

pub(crate) const PAIRS: Queue = Queue { topic: TopicId(42), room_type: 2 };
pub(crate) const THREES: Queue = Queue { topic: TopicId(42), room_type: 3 };

/// A lobby, a clock, and everything that has happened so far. People are numbers.
pub(crate) struct Day<C = Anyone> {
    pub(crate) lobby: Lobby<C>,
    pub(crate) now: Millis,
    pub(crate) changes: Vec<Change>,
}

impl Day {
    pub(crate) fn new() -> Self {
        Self::with_policy(Policy::default())
    }

    pub(crate) fn with_policy(policy: Policy) -> Self {
        Self { lobby: Lobby::new(policy, 1), now: BEGIN, changes: Vec::new() }
    }

    pub(crate) fn with_room_types(room_types: &str) -> Self {
        Self::with_policy(Policy { room_types: room_types.parse().unwrap(), ..Policy::default() })
    }
}

impl<C: Companions> Day<C> {
    pub(crate) fn with_companions(policy: Policy, companions: C) -> Self {
        let lobby = Lobby::with_companions(policy, companions, 1);
        Self { lobby, now: BEGIN, changes: Vec::new() }
    }

    pub(crate) fn pass(&mut self, by: Millis) {
        self.now += by;
    }

    pub(crate) fn enter(&mut self, who: u16, queue: Queue) -> Result<State, Refused> {
        self.lobby.enter(person(who), queue, self.now, &mut self.changes)
    }

    /// Joins, which has to be accepted.
    pub(crate) fn join(&mut self, who: u16, queue: Queue) -> Waiting {
        match self.enter(who, queue) {
            Ok(State::Waiting(waiting)) => waiting,
            other => panic!("person {who} does not wait: {other:?}"),
        }
    }

    pub(crate) fn join_all(&mut self, people: impl IntoIterator<Item = u16>, queue: Queue) {
        for who in people {
            self.join(who, queue);
        }
    }

    pub(crate) fn cancel(&mut self, who: u16) -> Result<(), State> {
        self.lobby.cancel(person(who), self.now, &mut self.changes)
    }

    pub(crate) fn poll(&mut self, who: u16) -> State {
        self.lobby.poll(person(who), self.now, &mut self.changes)
    }

    pub(crate) fn touch(&mut self, who: u16, sign: Sign) {
        self.lobby.touch(&[person(who)], sign, self.now);
    }

    pub(crate) fn tick(&mut self) {
        self.lobby.tick(self.now, &mut self.changes);
    }

    /// Lets time pass with a tick whenever one is due, as a server does for people who hold a
    /// connection open: `present` show a sign of life every ten seconds.
    pub(crate) fn live(&mut self, by: Millis, present: &[u16]) {
        let end = self.now + by;
        let mut next_touch = self.now;
        while self.now < end {
            if next_touch <= self.now {
                for who in present {
                    self.touch(*who, Sign::Present);
                }
                next_touch += 10 * SECOND;
            }
            let due = self.lobby.next_due().unwrap_or(end).min(next_touch).min(end);
            self.now = self.now.max(due);
            self.settle();
        }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.lobby.next_due().is_some_and(|due| due <= self.now)
    }

    /// Ticks until nothing is due.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100 {
            self.tick();
            if !self.is_due() {
                return;
            }
        }
        panic!("something is always due at {}", self.now);
    }

    pub(crate) fn state(&self, who: u16) -> State {
        self.lobby.state(person(who), self.now)
    }

    pub(crate) fn idle(&self, who: u16) -> Option<IdleReason> {
        match self.state(who) {
            State::Idle(reason) => reason,
            other => panic!("person {who} is not idle: {other:?}"),
        }
    }

    pub(crate) fn waiting(&self, who: u16) -> Waiting {
        match self.state(who) {
            State::Waiting(waiting) => waiting,
            other => panic!("person {who} does not wait: {other:?}"),
        }
    }

    pub(crate) fn since(&self, who: u16) -> Millis {
        self.waiting(who).since - BEGIN
    }

    /// Every room formed so far.
    pub(crate) fn rooms(&self) -> Vec<Reservation> {
        let room = |change: &Change| match change {
            Change::Reserved(room) => Some(room.clone()),
            _ => None,
        };
        self.changes.iter().filter_map(room).collect()
    }

    /// The people of every room formed so far.
    pub(crate) fn groups(&self) -> Vec<Vec<u16>> {
        self.rooms().iter().map(people).collect()
    }

    /// The only room formed so far.
    pub(crate) fn room(&self) -> Reservation {
        let [room] = &self.rooms()[..] else { panic!("not one room: {:?}", self.groups()) };
        room.clone()
    }

    /// The room formed last is written, with a seat for each of its people.
    pub(crate) fn write(&mut self) -> Reservation {
        let room = self.rooms().pop().expect("a room");
        let seated = people(&room);
        assert_eq!(self.confirm(&room, &seated), []);
        room
    }

    pub(crate) fn confirm(&mut self, room: &Reservation, seated: &[u16]) -> Vec<u16> {
        let seated: Vec<SessionId> = seated.iter().copied().map(person).collect();
        let give_up = self.lobby.confirm(room, &seated, self.now, &mut self.changes);
        give_up.into_iter().map(aiseki_lobby::simulation::number).collect()
    }

    pub(crate) fn release(&mut self, room: &Reservation, undone: Undone) {
        self.lobby.release(room.room, undone, self.now, &mut self.changes);
    }

    pub(crate) fn vacate(&mut self, who: u16, room: &Reservation) -> Vacate {
        self.lobby.vacate(person(who), room.room, self.now, &mut self.changes)
    }

    pub(crate) fn expel(&mut self, who: u16, reason: IdleReason) {
        self.lobby.expel(person(who), reason, self.now, &mut self.changes);
    }

    /// Whether the person sits in this room.
    pub(crate) fn sits(&self, who: u16, room: &Reservation) -> bool {
        matches!(self.state(who), State::Matched(seat) if seat.room == room.room)
    }

    /// The ended waits of a person, each with its reason.
    pub(crate) fn dropped(&self, who: u16) -> Vec<(TicketNumber, IdleReason)> {
        let dropped = |change: &Change| match change {
            Change::Dropped { session, ticket, reason } if *session == person(who) => {
                Some((*ticket, *reason))
            }
            _ => None,
        };
        self.changes.iter().filter_map(dropped).collect()
    }
}

pub(crate) fn people(room: &Reservation) -> Vec<u16> {
    room.people.iter().map(|it| aiseki_lobby::simulation::number(it.session)).collect()
}
