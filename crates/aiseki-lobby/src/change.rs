//! What a transition takes and what it says: signs of life, refusals, and what happened.

use crate::ids::{Queue, RoomId, SessionId, TicketNumber};
use crate::person::{IdleReason, Reservation, State};
use crate::policy::Millis;

/// Something that happened in a transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Somebody began to wait.
    Entered {
        /// Who.
        session: SessionId,
        /// The number of the wait.
        ticket: TicketNumber,
        /// Where.
        queue: Queue,
        /// Since when.
        since: Millis,
    },
    /// A wait ended without a seat.
    Dropped {
        /// Who.
        session: SessionId,
        /// The number of the wait.
        ticket: TicketNumber,
        /// Why.
        reason: IdleReason,
    },
    /// People were taken from their queues for a room that is to be written.
    Reserved(Reservation),
    /// A reservation was undone; this person stands in the queue again, at the old place.
    Returned {
        /// Who.
        session: SessionId,
        /// The number of the wait.
        ticket: TicketNumber,
    },
    /// A room was written; these people hold its seats.
    Seated {
        /// The room.
        room: RoomId,
        /// By whom its seats are held.
        people: Vec<SessionId>,
    },
    /// Somebody gave up a seat.
    Vacated {
        /// The room.
        room: RoomId,
        /// Who.
        session: SessionId,
    },
    /// A room ended; those who still held a seat are idle.
    Ended {
        /// The room.
        room: RoomId,
        /// Who held a seat until now.
        people: Vec<SessionId>,
    },
}

/// Why somebody did not begin to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The policy has no such room type.
    InvalidRoomType,
    /// Waiting in another queue: this is the state.
    AlreadyWaiting(State),
    /// Seated: this is the state.
    AlreadyMatched(State),
}

/// A sign of life, or the end of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The person is there now.
    Present,
    /// The person closed the last connection that kept them present.
    Closed,
}

/// Why a reservation is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undone {
    /// It could not be written in time; nobody is to blame.
    Lapsed,
    /// Writing it was refused. Its people are not seated again for a while, longer each time.
    Refused,
}

/// What [`crate::Lobby::vacate`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vacate {
    /// The seat was given up.
    Left,
    /// The caller held no seat in that room.
    NotSeated,
}
