//! The rule by which aiseki seats waiting people together.
//!
//! [`Lobby`] is a value. It reads no clock, rolls no dice, does no I/O: each transition takes the
//! time and says what happened. It is the engine of the embedded store, and the model that judges
//! every other store.
//!
//! ```
//! use aiseki_lobby::{Lobby, Policy, Queue, SessionId, State, TopicId};
//!
//! let mut lobby = Lobby::new(Policy::default(), 7);
//! let (ann, bob) = (SessionId([1; 16]), SessionId([2; 16]));
//! let pairs = Queue { topic: TopicId(1), room_type: 2 };
//! let mut changes = Vec::new();
//!
//! let state = lobby.enter(ann, pairs, 1_000, &mut changes).unwrap();
//! assert!(matches!(state, State::Waiting(_)));
//! lobby.enter(bob, pairs, 2_000, &mut changes).unwrap();
//! // A room was formed. It counts once an adapter has written it down.
//! let reservation = changes.into_iter().find_map(|change| match change {
//!     aiseki_lobby::Change::Reserved(reservation) => Some(reservation),
//!     _ => None,
//! });
//! lobby.confirm(&reservation.unwrap(), &[ann, bob], 2_001, &mut Vec::new());
//! assert!(matches!(lobby.state(ann, 2_001), State::Matched(seat) if seat.size == 2));
//! ```

mod acquaintances;
mod change;
mod ids;
mod lobby;
mod person;
mod policy;
mod queue;
mod restore;
mod resume;
mod seating;
mod shards;
pub mod simulation;
mod steps;

pub use acquaintances::{Acquaintances, REMATCH_WAIT};
pub use change::{Change, Refused, Sign, Undone, Vacate};
pub use ids::{Queue, RoomId, SessionId, TicketNumber, TopicId};
pub use lobby::{
    AHEAD_LIMIT, Lobby, REASON_KEPT, REFUSALS, ROOMS_PER_STEP, SWEEP_LIMIT, TOPICS_PER_TICK,
};
pub use person::{IdleReason, Reservation, Reserved, Seat, State, Waiting};
pub use policy::{
    LARGEST_ROOM, Millis, Policy, RoomType, RoomTypes, RoomTypesError, SMALLEST_ROOM,
};
pub use resume::{KeptPlace, Offer, REST, Standing};
pub use seating::{Anyone, Candidate, Companions, Kind, LOOK_AHEAD};
