//! The written record of rooms.

use aiseki_lobby::{Millis, RoomId, SessionId, TopicId};

use crate::port::Pending;

/// A room as it was written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// Its id, that of its room.
    pub room: RoomId,
    /// What it talks about.
    pub topic: TopicId,
    /// How many people were seated when it was formed.
    pub size: u8,
    /// When that was.
    pub created_at: Millis,
    /// When it ended; `None` while it is live.
    pub ended_at: Option<Millis>,
    /// Its people by seat.
    pub participants: Vec<Participant>,
}

/// Somebody's seat in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participant {
    /// 1 for the one who had waited longest, and so on.
    pub seat: u8,
    /// Who.
    pub session: SessionId,
    /// The room type that was asked for.
    pub requested: u8,
    /// Seated since.
    pub joined_at: Millis,
    /// Seated until; `None` while the seat is held.
    pub left_at: Option<Millis>,
}

impl Conversation {
    /// The seat that this person has or had.
    pub fn participant(&self, session: SessionId) -> Option<&Participant> {
        self.participants.iter().find(|participant| participant.session == session)
    }
}

/// Reads conversations.
pub trait ConversationStore: Send + Sync {
    /// The conversation of a room, live or ended.
    fn conversation(&self, room: RoomId) -> Pending<'_, Option<Conversation>>;
    /// Live conversations in the order of their ids, after `after`, at most `limit`.
    fn live_conversations(
        &self,
        topic: Option<TopicId>,
        after: Option<RoomId>,
        limit: usize,
    ) -> Pending<'_, Vec<Conversation>>;
}
