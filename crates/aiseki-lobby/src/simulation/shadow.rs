//! Follows a subject in the simplest way there is: a list of people and where each of them stands.

mod transitions;

use super::spec::{Known, Wait, next_room};
use super::subject::Kept;
use super::{Answer, Operation, Reply, Scenario, Strangers, number, numbered, person};
use crate::change::Change;
use crate::ids::{RoomId, SessionId, TicketNumber, TopicId};
use crate::lobby::{AHEAD_LIMIT, REASON_KEPT, ROOMS_PER_STEP};
use crate::person::{IdleReason, Reservation, Seat, State, Waiting};
use crate::policy::{Millis, Policy};
use crate::resume::{KeptPlace, Offer};

/// Where one person stands.
#[derive(Clone, Copy, Debug)]
enum Place {
    Nowhere,
    Idle(IdleReason, Millis, Option<KeptPlace>),
    Waiting(Wait),
    Reserved(Wait, RoomId, Option<IdleReason>),
    /// With the wait that led there, and whether they ever came.
    Seated(Seat, Wait, bool),
}

/// What a subject is expected to do.
pub struct Shadow {
    policy: Policy,
    known: Known,
    places: Vec<Place>,
    /// Every room that was formed, and whether it is still to be written.
    rooms: Vec<(Reservation, bool)>,
    next_ticket: u64,
    /// How many places were taken up again.
    pub(super) resumed: u64,
    /// Whether rooms have to be formed at the very moment they are possible, with nobody asking.
    prompt: bool,
}

/// On which topics an operation forms rooms.
enum Forming {
    Nowhere,
    On(TopicId),
    Everywhere,
}

impl Shadow {
    /// Nobody is there yet. With `prompt`, a tick has to form every room that is possible, at its
    /// moment; after a clock has stepped back it may be late, and so it may when people who have met
    /// may meet again.
    pub fn new(scenario: &Scenario, seed: u64, prompt: bool) -> Self {
        let strangers = Strangers { seed, apart: scenario.apart };
        Self {
            policy: scenario.policy.clone(),
            known: Known::new(strangers, scenario.rematch_after),
            places: vec![Place::Nowhere; usize::from(scenario.mix.people)],
            rooms: Vec::new(),
            next_ticket: 1,
            resumed: 0,
            prompt: prompt && !scenario.mix.steps_back && scenario.rematch_after == 0,
        }
    }

    /// Does the operation and compares. An error says what the subject did wrong.
    pub fn follow(
        &mut self,
        operation: Operation,
        now: Millis,
        answer: &Answer,
    ) -> Result<(), String> {
        // Before any room is formed, by which the others are counted.
        let resuming = match operation {
            Operation::Resume { room, nth, .. } if !self.is_nothing(operation) => {
                self.taken(room, nth).0
            }
            _ => person(0),
        };
        let mut expected = Vec::new();
        let (reply, forming) = self.apply(operation, now, &mut expected);
        let begin = answer.changes.iter().position(|it| matches!(it, Change::Reserved(_)));
        let (told, formed) = answer.changes.split_at(begin.unwrap_or(answer.changes.len()));
        same_changes(&expected, told)?;
        for change in formed {
            let Change::Reserved(room) = change else {
                return Err(format!("{change:?} was told after a room was formed"));
            };
            let here = match forming {
                Forming::Nowhere => false,
                Forming::On(topic) => room.topic == topic,
                Forming::Everywhere => true,
            };
            if !here {
                return Err(format!("this operation may not form {room:?}"));
            }
            self.reserve(room, now)?;
        }
        if formed.len() > ROOMS_PER_STEP {
            return Err(format!("{} rooms were formed in one step", formed.len()));
        }
        if formed.len() < ROOMS_PER_STEP {
            let topics = match forming {
                Forming::Everywhere if self.prompt => self.topics(),
                Forming::Nowhere | Forming::Everywhere => Vec::new(),
                Forming::On(topic) => vec![topic],
            };
            for topic in topics {
                if let Some(room) = self.next_room(topic, now) {
                    return Err(format!("a possible room was not formed: {room:?}"));
                }
            }
        }
        // A state that is told is the one after rooms were formed.
        let reply = match (reply, operation) {
            (Reply::State(_), Operation::Poll { person: who }) => {
                Reply::State(self.state(person(who), now))
            }
            (Reply::Entered(Ok(_)), Operation::Enter { person: who, .. }) => {
                Reply::Entered(Ok(self.state(person(who), now)))
            }
            (Reply::Entered(Ok(_)), Operation::Resume { .. }) => {
                Reply::Entered(Ok(self.state(resuming, now)))
            }
            (reply, _) => reply,
        };
        if reply != answer.reply {
            return Err(format!("answered {:?}\n  instead of {reply:?}", answer.reply));
        }
        Ok(())
    }

    /// What the person has to be told.
    pub fn state(&self, session: SessionId, now: Millis) -> State {
        match self.place(session) {
            Place::Nowhere => State::Idle(None),
            Place::Idle(_, at, _) if now >= at + REASON_KEPT => State::Idle(None),
            Place::Idle(reason, _, None) => State::Idle(Some(reason)),
            Place::Idle(_, at, Some(kept)) => {
                let KeptPlace { room, queue, waited, .. } = kept;
                State::Offered(Offer { room, queue, waited, until: at + REASON_KEPT })
            }
            Place::Waiting(wait) => match self.over(&wait, now) {
                Some(reason) => State::Idle(Some(reason)),
                None => {
                    let before = |place: &&Place| match place {
                        Place::Waiting(other) => {
                            other.queue == wait.queue && other.place < wait.place
                        }
                        _ => false,
                    };
                    let ahead = self.places.iter().filter(before).count();
                    self.waiting(&wait, ahead.min(AHEAD_LIMIT))
                }
            },
            Place::Reserved(wait, ..) => self.waiting(&wait, 0),
            Place::Seated(seat, ..) => State::Matched(seat),
        }
    }

    /// The next moment at which something has to happen by itself: at once if a room is possible.
    pub fn next_event(&self, now: Millis) -> Option<Millis> {
        if self.prompt
            && self.topics().into_iter().any(|topic| self.next_room(topic, now).is_some())
        {
            return Some(now);
        }
        let waits = self.waits();
        let ends = waits.iter().map(|wait| self.expires_at(wait).min(wait.present_until));
        let ripe = waits.iter().filter_map(|wait| wait.fallback_at(&self.policy));
        let free = waits.iter().map(|wait| wait.held_until);
        let lapses = self.rooms.iter().filter(|(_, open)| *open).map(|(room, _)| self.lapse(room));
        let rooms = ripe.chain(free).filter(|at| self.prompt && *at > now);
        ends.chain(lapses).chain(rooms).min()
    }

    /// How many people wait, are held, and are seated.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |is: fn(&Place) -> bool| self.places.iter().filter(|place| is(place)).count();
        (
            count(|place| matches!(place, Place::Waiting(_))),
            count(|place| matches!(place, Place::Reserved(..))),
            count(|place| matches!(place, Place::Seated(..))),
        )
    }

    /// The number that the next wait will get.
    pub fn next_ticket(&self) -> TicketNumber {
        TicketNumber(self.next_ticket)
    }

    /// The lobby is lost: what an adapter has kept of everybody. Rooms that were not written are
    /// forgotten, and their people stand in the queue again.
    pub(super) fn restart(&mut self, now: Millis) -> Vec<(SessionId, Kept)> {
        for (_, open) in &mut self.rooms {
            *open = false;
        }
        let mut kept = Vec::new();
        for index in 0..self.places.len() {
            let place = match self.places[index] {
                Place::Waiting(wait) | Place::Reserved(wait, _, None) => {
                    let present_until = now.saturating_add(self.policy.presence_timeout);
                    Place::Waiting(Wait { present_until, held_until: 0, refusals: 0, ..wait })
                }
                Place::Reserved(_, _, Some(reason)) => Place::Idle(reason, now, None),
                other => other,
            };
            self.places[index] = place;
            let session = person(u16::try_from(index).unwrap_or(u16::MAX));
            match place {
                Place::Nowhere | Place::Reserved(..) => {}
                Place::Idle(reason, at, place) => {
                    kept.push((session, Kept::Idle(reason, at, place)));
                }
                Place::Waiting(wait) => {
                    kept.push((session, Kept::Waiting(wait.queue, wait.ticket, wait.standing())));
                }
                Place::Seated(seat, wait, came) => {
                    kept.push((session, Kept::Seated(seat, wait.standing(), came)));
                }
            }
        }
        kept
    }

    /// What an adapter has kept of partings when the lobby is lost.
    pub(super) fn partings(&mut self) -> Vec<(SessionId, SessionId, Millis)> {
        self.known.restart()
    }

    fn apply(
        &mut self,
        operation: Operation,
        now: Millis,
        told: &mut Vec<Change>,
    ) -> (Reply, Forming) {
        if self.is_nothing(operation) {
            return (Reply::Done, Forming::Nowhere);
        }
        if !matches!(operation, Operation::Touch { .. } | Operation::Come { .. }) {
            self.sweep(now, told);
        }
        let reply = match operation {
            Operation::Enter { person: who, queue } => {
                return self.enter(person(who), queue, None, now, told);
            }
            Operation::Resume { room, nth, queue } => {
                let (who, room, from) = self.taken(room, nth);
                return self.enter(who, queue.unwrap_or(from), Some(room), now, told);
            }
            Operation::Come { room, nth } => {
                let (who, room, _) = self.taken(room, nth);
                if let Place::Seated(seat, wait, _) = self.place(who)
                    && seat.room == room
                {
                    self.set(who, Place::Seated(seat, wait, true));
                }
                Reply::Done
            }
            Operation::Away { room, nth } => {
                let (who, room, _) = self.taken(room, nth);
                self.vacate(who, Some(room), IdleReason::Absent, now, told)
            }
            Operation::Poll { person: who } => return self.poll(person(who), now),
            Operation::Tick => return (Reply::Done, Forming::Everywhere),
            Operation::Cancel { person: who } => self.cancel(person(who), now, told),
            Operation::Touch { first, count, sign } => {
                (first..first + count).for_each(|who| self.touch(person(who), sign, now));
                Reply::Done
            }
            Operation::Confirm { room, missing } => {
                self.confirm(self.back(room), missing, now, told)
            }
            Operation::Release { room, undone } => {
                self.undo(self.back(room), undone, now, told);
                Reply::Done
            }
            Operation::Vacate { person: who, room } => {
                let room = room.map(|back| numbered(self.back(back)));
                self.vacate(person(who), room, IdleReason::Left, now, told)
            }
            Operation::CloseRoom { room } => {
                let room = numbered(self.back(room));
                let live = !self.members(room).is_empty();
                self.end(room, false, now, told);
                Reply::WasLive(live)
            }
            Operation::CloseTopic { topic } => {
                for wait in self.all_waits() {
                    if wait.queue.topic == topic {
                        self.take_out(wait.session, IdleReason::TopicClosed, now, told);
                    }
                }
                Reply::More(false)
            }
            Operation::Expel { person: who, reason } => {
                self.take_out(person(who), reason, now, told);
                Reply::Done
            }
            Operation::Pass { .. }
            | Operation::PassUntilDue
            | Operation::StepBack { .. }
            | Operation::Restart => Reply::Done,
        };
        (reply, Forming::Nowhere)
    }

    /// Whether the operation means a room that there is not.
    fn is_nothing(&self, operation: Operation) -> bool {
        match operation {
            Operation::Confirm { room, .. }
            | Operation::Release { room, .. }
            | Operation::Vacate { room: Some(room), .. }
            | Operation::Come { room, .. }
            | Operation::Away { room, .. }
            | Operation::Resume { room, .. }
            | Operation::CloseRoom { room } => usize::from(room) >= self.rooms.len(),
            Operation::Vacate { person: who, room: None } => {
                !matches!(self.place(person(who)), Place::Seated(..))
            }
            _ => false,
        }
    }
}

/// Looking things up.
impl Shadow {
    fn next_room(&self, topic: TopicId, now: Millis) -> Option<(crate::seating::Kind, Vec<Wait>)> {
        let mut waits = self.waits();
        waits.retain(|wait| self.over(wait, now).is_none());
        next_room(&self.policy, &self.known, &waits, topic, now)
    }

    fn place(&self, session: SessionId) -> Place {
        self.places.get(usize::from(number(session))).copied().unwrap_or(Place::Nowhere)
    }

    fn set(&mut self, session: SessionId, place: Place) {
        self.places[usize::from(number(session))] = place;
    }

    fn waits(&self) -> Vec<Wait> {
        let wait = |place: &Place| match place {
            Place::Waiting(wait) => Some(*wait),
            _ => None,
        };
        self.places.iter().filter_map(wait).collect()
    }

    /// Also of the people for whom a room is being written.
    fn all_waits(&self) -> Vec<Wait> {
        let wait = |place: &Place| match place {
            Place::Waiting(wait) | Place::Reserved(wait, ..) => Some(*wait),
            _ => None,
        };
        self.places.iter().filter_map(wait).collect()
    }

    fn topics(&self) -> Vec<TopicId> {
        let mut topics: Vec<TopicId> = self.waits().iter().map(|wait| wait.queue.topic).collect();
        topics.sort_unstable();
        topics.dedup();
        topics
    }

    /// Who sits in a room, in the order of its seats.
    fn members(&self, room: RoomId) -> Vec<SessionId> {
        let index = usize::try_from(u128::from_be_bytes(room.0)).unwrap_or(usize::MAX);
        let Some((reservation, _)) = self.rooms.get(index) else { return Vec::new() };
        let people = reservation.people.iter().map(|person| person.session);
        people
            .filter(|it| matches!(self.place(*it), Place::Seated(seat, ..) if seat.room == room))
            .collect()
    }

    fn back(&self, back: u16) -> usize {
        self.rooms.len() - 1 - usize::from(back)
    }

    fn lapse(&self, room: &Reservation) -> Millis {
        room.formed_at + self.policy.reservation_ttl
    }

    fn expires_at(&self, wait: &Wait) -> Millis {
        wait.since + self.policy.wait_timeout
    }

    fn over(&self, wait: &Wait, now: Millis) -> Option<IdleReason> {
        if self.expires_at(wait) <= now {
            return Some(IdleReason::WaitExpired);
        }
        (wait.present_until <= now).then_some(IdleReason::Absent)
    }

    fn waiting(&self, wait: &Wait, ahead: usize) -> State {
        State::Waiting(Waiting {
            queue: wait.queue,
            ticket: wait.ticket,
            since: wait.since,
            ahead,
            expires_at: self.expires_at(wait),
            fallback_at: wait.fallback_at(&self.policy),
        })
    }
}

/// Compares what was told with what had to be, in any order.
fn same_changes(expected: &[Change], told: &[Change]) -> Result<(), String> {
    let mut missing = expected.to_vec();
    for change in told {
        let same = |it: &Change| match (it, change) {
            // A room may list its people in any order: they come at different times.
            (Change::Ended { room, people }, Change::Ended { room: other, people: others }) => {
                let (mut people, mut others) = (people.clone(), others.clone());
                people.sort_unstable();
                others.sort_unstable();
                room == other && people == others
            }
            _ => it == change,
        };
        match missing.iter().position(same) {
            Some(index) => drop(missing.swap_remove(index)),
            None => return Err(format!("told {change:?}\n  expected {expected:?}")),
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(format!("did not tell {missing:?}")) }
}
