//! What the shared store asks of its database: the truth about who sits where.

use aiseki_lobby::{Millis, Reservation, RoomId, Seat, SessionId, Vacate};

use crate::port::Pending;

/// The records of rooms and seats. Every call may be repeated.
pub trait RecordStore: Send + Sync {
    /// Writes the conversations of these rooms, except of those with somebody who holds a live seat
    /// elsewhere, and answers for each of them in the same order. A room that is there already, live,
    /// ended or buried, is left as it is. One room that cannot be written does not keep the others
    /// from it.
    fn write_rooms(&self, rooms: Vec<Reservation>) -> Pending<'_, Vec<Written>>;
    /// Sees to it that these rooms are never written: a late write of the same id changes nothing.
    /// Answers for each of them in the same order; one that was written before is left as it is.
    fn bury_rooms(&self, rooms: Vec<Reservation>) -> Pending<'_, Vec<Written>>;
    /// The live seat of each of these people that has one.
    fn seats_of(&self, sessions: Vec<SessionId>) -> Pending<'_, Vec<(SessionId, Seat)>>;
    /// Live seats in the order of their people's ids, after `after`, at most `limit`.
    fn live_seats(
        &self,
        after: Option<SessionId>,
        limit: usize,
    ) -> Pending<'_, Vec<(SessionId, Seat)>>;
    /// Gives up a seat; with fewer than two people left the room ends.
    fn give_up_seat(&self, session: SessionId, room: RoomId) -> Pending<'_, Departure>;
    /// Ends a room, whoever sits in it; `None` when it was not live.
    fn end_room(&self, room: RoomId) -> Pending<'_, Option<Vec<SessionId>>>;
    /// The rooms that ended within the last `within`, with everybody who ever sat in them; of very
    /// many, the latest.
    fn lately_ended(&self, within: Millis) -> Pending<'_, Vec<EndedRoom>>;
    /// Everybody who ever sat in each of these rooms, of those that were written.
    fn people_of(&self, rooms: Vec<RoomId>) -> Pending<'_, Vec<Sitters>>;
    /// Notes that these two are never seated together again.
    fn add_block(&self, by: SessionId, whom: SessionId) -> Pending<'_, ()>;
    /// Who blocked whom, in the order of their ids, after `after`, at most `limit`.
    fn blocks(
        &self,
        after: Option<(SessionId, SessionId)>,
        limit: usize,
    ) -> Pending<'_, Vec<(SessionId, SessionId)>>;
    /// Whether the database answers and can be written to; one that can only be read is away.
    fn ping(&self) -> Pending<'_, ()>;
}

/// A room that ended, and its people by seat. The flag says whether each left by themselves.
pub type EndedRoom = (RoomId, Vec<(SessionId, bool)>);

/// A room and its people by seat: whether each left by themselves, or nothing while they sit there.
pub type Sitters = (RoomId, Vec<(SessionId, Option<bool>)>);

/// What became of a room that was to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is there and live; these people hold its seats, by seat.
    Live(Vec<SessionId>),
    /// It was there and has ended.
    Ended,
    /// It was not written and never will be.
    Buried,
    /// It was not written because these people hold a seat elsewhere.
    Occupied(Vec<(SessionId, Seat)>),
    /// The database refused this room, for a reason that was logged.
    Refused,
}

/// What giving up a seat did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Whether the seat was held until now.
    pub vacate: Vacate,
    /// Everybody who lost a seat because the room ended with it; empty while it goes on.
    pub ended_for: Vec<SessionId>,
    /// Everybody who ever had a seat there, by seat.
    pub everybody: Vec<SessionId>,
}
