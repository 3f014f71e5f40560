//! The service: seats waiting people together and tells them so.
//!
//! The floors, from the ground up: clock, configuration and metrics; the modules that each stand
//! alone (topics, bans, sessions, rate limits, conversations); the use cases (matching, operators,
//! push); and above them two wings that never see each other, `store` and `http`. [`app`] wires
//! them together.

pub mod app;
pub mod bans;
pub mod clock;
pub mod commands;
pub mod config;
pub mod conversations;
pub mod duration;
#[doc(hidden)]
pub mod fuzz;
pub mod http;
pub mod matching;
pub mod metrics;
pub mod operators;
pub mod port;
pub mod push;
pub mod rate_limit;
pub mod records;
pub mod reports;
pub mod rooms;
pub mod sessions;
pub mod shared;
pub mod store;
pub mod topics;
