//! The names by which the rule knows people, topics, queues and rooms.

use std::fmt;

/// An anonymous person. The bytes are derived from the person's token and reveal nothing of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub [u8; 16]);

/// A room, and the conversation that is written for it. The bytes are a version 7 UUID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomId(pub [u8; 16]);

/// What people choose to talk about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub i64);

/// The number of one wait. Later waits have higher numbers, and a number is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TicketNumber(pub u64);

/// The people waiting for one topic and one room type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Queue {
    /// What they want to talk about.
    pub topic: TopicId,
    /// How many they want to be.
    pub room_type: u8,
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {self}")
    }
}

impl fmt::Display for RoomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            let dash = if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for RoomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "room {self}")
    }
}

/// Makes room ids without a source of randomness: the time, a counter, and bits that differ between
/// one lobby and the next.
pub(crate) struct RoomIds {
    entropy: u64,
    /// The milliseconds and the counter of the last id, as one number.
    last: u64,
}

impl RoomIds {
    pub(crate) fn new(entropy: u64) -> Self {
        Self { entropy, last: 0 }
    }

    /// The next id, in the layout of RFC 9562 section 5.7. Ids follow each other in order, also
    /// within a millisecond and when `now` steps back; 4,096 of one millisecond borrow from the next.
    pub(crate) fn next(&mut self, now: u64) -> RoomId {
        self.last = (now << 12).max(self.last + 1);
        let high = ((self.last >> 12) << 16) | 0x7000 | (self.last & 0xfff);
        let low = (1 << 63) | (self.entropy >> 2);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&high.to_be_bytes());
        bytes[8..].copy_from_slice(&low.to_be_bytes());
        RoomId(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_ids_are_version_7_uuids_in_order_and_never_the_same() {
        let mut ids = RoomIds::new(u64::MAX);
        let made: Vec<RoomId> =
            (0..10_000).map(|i| ids.next(1_700_000_000_000 + i / 5000)).collect();
        assert!(made.is_sorted());
        let distinct: std::collections::HashSet<_> = made.iter().collect();
        assert_eq!(distinct.len(), made.len());
        let text = made[0].to_string();
        assert_eq!(&text[..15], "018bcfe5-6800-7");
        assert!(matches!(text.as_bytes()[19], b'8'..=b'b'), "{text}");
        assert_ne!(RoomIds::new(1 << 40).next(5), RoomIds::new(2 << 40).next(5));
    }
}
