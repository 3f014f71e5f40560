//! A worker's side of a `streams` queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Shared;
use crate::answer::{self, Head};
use crate::bell::{Blocker, SHORTEST};
use crate::error::{Error, Result};
use crate::hand::{Hand, count_acks, count_nacks, spread};
use crate::link::Link;
use crate::message::{Delivery, Exchange, Nack, Receipt, Settled, Verdict};
use crate::queue::{Answer, Consumer, Renewer, worker_id};
use crate::script::{self, millis};
use redis::Value;

/// How long a worker blocks at a time: with its step it sends two commands in this time while
/// nothing happens.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct StreamsConsumer {
    shared: Arc<Shared>,
    worker: String,
    lease: Duration,
    blocker: Blocker,
    hand: Hand<Entry>,
    paused: AtomicBool,
    /// There may be entries that are this worker's and that it has not seen.
    unread: AtomicBool,
}

/// An entry in hand, and by which delivery: what ownership is proved with.
#[derive(Debug, Clone)]
struct Entry {
    entry: String,
    deliveries: u64,
}

impl StreamsConsumer {
    pub(super) fn new(shared: Arc<Shared>, name: &str, lease: Duration) -> Self {
        Self {
            worker: worker_id(name),
            blocker: Blocker::new(shared.link.server()),
            hand: Hand::new(),
            paused: AtomicBool::new(false),
            unread: AtomicBool::new(false),
            shared,
            lease,
        }
    }

    async fn step(&self, acks: &[Receipt], max: usize) -> Result<Exchange> {
        let (known, entries) = self.hand.known(acks.iter());
        // Until the answer is here it may be lost: then what it brought is this worker's, unread.
        let before = self.unread.swap(true, Ordering::AcqRel);
        let unread = before && max > 0;
        let mut call = script::STREAMS_EXCHANGE.on(&self.shared.keys);
        call.arg(&self.worker).arg(millis(self.lease)).arg(max.min(1_000));
        call.arg(self.shared.budgets.crashes).arg(u8::from(unread)).arg(entries.len());
        for each in &entries {
            call.arg(&each.entry).arg(each.deliveries);
        }
        if unread {
            for each in self.hand.besides(acks) {
                call.arg(each.entry);
            }
        }
        let answer = self.shared.link.run_once(&script::STREAMS_EXCHANGE, &call).await?;
        let mut values = answer::list(answer)?.into_iter();
        let Head { wait: next_due, paused, left, settled } = answer::head(&mut values)?;
        let settled = spread(acks.len(), &known, settled);
        let mut deliveries = Vec::new();
        while let Some(token) = values.next() {
            deliveries.push(self.delivery(&token, &mut values)?);
        }
        self.hand.drop_all(acks.iter());
        self.paused.store(paused, Ordering::Relaxed);
        let still = if unread { paused || deliveries.len() >= max } else { before };
        self.unread.store(still, Ordering::Release);
        let metrics = self.shared.link.metrics();
        metrics.received.inc_by(deliveries.len() as u64);
        count_acks(metrics, &settled);
        Ok(Exchange { settled, deliveries, more: left > 0 && !paused, next_due, paused })
    }

    fn delivery(
        &self,
        token: &Value,
        values: &mut impl Iterator<Item = Value>,
    ) -> Result<Delivery> {
        let mut next = || values.next().ok_or(Error::Answer("half a delivery"));
        let token = answer::count(token)?;
        let entry = answer::text(next()?)?;
        let deliveries = answer::count(&next()?)?;
        let published = entry.split_once('-').and_then(|(time, _)| time.parse().ok());
        let id = answer::text(next()?)?;
        let mut count = || answer::count(&next()?).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        let (failures, crashes) = (count()?, count()?);
        let payload = answer::bytes(next()?)?;
        self.hand.put(token, Entry { entry, deliveries });
        let receipt = Receipt { shard: 0, id, token };
        Ok(Delivery { receipt, payload, failures, crashes, published_ms: published })
    }

    /// Blocks on the stream itself. What the group gives meanwhile is this worker's, whether its
    /// answer arrives or not, and the next step finds it among its pending entries.
    async fn block(&self, at_most: Duration) -> Result<()> {
        let at_most = at_most.clamp(SHORTEST, self.patience());
        if self.paused.load(Ordering::Relaxed) {
            tokio::time::sleep(at_most).await;
            return Ok(());
        }
        let limit = millis(at_most).max(1);
        let mut command = redis::cmd("XREADGROUP");
        command.arg("GROUP").arg("mq").arg(&self.worker).arg("COUNT").arg(1);
        command.arg("BLOCK").arg(limit).arg("STREAMS").arg(&self.shared.keys[0]).arg(">");
        // However this ends, an answer, an error or a dropped future, the next step looks.
        let _look = Look(&self.unread);
        self.blocker.run(&command, at_most).await?;
        Ok(())
    }

    async fn give_back(&self, nacks: &[Nack]) -> Result<Vec<Settled>> {
        let (known, entries) = self.hand.known(nacks.iter().map(|nack| &nack.receipt));
        let mut settled = Vec::with_capacity(known.len());
        for (batch, entries) in known.chunks(500).zip(entries.chunks(500)) {
            let mut call = script::STREAMS_NACK.on(&self.shared.keys[..2]);
            call.arg(&self.worker).arg(self.shared.budgets.failures);
            for (index, each) in batch.iter().zip(entries) {
                let (kind, reason) = match &nacks[*index].verdict {
                    Verdict::Fail { reason, .. } => ("fail", reason.as_str()),
                    Verdict::Release { .. } => ("release", ""),
                    Verdict::Bury { reason } => ("bury", reason.as_str()),
                };
                call.arg(&each.entry).arg(each.deliveries).arg(kind).arg(reason);
            }
            let answer = self.shared.link.run_once(&script::STREAMS_NACK, &call).await?;
            settled.extend(answer::settled(answer)?);
        }
        let settled = spread(nacks.len(), &known, settled);
        self.hand.drop_all(nacks.iter().map(|nack| &nack.receipt));
        count_nacks(self.shared.link.metrics(), nacks, &settled);
        Ok(settled)
    }

    async fn give_all_back(&self) -> Result<u64> {
        let [stream, _, state] = self.shared.keys.clone();
        let keys = [stream, state];
        let mut released = 0;
        loop {
            let mut call = script::STREAMS_DRAIN.on(&keys);
            call.arg(&self.worker);
            let here = self.shared.link.run(&script::STREAMS_DRAIN, &call).await?;
            match answer::count(&here)? {
                0 => return Ok(released),
                here => released += here,
            }
        }
    }
}

struct Look<'a>(&'a AtomicBool);

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Consumer for StreamsConsumer {
    fn worker(&self) -> &str {
        &self.worker
    }

    fn exchange<'a>(&'a self, acks: &'a [Receipt], max: usize) -> Answer<'a, Exchange> {
        Box::pin(self.step(acks, max))
    }

    fn wait(&self, at_most: Duration) -> Answer<'_, ()> {
        Box::pin(self.block(at_most))
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn nack<'a>(&'a self, nacks: &'a [Nack]) -> Answer<'a, Vec<Settled>> {
        Box::pin(self.give_back(nacks))
    }

    fn renewer(&self) -> Box<dyn Renewer> {
        let [stream, _, state] = self.shared.keys.clone();
        Box::new(StreamsRenewer {
            link: self.shared.link.another(),
            keys: [stream, state],
            worker: self.worker.clone(),
            hand: self.hand.clone(),
        })
    }

    fn drain<'a>(&'a self, _held: &'a [Receipt]) -> Answer<'a, u64> {
        Box::pin(self.give_all_back())
    }
}

struct StreamsRenewer {
    link: Link,
    /// Stream and state.
    keys: [String; 2],
    worker: String,
    hand: Hand<Entry>,
}

impl StreamsRenewer {
    async fn renew_all(&self, held: &[Receipt]) -> Result<Vec<bool>> {
        let (known, entries) = self.hand.known(held.iter());
        let mut renewed = vec![false; held.len()];
        for (batch, entries) in known.chunks(500).zip(entries.chunks(500)) {
            let mut call = script::STREAMS_RENEW.on(&self.keys);
            call.arg(&self.worker);
            for each in entries {
                call.arg(&each.entry).arg(each.deliveries);
            }
            let codes = answer::bytes(self.link.run(&script::STREAMS_RENEW, &call).await?)?;
            for (index, code) in batch.iter().zip(codes) {
                renewed[*index] = code == b'1';
            }
        }
        Ok(renewed)
    }
}

impl Renewer for StreamsRenewer {
    fn renew<'a>(&'a mut self, held: &'a [Receipt]) -> Answer<'a, Vec<bool>> {
        Box::pin(self.renew_all(held))
    }

    fn sweep(&mut self) -> Answer<'_, u64> {
        // The group keeps account of what is out: an entry cannot be out without it.
        Box::pin(async { Ok(0) })
    }
}
