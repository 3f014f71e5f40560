//! What engines have in common: for a worker of `plain` or `streams` what it has in hand (a token
//! names each delivery, and behind it stands what the engine needs to settle it), and what is counted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::Value;

use crate::error::{Error, Result};
use crate::link::Link;
use crate::message::{Message, Nack, Receipt, Settled, Verdict};
use crate::metrics::Metrics;

/// Copies share what is in hand.
#[derive(Debug)]
pub(crate) struct Hand<T> {
    entries: Arc<Mutex<HashMap<u64, T>>>,
}

impl<T> Clone for Hand<T> {
    fn clone(&self) -> Self {
        Self { entries: Arc::clone(&self.entries) }
    }
}

impl<T: Clone> Hand<T> {
    pub(crate) fn new() -> Self {
        Self { entries: Arc::default() }
    }

    pub(crate) fn put(&self, token: u64, entry: T) {
        self.lock().insert(token, entry);
    }

    pub(crate) fn drop_all<'a>(&self, receipts: impl Iterator<Item = &'a Receipt>) {
        let mut entries = self.lock();
        for receipt in receipts {
            entries.remove(&receipt.token);
        }
    }

    /// Everything in hand except for these.
    pub(crate) fn besides(&self, receipts: &[Receipt]) -> Vec<T> {
        let leaving: Vec<u64> = receipts.iter().map(|receipt| receipt.token).collect();
        let entries = self.lock();
        let staying = entries.iter().filter(|(token, _)| !leaving.contains(token));
        staying.map(|(_, entry)| entry.clone()).collect()
    }

    /// The places in `receipts`, and what stands behind them, of those that are in hand.
    pub(crate) fn known<'a>(
        &self,
        receipts: impl Iterator<Item = &'a Receipt>,
    ) -> (Vec<usize>, Vec<T>) {
        let entries = self.lock();
        let found = receipts.enumerate().filter_map(|(index, receipt)| {
            entries.get(&receipt.token).map(|entry| (index, entry.clone()))
        });
        found.unzip()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, T>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers of the known ones in their places; the others are stale.
pub(crate) fn spread(length: usize, known: &[usize], answers: Vec<Settled>) -> Vec<Settled> {
    let mut settled = vec![Settled::Stale; length];
    for (index, answer) in known.iter().zip(answers) {
        settled[*index] = answer;
    }
    settled
}

pub(crate) fn count_acks(metrics: &Metrics, settled: &[Settled]) {
    for answer in settled {
        match answer {
            Settled::Stale => metrics.stale.inc(),
            _ => metrics.acked.inc(),
        };
    }
}

pub(crate) fn count_nacks(metrics: &Metrics, nacks: &[Nack], settled: &[Settled]) {
    for (nack, answer) in nacks.iter().zip(settled) {
        match (answer, &nack.verdict) {
            (Settled::Stale, _) => metrics.stale.inc(),
            (Settled::Buried, _) => metrics.buried.inc(),
            (_, Verdict::Release { .. }) => metrics.released.inc(),
            _ => metrics.failed.inc(),
        };
    }
}

/// Counts a batch that was published, or refused for want of memory.
pub(crate) fn count_published(
    metrics: &Metrics,
    batch: &[Message],
    answer: Result<Value>,
) -> Result<()> {
    match answer {
        Ok(_) => {
            metrics.published.inc_by(batch.len() as u64);
            Ok(())
        }
        Err(Error::Server(error)) if error.code() == Some("OOM") => {
            metrics.refused.inc();
            Err(Error::OutOfMemory)
        }
        Err(error) => Err(error),
    }
}

/// Delivery stops and resumes by a field of the queue's state.
pub(crate) async fn set_paused(link: &Link, state: &str, paused: bool) -> Result<()> {
    let mut command = redis::cmd(if paused { "HSET" } else { "HDEL" });
    command.arg(state).arg("paused");
    if paused {
        command.arg("1");
    }
    link.query(&command).await.map(|_| ())
}

/// What only the `lists` engine can do is refused, rather than left out in silence.
pub(crate) fn check_simple(engine: &str, messages: &[Message], limit: usize) -> Result<()> {
    for message in messages {
        message.check()?;
        if !message.delay.is_zero() || message.unique.is_some() {
            return Err(Error::Unsupported(format!(
                "the engine {engine} knows neither delays nor unique keys: use lists"
            )));
        }
        let size = message.payload.len();
        if size > limit {
            return Err(Error::PayloadTooLarge { size, limit });
        }
    }
    Ok(())
}
