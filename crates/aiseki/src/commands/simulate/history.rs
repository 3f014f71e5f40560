//! What simulated people were told: the only ground on which the invariants are judged.

use aiseki_lobby::Millis;

/// Microseconds since the run began, by the clock of this process.
pub(super) type Moment = u64;

/// A topic and a room type.
pub(super) type Queue = (i64, u8);

/// Everything that one person asked and was answered, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) events: Vec<Event>,
}

/// Something asked, and its answer. What the answer says was true at some moment between the two.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) asked: Moment,
    pub(super) answered: Moment,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// A join, and the state that came of it.
    Joined { queue: Queue, state: State },
    /// A join that was refused and changed nothing; a conflict tells the state.
    NotJoined { state: Option<State> },
    /// A join whose answer was lost: it happened or it did not.
    JoinLost { queue: Queue },
    /// The state, by a poll, a long poll, a stream or a socket.
    Told { state: State, how: How },
    /// Stopped waiting.
    Cancelled,
    /// Too late to stop: seated.
    NotCancelled { state: Option<State> },
    /// A cancellation whose answer was lost.
    CancelLost,
    /// Gave up a seat, or never had it any more.
    Left { room: String },
    /// A leave whose answer was lost.
    LeaveLost { room: String },
    /// A room as its member sees it.
    Room(RoomView),
    /// A room of which the server says that it never was this person's.
    NotMyRoom { room: String },
}

/// By which means a state was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Poll,
    LongPoll,
    Stream,
    Socket,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle { reason: Option<String> },
    Waiting(Waiting),
    Matched(Seat),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) queue: Queue,
    pub(super) since: Millis,
    pub(super) expires_at: Millis,
    pub(super) fallback_at: Option<Millis>,
    pub(super) poll_after: Millis,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) room: String,
    pub(super) topic: i64,
    pub(super) size: u8,
    pub(super) requested: u8,
    pub(super) at: Millis,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RoomView {
    pub(super) room: String,
    pub(super) topic: i64,
    pub(super) size: u8,
    pub(super) created_at: Millis,
    pub(super) ended_at: Option<Millis>,
    pub(super) me: u8,
    /// Whether the person of each seat is still there, seat 1 first.
    pub(super) here: Vec<bool>,
}

impl RoomView {
    /// Whether the person who looks holds their seat.
    pub(super) fn mine_is_live(&self) -> bool {
        let mine = usize::from(self.me).checked_sub(1).and_then(|seat| self.here.get(seat));
        self.ended_at.is_none() && mine.copied().unwrap_or(false)
    }
}

impl Event {
    /// The state that the answer tells, whatever was asked.
    pub(super) fn state(&self) -> Option<&State> {
        match &self.what {
            What::Joined { state, .. } | What::Told { state, .. } => Some(state),
            What::NotJoined { state } | What::NotCancelled { state } => state.as_ref(),
            _ => None,
        }
    }

    pub(super) fn seat(&self) -> Option<&Seat> {
        match self.state() {
            Some(State::Matched(seat)) => Some(seat),
            _ => None,
        }
    }

    pub(super) fn waiting(&self) -> Option<&Waiting> {
        match self.state() {
            Some(State::Waiting(waiting)) => Some(waiting),
            _ => None,
        }
    }

    /// Whether after this a new wait may exist.
    pub(super) fn may_begin_a_wait(&self) -> bool {
        matches!(self.what, What::Joined { .. } | What::JoinLost { .. })
    }
}

impl History {
    /// The last state that was told.
    pub(super) fn last(&self) -> Option<(&Event, &State)> {
        self.events.iter().rev().find_map(|event| event.state().map(|state| (event, state)))
    }

    /// Every room of which this person was told.
    pub(super) fn rooms(&self) -> Vec<String> {
        let mut rooms: Vec<String> = Vec::new();
        for seat in self.events.iter().filter_map(Event::seat) {
            if !rooms.contains(&seat.room) {
                rooms.push(seat.room.clone());
            }
        }
        rooms
    }
}
