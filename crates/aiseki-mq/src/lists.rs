//! The `lists` engine: lists, sorted sets and one script a step.

mod consumer;
mod desk;
pub(crate) mod letters;
mod publish;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::{ToRedisArgs, Value};

use crate::answer;
use crate::bell::Bell;
use crate::error::Result;
use crate::keys::{QueueName, lists_keys};
use crate::link::Link;
use crate::message::{DeadLetter, Message, Published, Stats, Which, check_name};
use crate::metrics::Metrics;
use crate::publishing::{Durability, DurableLink};
use crate::queue::{Answer, Consumer, Queue};
use crate::script::{self, Script};
use crate::server::Server;

pub use letters::Cancelled;

use consumer::ListsConsumer;

/// The most messages of one call of a script.
pub const BATCH: usize = 1_000;

/// What a `lists` queue is made with. Everybody who uses one queue should use the same.
#[derive(Debug, Clone)]
pub struct ListsOptions {
    /// The most messages that may be ready, delayed and leased in one shard; none: no bound.
    pub max_length: Option<u64>,
    /// The largest payload, in bytes.
    pub payload_limit: usize,
    /// A message whose handler has failed so often is a dead letter.
    pub failure_budget: u32,
    /// A message whose worker was lost so often is a dead letter.
    pub crash_budget: u32,
    /// How many acked ids are remembered, in each of two generations, so that a repeated ack is
    /// fine and a repeated publish is a duplicate.
    pub memo_limit: u32,
    /// After how long a generation of remembered ids becomes the older one.
    pub memo_age: Duration,
    /// When a publish counts as done.
    pub durability: Durability,
    /// For tests: milliseconds to use instead of the server's time.
    pub virtual_time: Option<Arc<AtomicU64>>,
}

impl Default for ListsOptions {
    fn default() -> Self {
        Self {
            max_length: None,
            payload_limit: 1024 * 1024,
            failure_budget: 10,
            crash_budget: 5,
            memo_limit: 100_000,
            memo_age: Duration::from_mins(5),
            durability: Durability::Memory,
            virtual_time: None,
        }
    }
}

/// A queue of the `lists` engine.
///
/// Guarantees: at least once; a delivery can be settled only by whoever has its fencing token; a
/// message whose worker is lost is delivered again within one lease; nothing is lost by a client
/// that dies, is cut off or repeats itself. Cannot: make a handler's effects happen once (the
/// handler must bear a repeated message), keep strict order once there are retries, or keep more
/// than the server's persistence keeps.
#[derive(Clone)]
pub struct Lists {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) link: Link,
    pub(crate) durable: DurableLink,
    pub(crate) name: QueueName,
    pub(crate) keys: Vec<Vec<String>>,
    /// One for each shard.
    desks: Vec<desk::Desk>,
    pub(crate) options: ListsOptions,
}

impl Shared {
    /// The test's time, or nothing for the server's.
    pub(crate) fn now(&self) -> String {
        let time = self.options.virtual_time.as_ref();
        time.map_or_else(String::new, |now| now.load(Ordering::SeqCst).to_string())
    }

    /// Runs a script on one shard.
    pub(crate) async fn run<A: ToRedisArgs + Sync>(
        &self,
        shard: usize,
        script: &Script,
        arguments: A,
    ) -> Result<Value> {
        let mut call = script.on(&self.keys[shard]);
        call.arg(arguments);
        self.link.run(script, &call).await
    }

    pub(crate) fn bell(&self) -> Bell {
        let wake = self.keys.iter().filter_map(|keys| keys.last().cloned()).collect();
        Bell::new(self.link.server(), wake)
    }
}

impl Lists {
    /// The queue of this name on this server; nothing is connected yet, and nothing has to be
    /// created.
    pub fn new(server: &Server, name: QueueName, options: ListsOptions) -> Self {
        let metrics = Metrics::default();
        let keys: Vec<_> = name.prefixes().iter().map(|prefix| lists_keys(prefix)).collect();
        let desks = keys.iter().map(|_| desk::Desk::default()).collect();
        let link = Link::new(server.clone(), metrics);
        let durable = DurableLink::new(server.clone());
        Self { shared: Arc::new(Shared { link, durable, name, keys, desks, options }) }
    }

    /// The queue's name and prefixes.
    pub fn name(&self) -> &QueueName {
        &self.shared.name
    }

    /// What it was made with.
    pub fn options(&self) -> &ListsOptions {
        &self.shared.options
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn shards(&self) -> std::ops::Range<usize> {
        0..self.shared.keys.len()
    }

    async fn stats_of_all(&self) -> Result<Stats> {
        let mut all = Stats::default();
        for shard in self.shards() {
            let now = self.shared.now();
            let answer = self.shared.run(shard, &script::STATS, now);
            all = all.plus(answer::stats(&answer.await?)?);
        }
        Ok(all)
    }

    /// Takes back what has expired and looks at every message that is out.
    async fn recover_all(&self) -> Result<u64> {
        let mut found = 0;
        for shard in self.shards() {
            found += consumer::sweep(&self.shared, shard).await?;
            found += consumer::reclaim(&self.shared, shard).await?;
        }
        Ok(found)
    }

    async fn erase_all(&self) -> Result<()> {
        for keys in &self.shared.keys {
            self.shared.link.unlink(keys).await?;
        }
        Ok(())
    }

    async fn pause_all(&self, paused: bool) -> Result<()> {
        for shard in self.shards() {
            self.shared.run(shard, &script::PAUSE, u8::from(paused)).await?;
        }
        Ok(())
    }
}

impl Queue for Lists {
    fn engine(&self) -> &'static str {
        "lists"
    }

    fn publish<'a>(&'a self, messages: &'a [Message]) -> Answer<'a, Vec<Published>> {
        Box::pin(publish::publish(&self.shared, messages))
    }

    fn consumer(&self, name: &str, lease: Duration) -> Result<Arc<dyn Consumer>> {
        check_name("a worker's name", name)?;
        Ok(Arc::new(ListsConsumer::new(Arc::clone(&self.shared), name, lease)?))
    }

    fn recover(&self) -> Answer<'_, u64> {
        Box::pin(self.recover_all())
    }

    fn stats(&self) -> Answer<'_, Stats> {
        Box::pin(self.stats_of_all())
    }

    fn dead_letters(&self, skip: usize, count: usize) -> Answer<'_, Vec<DeadLetter>> {
        Box::pin(letters::list(&self.shared, skip, count))
    }

    fn replay<'a>(&'a self, which: &'a Which) -> Answer<'a, u64> {
        Box::pin(letters::replay(&self.shared, which))
    }

    fn drop_dead<'a>(&'a self, which: &'a Which) -> Answer<'a, u64> {
        Box::pin(letters::drop(&self.shared, which))
    }

    fn pause(&self, paused: bool) -> Answer<'_, ()> {
        Box::pin(self.pause_all(paused))
    }

    fn erase(&self) -> Answer<'_, ()> {
        Box::pin(self.erase_all())
    }

    fn metrics(&self) -> &Metrics {
        self.shared.link.metrics()
    }
}
