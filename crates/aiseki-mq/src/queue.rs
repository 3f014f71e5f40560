//! The common core of the engines.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::error::Result;
use crate::message::{
    DeadLetter, Delivery, Exchange, Message, Nack, Published, Receipt, Settled, Stats, Which,
};
use crate::metrics::Metrics;

/// A boxed answer, so that an engine can be chosen while the program runs.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A queue of messages, as producers, operators and workers see it.
pub trait Queue: Send + Sync {
    /// `lists`, `plain` or `streams`.
    fn engine(&self) -> &'static str;

    /// Publishes messages, in order; one answer for each. With a bound on the length it is all or
    /// nothing per shard and thousand.
    fn publish<'a>(&'a self, messages: &'a [Message]) -> Answer<'a, Vec<Published>>;

    /// A consumer, named after the worker. Its id is this name and a nonce of its own, so that two
    /// workers with one name never mix. `lease` is how long it may be silent before its messages
    /// are given to others.
    fn consumer(&self, name: &str, lease: Duration) -> Result<Arc<dyn Consumer>>;

    /// Gives the messages of lost workers back, those whose lease has ended. Workers do it all the
    /// time; the answer is how many this call found.
    fn recover(&self) -> Answer<'_, u64>;

    /// How many messages are in which state.
    fn stats(&self) -> Answer<'_, Stats>;

    /// Dead letters, the oldest first.
    fn dead_letters(&self, skip: usize, count: usize) -> Answer<'_, Vec<DeadLetter>>;

    /// Makes dead letters ready again with a fresh budget; the answer is how many.
    fn replay<'a>(&'a self, which: &'a Which) -> Answer<'a, u64>;

    /// Removes dead letters for good; the answer is how many.
    fn drop_dead<'a>(&'a self, which: &'a Which) -> Answer<'a, u64>;

    /// Stops delivery on all workers, or resumes it.
    fn pause(&self, paused: bool) -> Answer<'_, ()>;

    /// Removes the queue with everything in it, dead letters included. For tests and measurements:
    /// a worker that is at it makes the queue anew.
    fn erase(&self) -> Answer<'_, ()>;

    /// What was counted in this process.
    fn metrics(&self) -> &Metrics;
}

/// One worker's side of a queue.
pub trait Consumer: Send + Sync {
    /// The worker's id: its name and a nonce.
    fn worker(&self) -> &str;

    /// Acks what is done and takes up to `max` messages, without blocking. After an error or a
    /// dropped future the same call may be repeated: acks are repeatable, and deliveries of a lost
    /// answer come again.
    fn exchange<'a>(&'a self, acks: &'a [Receipt], max: usize) -> Answer<'a, Exchange>;

    /// Blocks until there may be something to take, at most for `at_most`, on a connection of its
    /// own. Dropping the future is safe.
    fn wait(&self, at_most: Duration) -> Answer<'_, ()>;

    /// How long a worker should block at a time when nothing is due earlier.
    fn patience(&self) -> Duration;

    /// Gives deliveries back; one answer for each.
    fn nack<'a>(&'a self, nacks: &'a [Nack]) -> Answer<'a, Vec<Settled>>;

    /// A renewer for another thread: it has connections of its own.
    fn renewer(&self) -> Box<dyn Renewer>;

    /// The worker goes: whatever it holds and has not settled is released, not counted, and free
    /// for others at once. `held` are the deliveries that it knows of. The answer is how many.
    fn drain<'a>(&'a self, held: &'a [Receipt]) -> Answer<'a, u64>;
}

/// A worker's id: its name and a nonce, so that two workers with one name never mix.
pub(crate) fn worker_id(name: &str) -> String {
    let nonce = Uuid::now_v7().simple().to_string();
    format!("{name}.{}", &nonce[16..])
}

/// Keeps a worker's leases alive, from a thread of its own.
pub trait Renewer: Send {
    /// Starts the leases anew; `false` for each that is lost. A sign of life with `&[]`, too.
    fn renew<'a>(&'a mut self, held: &'a [Receipt]) -> Answer<'a, Vec<bool>>;

    /// Looks for messages that are out with a worker although no lease says so.
    fn sweep(&mut self) -> Answer<'_, u64>;
}

impl dyn Consumer {
    /// Acks deliveries; one answer for each.
    pub async fn ack(&self, acks: &[Receipt]) -> Result<Vec<Settled>> {
        Ok(self.exchange(acks, 0).await?.settled)
    }

    /// Takes up to `max` messages, and waits for the first of them at most for `wait`.
    pub async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>> {
        let end = tokio::time::Instant::now() + wait;
        loop {
            let got = self.exchange(&[], max).await?;
            let left = end.saturating_duration_since(tokio::time::Instant::now());
            if !got.deliveries.is_empty() || left.is_zero() {
                return Ok(got.deliveries);
            }
            if !got.more {
                let due = got.next_due.unwrap_or(left);
                self.wait(left.min(due).min(self.patience())).await?;
            }
        }
    }
}
