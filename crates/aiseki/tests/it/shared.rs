//! Many servers on shared stores.

/// Random days on Redis, judged by what the rule of the lobby expects.
mod differential;
/// The scripts themselves.
mod scripts;
