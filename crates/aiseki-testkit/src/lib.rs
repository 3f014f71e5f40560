//! Development only: real stores and a cuttable network for a test run.
//!
//! Every server is started privately on a free port, under a [`Warden`]: a small process whose
//! standard input is a pipe from the run. When the run ends, however it ends, the pipe closes and
//! the warden takes the server with it. Nothing outlives the run and nothing has to be cleaned up.
//!
//! A store is a program, arguments and a readiness check. [`Redis`] and [`Postgres`] are two that use
//! the same [`Warden`], [`Scratch`] and [`Proxy`].

mod cluster;
mod postgres;
mod proxy;
mod redis;
mod scratch;
mod wait;
mod warden;

pub use cluster::Cluster;
pub use postgres::{Postgres, PostgresOptions};
pub use proxy::Proxy;
pub use redis::{Flavour, Redis, RedisOptions, valkey_server};
pub use scratch::{Scratch, free_port};
pub use wait::{eventually, eventually_blocking};
pub use warden::Warden;
