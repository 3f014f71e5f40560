//! A reliable message queue on Redis and Valkey.

mod answer;
mod backoff;
mod bell;
mod budgets;
pub mod doctor;
mod error;
mod hand;
mod keys;
mod link;
mod lists;
mod message;
mod metrics;
mod plain;
mod publishing;
mod queue;
mod script;
mod server;
mod streams;
mod worker;

pub use backoff::Backoff;
pub use budgets::Budgets;
pub use error::{Error, Result};
pub use keys::{LISTS_KEYS, QueueName, lists_keys};
pub use lists::{BATCH, Cancelled, Lists, ListsOptions};
pub use message::{
    DeadLetter, Delivery, Exchange, LONGEST_NAME, Message, Nack, Published, Receipt, Settled,
    Stats, Verdict, Which,
};
pub use metrics::Metrics;
pub use plain::Plain;
pub use publishing::Durability;
pub use queue::{Answer, Consumer, Queue, Renewer};
pub use script::{all_scripts, build_script};
pub use server::{Server, Timeouts};
pub use streams::Streams;
pub use worker::{Job, Outcome, Report, Worker, stop_on_signals};
