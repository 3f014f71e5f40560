//! Loading what an adapter has stored, into a lobby that nobody has entered yet.

use crate::ids::{Queue, SessionId, TicketNumber};
use crate::lobby::Lobby;
use crate::person::{IdleReason, Person, Seat, Sitting};
use crate::policy::Millis;
use crate::resume::{KeptPlace, Standing};
use crate::seating::Companions;

impl<C: Companions> Lobby<C> {
    /// Makes sure that no wait gets a number below `next`.
    pub fn restore_next_ticket(&mut self, next: TicketNumber) {
        self.next_ticket = self.next_ticket.max(next);
    }

    /// Somebody who was waiting before the lobby was loaded; presence starts anew. Answers false,
    /// changing nothing, when the person stands somewhere already.
    pub fn restore_waiting(
        &mut self,
        session: SessionId,
        queue: Queue,
        number: TicketNumber,
        since: Millis,
        now: Millis,
    ) -> bool {
        self.restore_standing(session, queue, number, Standing { since, place: number }, now)
    }

    /// The same, of somebody who may stand at the place of an earlier ticket.
    pub fn restore_standing(
        &mut self,
        session: SessionId,
        queue: Queue,
        number: TicketNumber,
        standing: Standing,
        now: Millis,
    ) -> bool {
        if !self.is_idle(session) {
            return false;
        }
        self.restore_next_ticket(TicketNumber(number.0.saturating_add(1)));
        self.place(session, queue, number, standing, now);
        self.unsettled.insert(queue.topic);
        true
    }

    /// Somebody who was seated before the lobby was loaded. Answers false, changing nothing, when
    /// the person has a seat already. How they stood before and whether they came is not known.
    pub fn restore_seat(&mut self, session: SessionId, seat: Seat) -> bool {
        self.restore_sitting(session, seat, None, true)
    }

    /// The same, of somebody of whom that is known.
    pub fn restore_sitting(
        &mut self,
        session: SessionId,
        seat: Seat,
        stood: Option<Standing>,
        came: bool,
    ) -> bool {
        if !self.is_idle(session) {
            return false;
        }
        self.stand(session, Person::Seated(Sitting { seat, stood, came }));
        self.rooms.get_or_default(seat.room).push(session);
        true
    }

    /// Somebody who became idle at `at`, before the lobby was loaded.
    pub fn restore_idle(&mut self, session: SessionId, reason: IdleReason, at: Millis) {
        if self.is_idle(session) {
            self.set_idle(session, reason, at);
        }
    }

    /// The same, of somebody for whom a place is kept.
    pub fn restore_kept(&mut self, session: SessionId, place: KeptPlace, at: Millis) {
        self.restore_idle(session, IdleReason::RoomClosed, at);
        if let Some(Person::Idle { kept, .. }) = self.people.get_mut(&session) {
            *kept = Some(Box::new(place));
        }
    }

    fn is_idle(&self, session: SessionId) -> bool {
        matches!(self.people.get(&session), None | Some(Person::Idle { .. }))
    }
}
