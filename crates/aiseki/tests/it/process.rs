//! The real program: crashes, restarts, signals, disks that fill up.

/// Killed at any moment, under load: what was answered still holds.
mod crash;
/// A disk that is full, and has room again.
mod disk;
/// What was answered to people, and whether it still holds.
mod ledger;
/// Nothing secret is in the log.
mod log;
/// Slow, silent and half-open connections.
mod slow;
/// Directories and files that cannot be used.
mod start;
/// Told to end.
mod terminate;
