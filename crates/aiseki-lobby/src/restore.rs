//! Loading what an adapter has stored, into a lobby that nobody has entered yet.

use crate::ids::{Queue, SessionId, TicketNumber};
use crate::lobby::Lobby;
use crate::person::{IdleReason, Person, Seat};
use crate::policy::Millis;
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
        if !self.is_idle(session) {
            return false;
        }
        self.restore_next_ticket(TicketNumber(number.0.saturating_add(1)));
        self.place(session, queue, number, since, now);
        self.unsettled.insert(queue.topic);
        true
    }

    /// Somebody who was seated before the lobby was loaded. Answers false, changing nothing, when
    /// the person has a seat already.
    pub fn restore_seat(&mut self, session: SessionId, seat: Seat) -> bool {
        if !self.is_idle(session) {
            return false;
        }
        self.stand(session, Person::Seated(seat));
        self.rooms.get_or_default(seat.room).push(session);
        true
    }

    /// Somebody who became idle at `at`, before the lobby was loaded.
    pub fn restore_idle(&mut self, session: SessionId, reason: IdleReason, at: Millis) {
        if self.is_idle(session) {
            self.set_idle(session, reason, at);
        }
    }

    fn is_idle(&self, session: SessionId) -> bool {
        matches!(self.people.get(&session), None | Some(Person::Idle { .. }))
    }
}
