//! Many servers on shared stores: one that knows who waits, and may lose it, and one that is the truth
//! about who sits where.
//!
//! Every call can be repeated, and every server does everything: the path by which a server takes
//! over what another left behind is the path that is always taken.

mod failpoint;
mod keeper;
mod lobby;
mod recorder;
mod talk;

use std::sync::Arc;
use std::time::Duration;

use aiseki_lobby::{
    IdleReason, Millis, Queue, Reservation, RoomId, Seat, SessionId, Sign, State, TopicId,
};

pub use keeper::Keeper;
pub use lobby::SharedLobby;
pub use recorder::Recorder;
pub use talk::SharedRooms;

use crate::matching::{Entered, Join, NotEntered, QueueLength, TurnedAway};
use crate::port::Pending;
use crate::rate_limit::{AddressGroup, Limited};
use crate::records::Departure;
use crate::rooms::{Appended, Attendance, Closing, Line, Member, NotSaid, Said};

/// Where people wait. Each call is one atomic step by the store's clock.
pub trait WaitingStore: Send + Sync {
    /// Begins to wait, unless a check before it answers; `door` is what the door said.
    fn enter(&self, join: Join, door: Option<TurnedAway>)
    -> Pending<'_, Result<Entry, NotEntered>>;
    /// Stops waiting; the error is the state of somebody for whom a room was formed first.
    fn cancel(&self, session: SessionId) -> Pending<'_, Result<(), State>>;
    /// The person's state, which is a sign of life.
    fn poll(&self, session: SessionId) -> Pending<'_, State>;
    /// Signs of life of many people.
    fn touch(&self, sessions: Vec<SessionId>, sign: Sign) -> Pending<'_, ()>;
    /// Does what is due with nobody asking, a bounded part of it.
    fn tick(&self) -> Pending<'_, Tick>;
    /// People hold no seat in their rooms any more. Whoever sat there until now has parted from
    /// everybody else who did.
    fn vacate(&self, rooms: Vec<Leaving>) -> Pending<'_, ()>;
    /// A page of all seats in rooms that are confirmed; the first begins at 0.
    fn seats(&self, from: u64) -> Pending<'_, SeatPage>;
    /// Gives people the seats that they hold by the records.
    fn restore_seats(&self, seats: Vec<(SessionId, Seat)>) -> Pending<'_, ()>;
    /// The two of each pair are never seated together again.
    fn keep_apart(&self, pairs: Vec<(SessionId, SessionId)>) -> Pending<'_, ()>;
    /// Ends the waits of people.
    fn expel(&self, sessions: Vec<SessionId>, reason: IdleReason) -> Pending<'_, ()>;
    /// Takes everybody out who waits for a topic.
    fn close_topic(&self, topic: TopicId) -> Pending<'_, ()>;
    /// From where people came who wait in a queue, in the order of arrival after a place, or with no
    /// queue those who are held for a room.
    fn addresses(
        &self,
        queue: Option<Queue>,
        after: Option<Place>,
    ) -> Pending<'_, Vec<(SessionId, String, Place)>>;
    /// Every queue that has people, with its oldest wait.
    fn queues(&self) -> Pending<'_, Vec<QueueLength>>;
    /// How many people wait in each queue that has people.
    fn lengths(&self) -> Pending<'_, Vec<(Queue, usize)>>;
    /// Counts a new session against the limit of its address.
    fn count_new_session(&self, address: AddressGroup) -> Pending<'_, Result<(), Limited>>;
    /// Which run of the store this is, and of which one all live seats are known to be there. A store
    /// that has lost something is another run.
    fn runs(&self) -> Pending<'_, Runs>;
    /// From now on the live seats are known to be in this run.
    fn seats_are_known(&self, run: String) -> Pending<'_, ()>;
    /// Lets one server alone read the seats back; true for the one that may, for a while.
    fn may_read_back(&self) -> Pending<'_, bool>;
    /// When a reservation lapses that is not written.
    fn lapses_at(&self, reservation: &Reservation) -> Millis;
    /// The time by the store's clock.
    fn now(&self) -> Millis;
    /// Whether the store can be asked.
    fn available(&self) -> bool;
}

/// Where formed rooms wait to be written down.
pub trait FormedRooms: Send + Sync {
    /// Takes rooms that are to be written, and waits for the first of them at most for `patience`.
    /// Each is this server's for a lease and then anybody's.
    fn take(&self, at_most: usize, patience: Duration) -> Pending<'_, Vec<FormedRoom>>;
    /// Settles rooms with their people, and is done with them. Answers whose seats in which rooms have
    /// to be given up.
    fn settle(&self, rooms: Vec<(FormedRoom, Outcome)>) -> Pending<'_, Vec<(SessionId, RoomId)>>;
    /// Gives rooms back, to be taken again after a while.
    fn put_off(&self, rooms: Vec<FormedRoom>, by: Duration) -> Pending<'_, ()>;
    /// Whether any of these rooms has been formed and is not settled yet.
    fn unsettled(&self, rooms: Vec<RoomId>) -> Pending<'_, bool>;
    /// Rooms may be formed for the next three seconds: somebody can write them.
    fn recording(&self) -> Pending<'_, ()>;
}

/// The live side of rooms: what was said, and who is here. A room begins there when it is settled and
/// ends when too few of its people are left; both happen in the steps of the waiting store.
pub trait RoomLog: Send + Sync {
    /// The room as it stands there.
    fn view(&self, room: RoomId) -> Pending<'_, Log>;
    /// Appends to the log and numbers, in one step.
    fn append(&self, line: Line) -> Pending<'_, Result<Appended, NotSaid>>;
    /// The log after `after`, in order, at most `limit` messages.
    fn read(&self, room: RoomId, after: u64, limit: usize) -> Pending<'_, LogPage>;
    /// These connections are open.
    fn attend(&self, connections: Vec<Attendance>) -> Pending<'_, ()>;
    /// A connection has ended.
    fn depart(&self, connection: Attendance) -> Pending<'_, ()>;
    /// Tells every server that somebody is typing.
    fn typing(&self, room: RoomId, seat: u8) -> Pending<'_, ()>;
    /// Whose seats are to be given up because they were away for too long; with nobody named, a room
    /// whose log is lost.
    fn overdue(&self) -> Pending<'_, Vec<(RoomId, Option<SessionId>)>>;
}

/// What the log knows of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Log {
    /// Everybody who ever had a seat, by seat.
    Live(Vec<Member>),
    /// It is not there; perhaps it is known why it ended.
    None(Option<Closing>),
}

/// A part of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// The number of the last message of the log.
    pub last: u64,
    /// The messages that were asked for.
    pub said: Vec<Arc<Said>>,
}

/// Somebody waits, or is seated at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The state now.
    pub entered: Entered,
    /// Whether a room with this person was formed in this step.
    pub reserved: bool,
    /// Whether the store had all live seats at this step, so that this person surely holds none.
    pub seats_known: bool,
}

/// What a tick did and leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// In how many milliseconds there is more to do; `None` when nothing is known.
    pub due_in: Option<Millis>,
    /// How many announcements the store has made since it began.
    pub announced: u64,
}

/// A page of seats, and where the next begins; none at the end. A seat may come twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatPage {
    /// Who sits where.
    pub seats: Vec<(SessionId, RoomId)>,
    /// The next page.
    pub next: Option<u64>,
}

/// A place in a queue, as the store writes it.
pub type Place = String;

/// People who hold no seat in a room any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// The room.
    pub room: RoomId,
    /// Who, and why each of them is idle.
    pub people: Vec<(SessionId, IdleReason)>,
    /// Others who may sit there; the store knows which of them do.
    pub others: Vec<SessionId>,
}

impl Leaving {
    /// The room has ended for these people, who are all that sat there.
    fn ended(room: RoomId, people: Vec<SessionId>) -> Self {
        let people = people.into_iter().map(|session| (session, IdleReason::RoomClosed)).collect();
        Self { room, people, others: Vec::new() }
    }

    /// Somebody gave up the seat, as the records say.
    fn departed(room: RoomId, session: SessionId, why: IdleReason, departure: Departure) -> Self {
        let Departure { ended_for, everybody, .. } = departure;
        let mut leaving = Self::ended(room, ended_for);
        leaving.people.retain(|(other, _)| *other != session);
        leaving.people.insert(0, (session, why));
        leaving.others = everybody;
        leaving.others.retain(|it| leaving.people.iter().all(|(gone, _)| gone != it));
        leaving
    }
}

/// Runs of the waiting store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    /// The present one.
    pub current: String,
    /// The one that has all live seats.
    pub seats_known_in: String,
}

/// A room that is to be written, and by what it is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormedRoom {
    /// Who was taken for it.
    pub reservation: Reservation,
    /// The fencing token of this delivery.
    pub token: u64,
}

/// What became of a formed room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is written and these people hold its seats.
    Written(Vec<SessionId>),
    /// It never will be: its people return to their places.
    Lapsed,
    /// It was refused: its people return, and are not seated again for a while.
    Refused,
    /// It had ended before it was confirmed: its people are idle.
    Ended,
}

/// Calls to a store that are cut into parts have so many people in each.
const PEOPLE_AT_ONCE: usize = 500;
