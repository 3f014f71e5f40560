//! What is driven by a simulation, and what it answers.

use super::{Operation, numbered, person};
use crate::change::{Change, Refused, Vacate};
use crate::ids::{Queue, RoomId, SessionId, TicketNumber};
use crate::lobby::Lobby;
use crate::person::{IdleReason, Reservation, Seat, State};
use crate::policy::Millis;
use crate::resume::{KeptPlace, Standing};
use crate::seating::Companions;

/// Something that seats people by the rule of this crate.
pub trait Subject {
    /// Does an operation. Those that only change the time never get here, nor does a restart.
    fn apply(&mut self, operation: Operation, now: Millis) -> Answer;
    /// The state of a person, without a sign of life.
    fn state(&mut self, session: SessionId, now: Millis) -> State;
}

/// What a subject answered: its reply and what happened. Rooms have the names of [`numbered`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// To the caller.
    pub reply: Reply,
    /// To everybody else.
    pub changes: Vec<Change>,
}

/// What the caller of an operation is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing.
    Done,
    /// To a join.
    Entered(Result<State, Refused>),
    /// To a cancel.
    Cancelled(Result<(), State>),
    /// To a poll.
    State(State),
    /// To a confirmation: whose seats have to be given up.
    GiveUp(Vec<SessionId>),
    /// To somebody who gives up a seat.
    Vacated(Vacate),
    /// To the closing of a room: whether it was live.
    WasLive(bool),
    /// To the closing of a topic: whether somebody is left in it.
    More(bool),
}

/// A lobby as a subject.
pub struct LobbySubject<C> {
    pub(super) lobby: Lobby<C>,
    /// Every room that was ever formed, under its true name.
    formed: Vec<Reservation>,
}

impl<C: Companions> LobbySubject<C> {
    /// Drives this lobby.
    pub fn new(lobby: Lobby<C>) -> Self {
        Self { lobby, formed: Vec::new() }
    }

    /// Goes on with another lobby and the rooms of the one before.
    pub fn replace(&mut self, lobby: Lobby<C>) {
        self.lobby = lobby;
    }

    /// The true name of a room.
    pub fn true_name(&self, name: RoomId) -> RoomId {
        let index = usize::try_from(u128::from_be_bytes(name.0)).unwrap_or(usize::MAX);
        self.formed.get(index).map_or(name, |reservation| reservation.room)
    }

    fn formed(&self, back: u16) -> Option<&Reservation> {
        self.formed.iter().rev().nth(usize::from(back))
    }

    /// Somebody who was taken for a room, with the queue from which they came.
    fn member(&self, back: u16, nth: u8) -> Option<(SessionId, RoomId, Queue)> {
        let room = self.formed(back)?;
        let person = room.people[usize::from(nth) % room.people.len()];
        let queue = Queue { topic: room.topic, room_type: person.requested };
        Some((person.session, room.room, queue))
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

    fn named(&mut self, mut change: Change) -> Change {
        if let Change::Reserved(reservation) = &change {
            let known = self.formed.iter().any(|it| it.room == reservation.room);
            assert!(!known, "{:?} was formed twice", reservation.room);
            self.formed.push(reservation.clone());
        }
        match &mut change {
            Change::Reserved(Reservation { room, .. })
            | Change::Seated { room, .. }
            | Change::Vacated { room, .. }
            | Change::Ended { room, .. } => *room = self.name(*room),
            Change::Entered { .. } | Change::Dropped { .. } | Change::Returned { .. } => {}
        }
        change
    }

    fn vacate(
        &mut self,
        session: SessionId,
        other: Option<u16>,
        now: Millis,
        changes: &mut Vec<Change>,
    ) -> Reply {
        let room = match (other, self.lobby.state(session, now)) {
            (Some(back), _) => self.formed(back).map(|it| it.room),
            (None, State::Matched(seat)) => Some(seat.room),
            (None, _) => None,
        };
        let Some(room) = room else { return Reply::Done };
        Reply::Vacated(self.lobby.vacate(session, room, now, changes))
    }

    fn entered(&self, entered: Result<State, Refused>) -> Reply {
        Reply::Entered(match entered {
            Ok(state) => Ok(self.named_state(state)),
            Err(Refused::AlreadyMatched(state)) => {
                Err(Refused::AlreadyMatched(self.named_state(state)))
            }
            Err(refused) => Err(refused),
        })
    }

    fn reply(&mut self, operation: Operation, now: Millis, changes: &mut Vec<Change>) -> Reply {
        let lobby = &mut self.lobby;
        match operation {
            Operation::Enter { person: who, queue } => {
                let entered = lobby.enter(person(who), queue, now, changes);
                return self.entered(entered);
            }
            Operation::Resume { room, nth, queue } => {
                let Some((who, room, from)) = self.member(room, nth) else { return Reply::Done };
                let queue = queue.unwrap_or(from);
                let entered = self.lobby.resume(who, queue, Some(room), now, changes);
                return self.entered(entered);
            }
            Operation::Come { room, nth } => {
                if let Some((who, room, _)) = self.member(room, nth) {
                    self.lobby.come(who, room);
                }
            }
            Operation::Away { room, nth } => {
                let Some((who, room, _)) = self.member(room, nth) else { return Reply::Done };
                let away = IdleReason::Absent;
                return Reply::Vacated(self.lobby.dismiss(who, room, away, now, changes));
            }
            Operation::Cancel { person: who } => {
                let cancelled = lobby.cancel(person(who), now, changes);
                return Reply::Cancelled(cancelled.map_err(|state| self.named_state(state)));
            }
            Operation::Poll { person: who } => {
                let state = lobby.poll(person(who), now, changes);
                return Reply::State(self.named_state(state));
            }
            Operation::Touch { first, count, sign } => {
                let people: Vec<SessionId> = (first..first + count).map(person).collect();
                lobby.touch(&people, sign, now);
            }
            Operation::Tick => lobby.tick(now, changes),
            Operation::Confirm { room, missing } => {
                let Some(room) = self.formed(room).cloned() else { return Reply::Done };
                let people = room.people.iter().enumerate();
                let seated: Vec<SessionId> = people
                    .filter(|(i, _)| missing >> i & 1 == 0)
                    .map(|(_, person)| person.session)
                    .collect();
                return Reply::GiveUp(self.lobby.confirm(&room, &seated, now, changes));
            }
            Operation::Release { room, undone } => {
                let Some(room) = self.formed(room).map(|it| it.room) else { return Reply::Done };
                self.lobby.release(room, undone, now, changes);
            }
            Operation::Vacate { person: who, room } => {
                return self.vacate(person(who), room, now, changes);
            }
            Operation::CloseRoom { room } => {
                let Some(room) = self.formed(room).map(|it| it.room) else { return Reply::Done };
                return Reply::WasLive(self.lobby.close_room(room, now, changes));
            }
            Operation::CloseTopic { topic } => {
                return Reply::More(lobby.close_topic(topic, now, changes));
            }
            Operation::Expel { person: who, reason } => {
                lobby.expel(person(who), reason, now, changes);
            }
            Operation::Pass { .. }
            | Operation::PassUntilDue
            | Operation::StepBack { .. }
            | Operation::Restart => {}
        }
        Reply::Done
    }
}

impl<C: Companions> Subject for LobbySubject<C> {
    fn apply(&mut self, operation: Operation, now: Millis) -> Answer {
        let mut changes = Vec::new();
        let reply = self.reply(operation, now, &mut changes);
        let changes = changes.into_iter().map(|change| self.named(change)).collect();
        Answer { reply, changes }
    }

    fn state(&mut self, session: SessionId, now: Millis) -> State {
        let state = self.lobby.state(session, now);
        self.named_state(state)
    }
}

/// Everything that an adapter keeps about people, from which a lobby can be loaded.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    /// Somebody in a queue, with the ticket.
    Waiting(Queue, TicketNumber, Standing),
    /// Somebody with a seat, how they stood before, and whether they came.
    Seated(Seat, Standing, bool),
    /// Somebody idle, since when, and the place that is kept for them.
    Idle(IdleReason, Millis, Option<KeptPlace>),
}
