//! The room: what is said in it, who is here, and how a connection follows it.
//!
//! Each room has a log that counts 1, 2, 3 … without a gap. Servers tell each other only that there
//! is something new in a room; each of them reads the log from what it has delivered last, so nothing
//! is lost or repeated, whatever becomes of a signal. How people met is none of this module's business.

mod hub;
mod visit;

use std::net::IpAddr;
use std::sync::Arc;

use aiseki_lobby::{Millis, RoomId, SessionId};

pub use hub::{RoomHub, VISITS_PER_MEMBER};
pub use visit::{Event, NotVisited, Visit, Welcome};

use crate::port::{Pending, Unavailable};
use crate::rate_limit::{Limited, RateLimit};

/// Characters in one message, at most.
pub const TEXT_CHARACTERS: usize = 2_000;
/// Characters in the id that a client gives to a message, at most.
pub const ID_CHARACTERS: usize = 64;
/// Messages read from a log in one step.
pub const PAGE: usize = 50;

/// Where rooms are kept while they live. Every call may be repeated. What happens is told to every
/// server by [`RoomHub::tell`]: a [`Signal::Said`] after an append, [`Signal::Changed`] when somebody
/// comes, goes or loses the seat and when the room ends, and [`RoomHub::tell_all`] when signals may
/// have been missed. The store itself gives up the seats of members whose time away is over, and
/// drops the log of a room in the step in which the room ends.
pub trait RoomStore: Send + Sync {
    /// The room as it stands; `None` when there never was one.
    fn view(&self, room: RoomId) -> Pending<'_, Option<View>>;
    /// Appends to the log and numbers, in one step. A client's `id` that the same member has used in
    /// this room before is said once: the answer is the first.
    fn append(&self, line: Line) -> Pending<'_, Result<Appended, NotSaid>>;
    /// The log after `after`, in order, at most `limit` messages. Empty for a room that has ended.
    fn read(&self, room: RoomId, after: u64, limit: usize) -> Pending<'_, Vec<Arc<Said>>>;
    /// These connections are open: told when they open, and again every
    /// [`RoomHub::RENEW_EVERY`], so that those of a server that died can lapse. Members who hold no
    /// seat are passed over. The caller relies on the order of calls being kept.
    fn attend(&self, connections: Vec<Attendance>) -> Pending<'_, ()>;
    /// A connection has ended. The last one of a member begins the time away.
    fn depart(&self, connection: Attendance) -> Pending<'_, ()>;
    /// Tells every server that somebody is typing. Nothing of it is kept.
    fn typing(&self, room: RoomId, seat: u8) -> Pending<'_, ()>;
}

/// What was decided about rooms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomRules {
    /// Whether there are rooms to talk in here. Without them nobody is ever away.
    pub rooms: bool,
    /// Somebody without a connection loses the seat after so long; `None` for never.
    pub away_timeout: Option<Millis>,
    /// How often one member may say something; `None` for as often as they like.
    pub message_limit: Option<RateLimit>,
}

/// Something that somebody wants to say. The text and the id have been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where.
    pub room: RoomId,
    /// Who.
    pub session: SessionId,
    /// The client's own name for it.
    pub id: String,
    /// What.
    pub text: String,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Where.
    pub room: RoomId,
    /// Its number in the room, from 1 without a gap.
    pub seq: u64,
    /// The seat of who said it.
    pub seat: u8,
    /// The client's own name for it.
    pub id: String,
    /// What was said, exactly.
    pub text: String,
    /// When, by the store's clock.
    pub at: Millis,
}

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The number of the message.
    pub seq: u64,
    /// Whether it is new, and not the repetition of one that was said before.
    pub new: bool,
}

/// Why something was not said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSaid {
    /// The person holds no seat in a live room of this id.
    NotSeated,
    /// Too much in too little time.
    TooFast(Limited),
}

/// One connection of a member to a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attendance {
    /// Which room.
    pub room: RoomId,
    /// Whose.
    pub session: SessionId,
    /// Unique among all servers and all times.
    pub connection: u64,
    /// From where, so that a ban of a network finds it.
    pub address: IpAddr,
}

/// A room as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// It lives; everybody who ever had a seat, by seat.
    Live(Vec<Member>),
    /// It has ended.
    Ended(Closing),
}

/// A seat and who has or had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The number of the seat.
    pub seat: u8,
    /// Who.
    pub session: SessionId,
    /// How it stands.
    pub state: SeatState,
}

/// How a seat stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatState {
    /// Its member has a connection.
    Here,
    /// Its member has none, and loses the seat at `until`.
    Away {
        /// `None` when time away is not limited.
        until: Option<Millis>,
    },
    /// It was given up.
    Left(Closing),
}

/// Why a room ended, or somebody lost the seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Somebody left.
    Left,
    /// Somebody was away for too long.
    Away,
    /// An operator closed the room.
    Closed,
    /// Somebody was banned.
    Banned,
    /// The store lost what was said.
    StoreLost,
}

impl Closing {
    /// Every reason there is.
    pub const ALL: [Self; 5] =
        [Self::Left, Self::Away, Self::Closed, Self::Banned, Self::StoreLost];

    /// The word of the public contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Away => "away",
            Self::Closed => "closed",
            Self::Banned => "banned",
            Self::StoreLost => "store_lost",
        }
    }

    /// The reason that [`Closing::as_str`] writes as `word`.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }
}

/// There is something new in a room.
#[derive(Clone, Debug)]
pub enum Signal {
    /// This was said.
    Said(Arc<Said>),
    /// A seat or the room stands otherwise: look at it.
    Changed,
    /// Somebody is typing.
    Typing(u8),
}

/// The use cases of a room.
#[derive(Clone)]
pub struct Rooms {
    store: Arc<dyn RoomStore>,
    hub: Arc<RoomHub>,
}

impl Rooms {
    /// Rooms of this store; `hub` is told what happens in them.
    pub fn new(store: Arc<dyn RoomStore>, hub: Arc<RoomHub>) -> Self {
        Self { store, hub }
    }

    /// The room as it stands.
    pub async fn view(&self, room: RoomId) -> Result<Option<View>, Unavailable> {
        self.store.view(room).await
    }

    /// What was said last, at most `limit` messages in their order. The log knows no end but by being
    /// read, so the end is searched for: a few reads of one message, whatever the length.
    pub async fn last_said(
        &self,
        room: RoomId,
        limit: usize,
    ) -> Result<Vec<Arc<Said>>, Unavailable> {
        let first = self.store.read(room, 0, limit + 1).await?;
        if first.len() <= limit {
            return Ok(first);
        }
        // There is something after `some`, and nothing after `none`.
        let (mut some, mut step) = (limit as u64, limit as u64);
        let mut none = loop {
            let further = some.saturating_add(step);
            if self.store.read(room, further, 1).await?.is_empty() {
                break further;
            }
            (some, step) = (further, step.saturating_mul(2));
        };
        while none - some > 1 {
            let middle = some + (none - some) / 2;
            match self.store.read(room, middle, 1).await?.is_empty() {
                true => none = middle,
                false => some = middle,
            }
        }
        self.store.read(room, none.saturating_sub(limit as u64), limit).await
    }

    /// A connection of a member to a room, which has been told everything up to `after`.
    pub async fn visit(
        &self,
        room: RoomId,
        session: SessionId,
        address: IpAddr,
        after: u64,
    ) -> Result<Result<(Visit, Welcome), NotVisited>, Unavailable> {
        Visit::begin(self, room, session, address, after).await
    }

    /// Tells the store again which connections are open here. To be called every
    /// [`RoomHub::RENEW_EVERY`].
    pub async fn renew(&self) -> Result<(), Unavailable> {
        self.hub.renew(self.store.as_ref()).await
    }
}

/// Why a text cannot be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadText {
    /// It is empty, or holds a control character other than the line feed and the tab.
    Invalid,
    /// It has more than [`TEXT_CHARACTERS`] characters.
    TooLong,
}

/// Whether this may be said. Lines and tabs are part of how people write, so the line feed and the
/// tab are the only control characters that are let through; nothing is changed about a text.
pub fn check_text(text: &str) -> Result<(), BadText> {
    if text.chars().take(TEXT_CHARACTERS + 1).count() > TEXT_CHARACTERS {
        return Err(BadText::TooLong);
    }
    let refused = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.trim().is_empty() || text.chars().any(refused) {
        return Err(BadText::Invalid);
    }
    Ok(())
}

/// Whether a client may give this id to a message.
pub fn check_id(id: &str) -> bool {
    (1..=ID_CHARACTERS).contains(&id.chars().take(ID_CHARACTERS + 1).count())
        && !id.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_counted_in_characters_and_refused_for_control_characters() {
        for good in ["a", "鮨", "two\nlines\tand a tab", "👩‍👩‍👧‍👦", " x ", "e\u{301}"]
        {
            assert_eq!(check_text(good), Ok(()), "{good:?}");
        }
        assert_eq!(check_text(&"鮨".repeat(TEXT_CHARACTERS)), Ok(()));
        assert_eq!(check_text(&"x".repeat(TEXT_CHARACTERS + 1)), Err(BadText::TooLong));
        for bad in ["", " \n", "a\0", "a\r\n", "\u{7f}", "\u{85}x", "\u{1b}[31m"] {
            assert_eq!(check_text(bad), Err(BadText::Invalid), "{bad:?}");
        }
        assert!(check_id("a") && check_id(&"鮨".repeat(64)));
        assert!(!check_id("") && !check_id(&"x".repeat(65)) && !check_id("a\n"));
    }
}
