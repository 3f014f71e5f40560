//! What an operator decides about seating: room types, their fallbacks and the times.

use std::fmt;
use std::str::FromStr;

/// A span or a point of time in milliseconds. Points count from the Unix epoch, by the store's clock.
pub type Millis = u64;

/// The smallest number of people a room can be asked for.
pub const SMALLEST_ROOM: u8 = 2;
/// The largest number of people a room can be asked for.
pub const LARGEST_ROOM: u8 = 8;

/// Every number that decides who is seated when. The defaults are those of the public contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The room types people can ask for.
    pub room_types: RoomTypes,
    /// After this long, somebody whose room type has a fallback accepts the smaller room.
    pub fallback_after: Millis,
    /// After this long a wait ends and the session becomes idle.
    pub wait_timeout: Millis,
    /// A reserved room that is not written within this time is undone.
    pub reservation_ttl: Millis,
    /// Somebody waiting who shows no sign of life for this long is dropped.
    pub presence_timeout: Millis,
    /// Somebody who closed the connection that kept them present is dropped after this long, when
    /// that is sooner than [`Policy::presence_timeout`].
    pub closed_grace: Millis,
    /// Whether people past their fallback time also join the queue of the smaller room type.
    pub merge_fallback: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            room_types: RoomTypes::default(),
            fallback_after: 60_000,
            wait_timeout: 300_000,
            reservation_ttl: 30_000,
            presence_timeout: 30_000,
            closed_grace: 10_000,
            merge_fallback: true,
        }
    }
}

/// The room types of a policy, smallest first. Written as `2,3>2`: rooms of two, and rooms of three
/// that become rooms of two when the third does not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomTypes(Vec<RoomType>);

/// How many people a room is asked for, and what is accepted instead after a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomType {
    /// People in the room: [`SMALLEST_ROOM`] to [`LARGEST_ROOM`].
    pub size: u8,
    /// The smaller room that will do after [`Policy::fallback_after`].
    pub fallback: Option<u8>,
}

impl RoomTypes {
    /// The room types, smallest first.
    pub fn iter(&self) -> impl Iterator<Item = RoomType> + '_ {
        self.0.iter().copied()
    }

    /// The room type for rooms of `size`, if the policy has it.
    pub fn get(&self, size: u8) -> Option<RoomType> {
        self.iter().find(|room_type| room_type.size == size)
    }
}

impl Default for RoomTypes {
    fn default() -> Self {
        Self(vec![RoomType { size: 2, fallback: None }, RoomType { size: 3, fallback: Some(2) }])
    }
}

impl fmt::Display for RoomTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, RoomType { size, fallback }) in self.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{size}")?;
            if let Some(fallback) = fallback {
                write!(f, ">{fallback}")?;
            }
        }
        Ok(())
    }
}

/// Why a text names no usable room types. Its `Display` is one sentence for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomTypesError {
    /// Nothing was named at all.
    Empty,
    /// A part is neither `SIZE` nor `SIZE>FALLBACK`.
    Malformed(String),
    /// A size outside [`SMALLEST_ROOM`] to [`LARGEST_ROOM`].
    OutOfRange(u8),
    /// A fallback that is not smaller than its room type.
    FallbackNotSmaller(RoomType),
    /// The same size twice.
    Repeated(u8),
}

impl fmt::Display for RoomTypesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "no room type is named (such as 2,3>2)"),
            Self::Malformed(part) => {
                write!(f, "{part:?} is not a room type (such as 2, or 3>2 with its fallback)")
            }
            Self::OutOfRange(size) => {
                write!(f, "a room of {size} is outside {SMALLEST_ROOM} to {LARGEST_ROOM}")
            }
            Self::FallbackNotSmaller(RoomType { size, fallback }) => {
                let fallback = fallback.unwrap_or_default();
                write!(f, "the fallback {fallback} is not smaller than its room type {size}")
            }
            Self::Repeated(size) => write!(f, "the room type {size} is named twice"),
        }
    }
}

impl std::error::Error for RoomTypesError {}

impl FromStr for RoomTypes {
    type Err = RoomTypesError;

    fn from_str(text: &str) -> Result<Self, RoomTypesError> {
        if text.trim().is_empty() {
            return Err(RoomTypesError::Empty);
        }
        let mut room_types: Vec<RoomType> = Vec::new();
        for part in text.split(',') {
            let room_type = parse_room_type(part.trim())?;
            if room_types.iter().any(|other| other.size == room_type.size) {
                return Err(RoomTypesError::Repeated(room_type.size));
            }
            room_types.push(room_type);
        }
        room_types.sort_by_key(|room_type| room_type.size);
        Ok(Self(room_types))
    }
}

fn parse_room_type(part: &str) -> Result<RoomType, RoomTypesError> {
    let number = |text: &str| {
        let text = text.trim();
        if !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(RoomTypesError::Malformed(part.to_owned()));
        }
        let size: u8 = text.parse().map_err(|_| RoomTypesError::Malformed(part.to_owned()))?;
        if (SMALLEST_ROOM..=LARGEST_ROOM).contains(&size) {
            Ok(size)
        } else {
            Err(RoomTypesError::OutOfRange(size))
        }
    };
    let (size, fallback) = match part.split_once('>') {
        Some((size, fallback)) => (number(size)?, Some(number(fallback)?)),
        None => (number(part)?, None),
    };
    let room_type = RoomType { size, fallback };
    if fallback.is_some_and(|fallback| fallback >= size) {
        return Err(RoomTypesError::FallbackNotSmaller(room_type));
    }
    Ok(room_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_types_are_read_and_written_alike() {
        for (text, shown) in [("2,3>2", "2,3>2"), ("8>3, 2", "2,8>3"), ("3 > 2", "3>2")] {
            assert_eq!(text.parse::<RoomTypes>().unwrap().to_string(), shown);
        }
        assert_eq!(RoomTypes::default().to_string(), "2,3>2");
    }

    #[test]
    fn unusable_room_types_are_refused_with_their_reason() {
        use RoomTypesError as E;
        let pair = |size, fallback| RoomType { size, fallback: Some(fallback) };
        for (text, error) in [
            ("", E::Empty),
            (" ", E::Empty),
            ("2,,3", E::Malformed(String::new())),
            ("two", E::Malformed("two".into())),
            ("+2", E::Malformed("+2".into())),
            ("3>2>1", E::Malformed("3>2>1".into())),
            ("999", E::Malformed("999".into())),
            ("1", E::OutOfRange(1)),
            ("9", E::OutOfRange(9)),
            ("3>1", E::OutOfRange(1)),
            ("2>2", E::FallbackNotSmaller(pair(2, 2))),
            ("2>3", E::FallbackNotSmaller(pair(2, 3))),
            ("2,2", E::Repeated(2)),
        ] {
            assert_eq!(text.parse::<RoomTypes>(), Err(error), "{text:?}");
        }
    }
}
