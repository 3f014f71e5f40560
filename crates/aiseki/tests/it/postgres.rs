//! The written half of the shared store, on a real PostgreSQL.

/// What every test uses: databases, stores, rooms.
mod bed;
/// Rooms that are given up.
mod burying;
/// Conversations, topics, bans and keys.
mod keeping;
/// Giving up seats, and rooms that end.
mod leaving;
/// The tables, made and refused.
mod migrations;
/// What servers tell each other through the database.
mod notices;
/// A database that is away, slow, frozen or closed.
mod outages;
/// Servers that write the same people at once.
mod racing;
/// How fast it is, and that it is fast for the right reason.
mod speed;
/// Encrypted connections.
mod tls;
/// Writing rooms.
mod writing;
