//! Who waits where, in order, and when each of them has to be looked at again.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{Queue, SessionId, TicketNumber, TopicId};
use crate::policy::Millis;
use crate::shards::Shards;

/// All queues in one ordered map, so that a thousand queues of one person cost no more memory than
/// one queue of a thousand.
pub(crate) struct Queues {
    /// By the number that stands for somebody in the order of arrival.
    order: BTreeMap<(Queue, TicketNumber), SessionId>,
    lengths: Shards<Queue, u32>,
}

impl Queues {
    pub(crate) fn new(seed: u64) -> Self {
        Self { order: BTreeMap::new(), lengths: Shards::new(seed) }
    }

    pub(crate) fn insert(&mut self, queue: Queue, place: TicketNumber, session: SessionId) {
        let before = self.order.insert((queue, place), session);
        debug_assert!(before.is_none(), "{place:?} stood in its queue already");
        *self.lengths.get_or_default(queue) += 1;
    }

    pub(crate) fn remove(&mut self, queue: Queue, place: TicketNumber) {
        let removed = self.order.remove(&(queue, place));
        debug_assert!(removed.is_some(), "{place:?} did not stand in its queue");
        if let Some(length) = self.lengths.get_mut(&queue) {
            *length -= 1;
            if *length == 0 {
                self.lengths.remove(&queue);
            }
        }
    }

    pub(crate) fn length(&self, queue: Queue) -> usize {
        self.lengths.get(&queue).copied().unwrap_or(0) as usize
    }

    /// Every queue that has people, in no particular order.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = (Queue, usize)> + '_ {
        self.lengths.iter().map(|(queue, length)| (*queue, *length as usize))
    }

    /// The people of a queue, oldest first.
    pub(crate) fn people(
        &self,
        queue: Queue,
    ) -> impl DoubleEndedIterator<Item = (TicketNumber, SessionId)> + '_ {
        self.order
            .range((queue, TicketNumber(0))..=(queue, TicketNumber(u64::MAX)))
            .map(|((_, place), session)| (*place, *session))
    }

    /// The people of all queues of a topic.
    pub(crate) fn people_of(&self, topic: TopicId) -> impl Iterator<Item = SessionId> + '_ {
        let queue = |room_type| Queue { topic, room_type };
        self.order
            .range((queue(0), TicketNumber(0))..=(queue(u8::MAX), TicketNumber(u64::MAX)))
            .map(|(_, session)| *session)
    }

    /// How many stand before `place` in its queue, counted no further than `at_most`.
    pub(crate) fn ahead(&self, queue: Queue, place: TicketNumber, at_most: usize) -> usize {
        self.order.range((queue, TicketNumber(0))..(queue, place)).take(at_most).count()
    }

    /// Every place in every queue.
    pub(crate) fn entries(&self) -> impl Iterator<Item = ((Queue, TicketNumber), SessionId)> + '_ {
        self.order.iter().map(|(place, session)| (*place, *session))
    }

    pub(crate) fn total(&self) -> usize {
        self.order.len()
    }
}

/// When somebody has to be looked at again: their wait ends, they have been silent for too long, a
/// smaller room will do from then on, or why they are idle may be forgotten. Everybody who waits or
/// is idle has exactly one alarm.
#[derive(Default)]
pub(crate) struct Alarms(BTreeSet<(Millis, SessionId)>);

impl Alarms {
    pub(crate) fn set(&mut self, at: Millis, session: SessionId) {
        let new = self.0.insert((at, session));
        debug_assert!(new, "{session:?} had this alarm already");
    }

    pub(crate) fn clear(&mut self, at: Millis, session: SessionId) {
        let removed = self.0.remove(&(at, session));
        debug_assert!(removed, "{session:?} did not have this alarm");
    }

    /// Takes the earliest alarm that is due at `now`.
    pub(crate) fn pop_due(&mut self, now: Millis) -> Option<SessionId> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, session)| session)
    }

    /// All alarms, the earliest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Millis, SessionId)> + '_ {
        self.0.iter().copied()
    }

    pub(crate) fn next(&self) -> Option<Millis> {
        self.0.first().map(|(at, _)| *at)
    }
}
