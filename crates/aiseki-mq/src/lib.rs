//! A reliable message queue on Redis 7 and Valkey 8 or later: fenced leases, blocking done right, no
//! leader, no lock, no scheduler.
//!
//! At least once, and provably not more often than leases end: a message is delivered again only
//! when its worker gave it back, or was silent for a whole lease. Who may settle a delivery is
//! decided by its fencing token, in one step on the server.
//!
//! # Publish and work
//!
//! ```
//! use std::sync::Arc;
//! use aiseki_mq::{Lists, ListsOptions, Message, Outcome, Queue, QueueName, Server, Worker};
//! use tokio_util::sync::CancellationToken;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let redis = aiseki_testkit::Redis::start()?;
//! # let url = redis.url();
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
//! let server = Server::new(&url)?; // such as "redis://127.0.0.1:6379"
//! let queue = Arc::new(Lists::new(&server, QueueName::new("mail")?, ListsOptions::default()));
//!
//! queue.publish(&[Message::new("to: you"), Message::new("to: me").with_id("order-7")]).await?;
//!
//! let worker = Worker::new(queue.clone(), |job| async move {
//!     match std::str::from_utf8(&job.delivery.payload) {
//!         Ok(_mail) => Outcome::Ack,
//!         Err(_) => Outcome::Bury("not UTF-8".to_owned()),
//!     }
//! });
//! // A service passes `stop_on_signals()?` instead, and no `until_empty`.
//! let worker = worker.concurrency(8).until_empty(true);
//! let report = worker.run(CancellationToken::new()).await?;
//! assert_eq!(report.acked, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })
//! # }
//! ```
//!
//! # Without a worker
//!
//! One exchange acks what is done, takes back what has expired, makes ready what is due and claims,
//! in one round trip. Here a batch is claimed, and acked together with the next claim:
//!
//! ```
//! use std::time::Duration;
//! use aiseki_mq::{Lists, ListsOptions, Message, Queue, QueueName, Server, Settled};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let redis = aiseki_testkit::Redis::start()?;
//! # let url = redis.url();
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
//! let queue = Lists::new(&Server::new(&url)?, QueueName::new("log")?, ListsOptions::default());
//! let lines: Vec<_> = (0..150).map(|n| Message::new(format!("line {n}"))).collect();
//! queue.publish(&lines).await?;
//!
//! let consumer = queue.consumer("writer", Duration::from_secs(30))?;
//! let first = consumer.receive(100, Duration::from_secs(5)).await?;
//! let done: Vec<_> = first.into_iter().map(|delivery| delivery.receipt).collect();
//! let next = consumer.exchange(&done, 100).await?;
//! assert!(next.settled.iter().all(|answer| *answer == Settled::Done));
//! assert_eq!(next.deliveries.len(), 50);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })
//! # }
//! ```
//!
//! # Which engine
//!
//! | | [`Lists`] | [`Plain`] | [`Streams`] |
//! | --- | --- | --- | --- |
//! | who publishes | this crate, and scripts that embed its publish step ([`build_script`]) | any client: `LPUSH` | any client: `XADD` |
//! | a late ack | refused by its fencing token | refused unless an equal payload is out | refused by owner and delivery |
//! | delays, unique keys, ids, cancel, bounded length, durability, shards | yes | no | no |
//! | order | first in, first out, until something is tried again | the same | the same |
//!
//! All of them recover what lost workers had, keep dead letters with their reason, pause, drain and
//! count; one suite of tests holds them to it. What no queue can do is make a handler's effects
//! happen once: a worker may die between its effect and its ack. Handlers bear a repeated message,
//! for instance by the message's id as a primary key.

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
mod subscription;
mod worker;

pub use backoff::Backoff;
pub use budgets::Budgets;
pub use error::{Error, Result};
pub use keys::{LISTS_KEYS, QueueName, lists_keys};
pub use link::Link;
pub use lists::{BATCH, Cancelled, Lists, ListsOptions};
pub use message::{
    DeadLetter, Delivery, Exchange, LONGEST_NAME, Message, Nack, Published, Receipt, Settled,
    Stats, Verdict, Which,
};
pub use metrics::Metrics;
pub use plain::Plain;
pub use publishing::Durability;
pub use queue::{Answer, Consumer, Queue, Renewer};
pub use script::{Script, all_scripts, build_script};
pub use server::{Server, Timeouts};
pub use streams::Streams;
pub use subscription::{Heard, Subscription};
pub use worker::{Job, Outcome, Report, Worker, stop_on_signals};
