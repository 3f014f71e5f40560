//! Many servers on shared stores.

/// Random days on Redis, judged by what the rule of the lobby expects.
mod differential;
/// Behind the load balancer that is deployed.
mod haproxy;
/// The scripts themselves.
mod scripts;
