//! The product from outside, on its stores.

/// The ports to the stores: one suite for every store there is.
mod conformance;
/// What every test uses: clients, servers, waiting.
mod harness;
/// The contract's calls and refusals, against a server in this process.
mod http;
/// The written half of the shared store, on a real PostgreSQL.
mod postgres;
/// The real program: crashes, restarts, signals, disks that fill up.
mod process;
/// The cases of the field: what has broken services like this one.
mod seating;
/// Many servers on shared stores.
mod shared;
