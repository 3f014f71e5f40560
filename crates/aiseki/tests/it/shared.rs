//! Many servers on shared stores.

/// Joins that come together.
mod batches;
/// The cases of the field, on two servers.
mod cases;
/// People for as long as asked, while everything around them breaks.
mod chaos;
/// A server's clock is wrong.
mod clocks;
/// The database goes away, hangs, or refuses.
mod database;
/// Servers that die between two steps.
mod deaths;
/// Redis is away, full, or not fit.
mod degraded;
/// Random days on Redis, judged by what the rule of the lobby expects.
mod differential;
/// Behind the load balancer that is deployed.
mod haproxy;
/// Redis has forgotten something.
mod lost;
/// A match on one server wakes people on another.
mod pushes;
/// People who have just shared a room.
mod rematch;
/// The scripts themselves.
mod scripts;
/// What is said in a room of which each member is on another server.
mod talking;
