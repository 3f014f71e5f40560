//! Random days in the lobby, checked after every step.
//!
//! [`Operations`] makes a sequence of [`Operation`]s from a seed. A [`Subject`] does them: the lobby
//! here, another store in its own tests. The shadow does them too, in the simplest way there is, and
//! whatever the subject answers has to be what the shadow expects. [`run`] puts these together for
//! the lobby and also checks that its indexes agree with each other.
//!
//! Rooms are numbered in the order in which they are formed ([`numbered`]), so that the answers of two
//! subjects are equal when they mean the same.

mod audit;
mod operations;
mod random;
mod run;
mod shadow;
mod spec;
mod subject;

pub use operations::{Mix, Operation, Operations};
pub use random::Random;
pub use run::{Failure, Scenario, Tally, run, scenarios};
pub use shadow::Shadow;
pub use subject::{Answer, LobbySubject, Reply, Subject};

use crate::ids::{RoomId, SessionId};
use crate::policy::Millis;

/// When every simulation begins.
pub const BEGIN: Millis = 1_700_000_000_000;

/// The person of this number. Their ids are not in the order of the numbers.
pub fn person(number: u16) -> SessionId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random::mix(u64::from(number) + 1).to_be_bytes());
    id[14..].copy_from_slice(&number.to_be_bytes());
    SessionId(id)
}

/// The number of a person of [`person`].
pub fn number(session: SessionId) -> u16 {
    u16::from_be_bytes([session.0[14], session.0[15]])
}

/// The name of the room that was formed as the `index`th, counted from zero.
pub fn numbered(index: usize) -> RoomId {
    RoomId((index as u128).to_be_bytes())
}

/// A random relation that keeps some pairs of people apart for ever: they have blocked each other.
#[derive(Clone, Copy, Debug)]
pub struct Strangers {
    /// Which pairs.
    pub seed: u64,
    /// How many of a hundred pairs may not sit together.
    pub apart: u64,
}

impl Strangers {
    /// Whether these two may share a room.
    pub fn may_meet(&self, a: SessionId, b: SessionId) -> bool {
        let (low, high) = (a.min(b), a.max(b));
        let pair = (u64::from(number(low)) << 16) | u64::from(number(high));
        random::mix(self.seed ^ pair) % 100 >= self.apart
    }
}
