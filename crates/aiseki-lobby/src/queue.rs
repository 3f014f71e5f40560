//! Who waits where, in order, and when each of them has to be looked at again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::ids::{Queue, SessionId, TicketNumber};
use crate::policy::Millis;

/// All queues in one ordered map, so that a thousand queues of one person cost no more memory than
/// one queue of a thousand.
#[derive(Default)]
pub(crate) struct Queues {
    order: BTreeMap<(Queue, TicketNumber), SessionId>,
    lengths: HashMap<Queue, u32>,
}

impl Queues {
    pub(crate) fn insert(&mut self, queue: Queue, ticket: TicketNumber, session: SessionId) {
        let before = self.order.insert((queue, ticket), session);
        debug_assert!(before.is_none(), "ticket {ticket:?} stood in its queue already");
        *self.lengths.entry(queue).or_default() += 1;
    }

    pub(crate) fn remove(&mut self, queue: Queue, ticket: TicketNumber) {
        let removed = self.order.remove(&(queue, ticket));
        debug_assert!(removed.is_some(), "ticket {ticket:?} did not stand in its queue");
        if let Some(length) = self.lengths.get_mut(&queue) {
            *length -= 1;
            if *length == 0 {
                self.lengths.remove(&queue);
            }
        }
        if self.lengths.is_empty() {
            self.lengths.shrink_to(0);
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
            .map(|((_, ticket), session)| (*ticket, *session))
    }

    /// How many stand before `ticket` in its queue, counted no further than `at_most`.
    pub(crate) fn ahead(&self, queue: Queue, ticket: TicketNumber, at_most: usize) -> usize {
        self.order.range((queue, TicketNumber(0))..(queue, ticket)).take(at_most).count()
    }

    pub(crate) fn total(&self) -> usize {
        self.order.len()
    }
}

/// When somebody waiting has to be looked at again: their wait ends, they have been silent for too
/// long, or a smaller room will do from then on. Each waiting person has exactly one alarm.
#[derive(Default)]
pub(crate) struct Alarms(BTreeSet<(Millis, TicketNumber, SessionId)>);

impl Alarms {
    pub(crate) fn set(&mut self, at: Millis, ticket: TicketNumber, session: SessionId) {
        let new = self.0.insert((at, ticket, session));
        debug_assert!(new, "ticket {ticket:?} had this alarm already");
    }

    pub(crate) fn clear(&mut self, at: Millis, ticket: TicketNumber, session: SessionId) {
        let removed = self.0.remove(&(at, ticket, session));
        debug_assert!(removed, "ticket {ticket:?} did not have this alarm");
    }

    /// Takes the earliest alarm that is due at `now`.
    pub(crate) fn pop_due(&mut self, now: Millis) -> Option<SessionId> {
        let (at, ..) = *self.0.first()?;
        if at > now {
            return None;
        }
        self.0.pop_first().map(|(.., session)| session)
    }

    pub(crate) fn next(&self) -> Option<Millis> {
        self.0.first().map(|(at, ..)| *at)
    }
}
