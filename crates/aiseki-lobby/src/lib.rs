//! The rule by which aiseki seats waiting people together.

mod policy;

pub use policy::{
    LARGEST_ROOM, Millis, Policy, RoomType, RoomTypes, RoomTypesError, SMALLEST_ROOM,
};
