//! One person: idle, waiting, taken for a room, or seated.

use crate::ids::{Queue, RoomId, SessionId, TicketNumber, TopicId};
use crate::policy::{Millis, Policy};
use crate::resume::{KeptPlace, Offer, Standing, rested};
use crate::seating::{Candidate, Kind};

/// Why a session is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdleReason {
    /// The wait lasted for the wait timeout.
    WaitExpired,
    /// No sign of life for the presence timeout.
    Absent,
    /// The person stopped waiting, or gave up the seat.
    Left,
    /// The room was closed, or too few were left in it.
    RoomClosed,
    /// The topic was switched off.
    TopicClosed,
    /// The person was banned.
    Banned,
    /// The room could not be written, repeatedly.
    Failed,
}

impl IdleReason {
    /// Every reason there is.
    pub const ALL: [Self; 7] = [
        Self::WaitExpired,
        Self::Absent,
        Self::Left,
        Self::RoomClosed,
        Self::TopicClosed,
        Self::Banned,
        Self::Failed,
    ];

    /// The word of the public contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WaitExpired => "wait_expired",
            Self::Absent => "absent",
            Self::Left => "left",
            Self::RoomClosed => "room_closed",
            Self::TopicClosed => "topic_closed",
            Self::Banned => "banned",
            Self::Failed => "failed",
        }
    }

    /// The reason that [`IdleReason::as_str`] writes as `word`.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }
}

/// What a person is told about themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Neither waiting nor seated; why is remembered for a while.
    Idle(Option<IdleReason>),
    /// Idle because the room closed, as above, and the place in the queue may be taken up again.
    Offered(Offer),
    /// In a queue, or taken from it for a room that is not written yet.
    Waiting(Waiting),
    /// Seated in a room.
    Matched(Seat),
}

/// A wait as its person sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Where.
    pub queue: Queue,
    /// The number of the wait.
    pub ticket: TicketNumber,
    /// Since when.
    pub since: Millis,
    /// How many people stand before this one, counted up to [`crate::AHEAD_LIMIT`].
    pub ahead: usize,
    /// When the wait ends.
    pub expires_at: Millis,
    /// From when on a smaller room will do, for a room type that has a fallback.
    pub fallback_at: Option<Millis>,
}

/// A seat in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The room.
    pub room: RoomId,
    /// What it talks about.
    pub topic: TopicId,
    /// How many people were seated when the room was formed.
    pub size: u8,
    /// The room type that this person asked for.
    pub requested: u8,
    /// When the room was formed.
    pub matched_at: Millis,
}

/// One person's wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) number: TicketNumber,
    /// The number that stands for it in the order of arrival: its own, or that of the ticket whose place
    /// is taken up again.
    pub(crate) place: TicketNumber,
    pub(crate) queue: Queue,
    pub(crate) since: Millis,
    /// Dropped as absent from this moment on, unless a sign of life moves it.
    pub(crate) present_until: Millis,
    /// The moment of this ticket's entry in the alarms, never later than what it waits for.
    pub(crate) alarm: Millis,
    /// Not to be seated before this moment: a room with this person was refused lately.
    pub(crate) held_until: Millis,
    /// How often a room with this person was refused.
    pub(crate) refusals: u8,
}

impl Ticket {
    pub(crate) fn expires_at(&self, policy: &Policy) -> Millis {
        self.since.saturating_add(policy.wait_timeout)
    }

    pub(crate) fn fallback_at(&self, policy: &Policy) -> Option<Millis> {
        policy.room_types.get(self.queue.room_type)?.fallback?;
        Some(self.since.saturating_add(policy.fallback_after))
    }

    /// Why this wait is over at `now`, if it is.
    pub(crate) fn over(&self, policy: &Policy, now: Millis) -> Option<IdleReason> {
        if self.expires_at(policy) <= now {
            Some(IdleReason::WaitExpired)
        } else if self.present_until <= now {
            Some(IdleReason::Absent)
        } else {
            None
        }
    }

    /// When this ticket has to be looked at next, `now` being before its end.
    pub(crate) fn next_alarm(&self, policy: &Policy, now: Millis) -> Millis {
        let end = self.expires_at(policy).min(self.present_until);
        let ripe = self.fallback_at(policy).filter(|at| *at > now).unwrap_or(end);
        let free = Some(self.held_until).filter(|at| *at > now).unwrap_or(end);
        end.min(ripe).min(free)
    }

    pub(crate) fn candidate(&self, session: SessionId, policy: &Policy, now: Millis) -> Candidate {
        Candidate {
            session,
            ticket: self.number,
            place: self.place,
            room_type: self.queue.room_type,
            since: self.since,
            ripe: self.fallback_at(policy).is_some_and(|at| at <= now),
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        Standing { since: self.since, place: self.place }
    }

    pub(crate) fn waiting(&self, ahead: usize, policy: &Policy) -> Waiting {
        Waiting {
            queue: self.queue,
            ticket: self.number,
            since: self.since,
            ahead,
            expires_at: self.expires_at(policy),
            fallback_at: self.fallback_at(policy),
        }
    }
}

/// Somebody taken from the queue for a room that is not written yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    pub(crate) ticket: Ticket,
    pub(crate) room: RoomId,
    /// What the person becomes when the room is undone: idle for this reason, or back in place.
    pub(crate) leaving: Option<IdleReason>,
}

impl Hold {
    /// The person is to be idle for `reason` should the room be undone. A ban outlives other reasons.
    pub(crate) fn leave(&mut self, reason: IdleReason) {
        if self.leaving != Some(IdleReason::Banned) {
            self.leaving = Some(reason);
        }
    }
}

/// Where a person stands.
#[derive(Debug)]
pub(crate) enum Person {
    // The place is boxed because hardly anybody has one.
    Idle { reason: IdleReason, until: Millis, kept: Option<Box<KeptPlace>> },
    Waiting(Ticket),
    // Boxed because it is rare and short, and every other person would pay for its size.
    Reserved(Box<Hold>),
    Seated(Sitting),
}

/// Somebody with a seat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sitting {
    pub(crate) seat: Seat,
    /// How they stood before, as far as it is known.
    pub(crate) stood: Option<Standing>,
    /// Whether they ever had a connection to the room.
    pub(crate) came: bool,
}

impl Sitting {
    /// The place that they had.
    pub(crate) fn place(&self, policy: &Policy) -> Option<KeptPlace> {
        let Seat { room, topic, requested, matched_at, .. } = self.seat;
        let Standing { since, place } = self.stood?;
        let waited = rested(matched_at.saturating_sub(since), policy);
        Some(KeptPlace { room, queue: Queue { topic, room_type: requested }, waited, place })
    }
}

/// People taken together for a room whose conversation is not written yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The room to be written.
    pub room: RoomId,
    /// What it talks about.
    pub topic: TopicId,
    /// By which rule it was formed.
    pub kind: Kind,
    /// When.
    pub formed_at: Millis,
    /// Its people in order of arrival; the first has seat 1.
    pub people: Vec<Reserved>,
}

impl Reservation {
    /// How many people the room seats.
    pub fn size(&self) -> u8 {
        u8::try_from(self.people.len()).unwrap_or(u8::MAX)
    }
}

/// One person of a [`Reservation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Who.
    pub session: SessionId,
    /// The wait that led here.
    pub ticket: TicketNumber,
    /// The room type that was asked for.
    pub requested: u8,
    /// Waiting since.
    pub since: Millis,
}
