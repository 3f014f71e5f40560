//! The queue on real servers.

/// A server, a queue and a plain connection for one test.
mod bed;
/// Many messages with workers that are killed all the time; by the million when asked for.
mod campaign;
/// What every engine keeps to.
mod conformance;
/// Workers that are killed or frozen, as processes.
mod crash;
/// Workers of one process that take one by one: their steps go together, and stay their own.
mod desk;
/// The doctor finds what is wrong, and nothing in what is right.
mod doctor;
/// A network that cuts, delays and loses answers, and a server that goes away or forgets.
mod faults;
/// What the `lists` engine has beyond the common core.
mod lists;
/// Random operations with virtual time, compared with a simple model.
mod model;
/// Other servers: a cluster, Valkey, Sentinel, TLS and users.
mod platforms;
/// The Lua itself: syntax, globals, and the part that others embed.
mod scripts;
/// What a worker counts and says.
mod telemetry;
/// The worker, on every engine.
mod worker;
