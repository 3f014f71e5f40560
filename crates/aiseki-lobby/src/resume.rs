//! The way back for those who came to a room in which somebody else never did.
//!
//! A room that ends because a seat was given up for being away, by somebody who never came, leaves the
//! others where they would not be had they not been seated: at the end of the queue. Each of them who
//! did come is offered the place that they had, for as long as it is told why they are idle:
//!
//! 1. The place is that of the first ticket in the order of arrival: they stand before everybody who
//!    came later. The ticket itself is a new one, because late answers compare its number.
//! 2. The wait goes on with what they had waited when the room was formed ([`Offer::waited`]): the time
//!    in the room does not count. They keep at least [`REST`] of it, or half of the wait timeout when
//!    that is less, so that nobody is taken in whose wait is about to end.
//! 3. It is one join, with every check of a join, that names the room and the queue they had asked for.
//!    Whatever they join, the offer is used up.

use crate::ids::{Queue, RoomId, SessionId, TicketNumber};
use crate::lobby::Lobby;
use crate::person::{IdleReason, Person};
use crate::policy::{Millis, Policy};
use crate::seating::Companions;

/// Who takes up a place again may wait for so long, at least.
pub const REST: Millis = 60_000;

/// A place that somebody idle may take up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The room that ended.
    pub room: RoomId,
    /// In which queue.
    pub queue: Queue,
    /// What will count as waited already.
    pub waited: Millis,
    /// Until when.
    pub until: Millis,
}

/// How somebody stood in the queue from which they were seated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Waiting since.
    pub since: Millis,
    /// The number of the ticket to which the place in the order of arrival belongs.
    pub place: TicketNumber,
}

/// What an adapter keeps of an [`Offer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptPlace {
    /// The room that ended.
    pub room: RoomId,
    /// In which queue.
    pub queue: Queue,
    /// What counts as waited already.
    pub waited: Millis,
    /// The number of the ticket to which the place belongs.
    pub place: TicketNumber,
}

/// What counts of a wait that is taken up again.
pub(crate) fn rested(waited: Millis, policy: &Policy) -> Millis {
    waited.min(policy.wait_timeout - REST.min(policy.wait_timeout / 2))
}

impl<C: Companions> Lobby<C> {
    /// Somebody came to the room in which they sit: they have a connection there. True the first time.
    pub fn come(&mut self, session: SessionId, room: RoomId) -> bool {
        match self.people.get_mut(&session) {
            Some(Person::Seated(sitting)) if sitting.seat.room == room => {
                !std::mem::replace(&mut sitting.came, true)
            }
            _ => false,
        }
    }

    /// How somebody who waits or sits stands, or stood, in the queue.
    pub fn standing(&self, session: SessionId) -> Option<Standing> {
        match self.people.get(&session)? {
            Person::Waiting(ticket) => Some(ticket.standing()),
            Person::Reserved(hold) => Some(hold.ticket.standing()),
            Person::Seated(sitting) => sitting.stood,
            Person::Idle { .. } => None,
        }
    }

    /// The place that is kept for somebody idle.
    pub fn kept_place(&self, session: SessionId) -> Option<KeptPlace> {
        match self.people.get(&session)? {
            Person::Idle { kept, .. } => kept.as_deref().copied(),
            _ => None,
        }
    }

    /// The place that is offered to somebody for this room, in this queue.
    pub(crate) fn offered(
        &self,
        session: SessionId,
        room: RoomId,
        queue: Queue,
        now: Millis,
    ) -> Option<Standing> {
        let Some(Person::Idle { until, kept: Some(kept), .. }) = self.people.get(&session) else {
            return None;
        };
        let since = now.saturating_sub(rested(kept.waited, &self.policy));
        let holds = now < *until && kept.room == room && kept.queue == queue;
        holds.then_some(Standing { since, place: kept.place })
    }

    /// Whether somebody of a room was away from the beginning.
    pub(crate) fn never_came(&self, session: SessionId) -> bool {
        matches!(self.people.get(&session), Some(Person::Seated(sitting)) if !sitting.came)
    }

    /// The room of this person has ended; with `offer` they are offered their place, if they came.
    pub(crate) fn room_closed(&mut self, session: SessionId, offer: bool, now: Millis) {
        let place = match self.people.get(&session) {
            Some(Person::Seated(sitting)) if offer && sitting.came => sitting.place(&self.policy),
            _ => None,
        };
        self.set_idle(session, IdleReason::RoomClosed, now);
        if let Some(Person::Idle { kept, .. }) = self.people.get_mut(&session) {
            *kept = place.map(Box::new);
        }
    }
}
