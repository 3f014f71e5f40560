//! A worker's side of a `plain` queue.

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

/// How long a worker blocks at a time: with its step and its sign of life it sends three commands
/// in this time while nothing happens.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct PlainConsumer {
    shared: Arc<Shared>,
    worker: String,
    processing: String,
    lease: Duration,
    blocker: Blocker,
    hand: Hand<Element>,
    paused: AtomicBool,
}

/// An element in hand: its payload and the digest that stands for it.
#[derive(Debug, Clone)]
struct Element {
    payload: Vec<u8>,
    digest: String,
}

impl PlainConsumer {
    pub(super) fn new(shared: Arc<Shared>, name: &str, lease: Duration) -> Self {
        let worker = worker_id(name);
        Self {
            processing: shared.keys.processing(&worker),
            blocker: Blocker::new(shared.link.server()),
            hand: Hand::new(),
            paused: AtomicBool::new(false),
            shared,
            worker,
            lease,
        }
    }

    async fn step(&self, acks: &[Receipt], max: usize) -> Result<Exchange> {
        let keys = &self.shared.keys;
        let (known, elements) = self.hand.known(acks.iter());
        let all = [&keys.list, &self.processing, &keys.workers, &keys.counts, &keys.state];
        let mut call = script::PLAIN_EXCHANGE.on(&all.map(Clone::clone));
        call.arg(&self.worker).arg(millis(self.lease)).arg(max.min(1_000)).arg(elements.len());
        for element in &elements {
            call.arg(&element.payload);
        }
        for element in self.hand.besides(acks) {
            call.arg(element.digest);
        }
        // Not repeated here: an ack that was done would come back as stale.
        let answer = self.shared.link.run_once(&script::PLAIN_EXCHANGE, &call).await?;
        let mut values = answer::list(answer)?.into_iter();
        let Head { wait: next_due, paused, left, settled } = answer::head(&mut values)?;
        let settled = spread(acks.len(), &known, settled);
        let mut next = || values.next().ok_or(Error::Answer("too short a step"));
        let lost = (0..answer::count(&next()?)?).map(|_| answer::text(next()?));
        let lost: Vec<String> = lost.collect::<Result<_>>()?;
        let mut deliveries = Vec::new();
        while let Some(token) = values.next() {
            let mut next = || values.next().ok_or(Error::Answer("half a delivery"));
            let token = answer::count(&token)?;
            let digest = answer::text(next()?)?;
            let counts = answer::text(next()?)?;
            let payload = answer::bytes(next()?)?;
            deliveries.push(self.delivery(token, digest, &counts, payload));
        }
        self.hand.drop_all(acks.iter());
        self.paused.store(paused, Ordering::Relaxed);
        let metrics = self.shared.link.metrics();
        metrics.received.inc_by(deliveries.len() as u64);
        count_acks(metrics, &settled);
        let mut moved = 0;
        for worker in lost.iter().filter(|worker| **worker != self.worker) {
            moved += self.shared.reap(worker).await?;
        }
        let more = !paused && (left > 0 || moved > 0);
        Ok(Exchange { settled, deliveries, more, next_due, paused })
    }

    fn delivery(&self, token: u64, digest: String, counts: &str, payload: Vec<u8>) -> Delivery {
        let (failures, crashes) = counts.split_once(':').unwrap_or(("0", "0"));
        let count = |text: &str| text.parse().unwrap_or_default();
        let element = Element { payload: payload.clone(), digest: digest.clone() };
        self.hand.put(token, element);
        Delivery {
            receipt: Receipt { shard: 0, id: digest, token },
            payload,
            failures: count(failures),
            crashes: count(crashes),
            published_ms: None,
        }
    }

    /// Blocks on the list itself. What the server moves meanwhile stands in the worker's own list,
    /// whether its answer arrives or not, and the next step finds it there.
    async fn block(&self, at_most: Duration) -> Result<()> {
        let at_most = at_most.clamp(SHORTEST, self.patience());
        if self.paused.load(Ordering::Relaxed) {
            tokio::time::sleep(at_most).await;
            return Ok(());
        }
        // The sign of life covers the time of the block: what is moved to a worker that has
        // frozen meanwhile is found once it counts as lost.
        self.sign_of_life(&self.shared.link).await?;
        let mut command = redis::cmd("BLMOVE");
        command.arg(&self.shared.keys.list).arg(&self.processing).arg("RIGHT").arg("LEFT");
        command.arg(at_most.as_secs_f64());
        self.blocker.run(&command, at_most).await?;
        Ok(())
    }

    async fn sign_of_life(&self, link: &Link) -> Result<()> {
        let mut call = script::PLAIN_RENEW.on(&[self.processing.clone(), self.workers()]);
        call.arg(&self.worker).arg(millis(self.lease));
        link.run(&script::PLAIN_RENEW, &call).await.map(|_| ())
    }

    fn workers(&self) -> String {
        self.shared.keys.workers.clone()
    }

    async fn give_back(&self, nacks: &[Nack]) -> Result<Vec<Settled>> {
        let keys = &self.shared.keys;
        let (known, elements) = self.hand.known(nacks.iter().map(|nack| &nack.receipt));
        let all = [&keys.list, &self.processing, &keys.counts, &keys.dead, &keys.reasons];
        let mut settled = Vec::with_capacity(known.len());
        for (batch, elements) in known.chunks(500).zip(elements.chunks(500)) {
            let mut call = script::PLAIN_NACK.on(&all.map(Clone::clone));
            call.arg(self.shared.budgets.failures);
            for (index, element) in batch.iter().zip(elements) {
                let (kind, reason) = match &nacks[*index].verdict {
                    Verdict::Fail { reason, .. } => ("fail", reason.as_str()),
                    Verdict::Release { delay } if delay.is_zero() => ("release", ""),
                    Verdict::Release { .. } => ("later", ""),
                    Verdict::Bury { reason } => ("bury", reason.as_str()),
                };
                call.arg(&element.payload).arg(kind).arg(reason);
            }
            let answer = self.shared.link.run_once(&script::PLAIN_NACK, &call).await?;
            settled.extend(answer::settled(answer)?);
        }
        let settled = spread(nacks.len(), &known, settled);
        self.hand.drop_all(nacks.iter().map(|nack| &nack.receipt));
        count_nacks(self.shared.link.metrics(), nacks, &settled);
        Ok(settled)
    }

    async fn give_all_back(&self) -> Result<u64> {
        let keys = [self.shared.keys.list.clone(), self.processing.clone(), self.workers()];
        let mut released = 0;
        loop {
            let mut call = script::PLAIN_DRAIN.on(&keys);
            call.arg(&self.worker);
            let here = self.shared.link.run(&script::PLAIN_DRAIN, &call).await?;
            match answer::count(&here)? {
                0 => return Ok(released),
                here => released += here,
            }
        }
    }
}

impl Consumer for PlainConsumer {
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
        // A block is over before the sign of life before it is: see `block`.
        PATIENCE.min(self.lease / 3)
    }

    fn nack<'a>(&'a self, nacks: &'a [Nack]) -> Answer<'a, Vec<Settled>> {
        Box::pin(self.give_back(nacks))
    }

    fn renewer(&self) -> Box<dyn Renewer> {
        Box::new(PlainRenewer {
            link: self.shared.link.another(),
            keys: [self.processing.clone(), self.workers()],
            worker: self.worker.clone(),
            lease: self.lease,
            hand: self.hand.clone(),
        })
    }

    fn drain<'a>(&'a self, _held: &'a [Receipt]) -> Answer<'a, u64> {
        Box::pin(self.give_all_back())
    }
}

struct PlainRenewer {
    link: Link,
    keys: [String; 2],
    worker: String,
    lease: Duration,
    hand: Hand<Element>,
}

impl PlainRenewer {
    async fn renew_all(&self, held: &[Receipt]) -> Result<Vec<bool>> {
        let (known, elements) = self.hand.known(held.iter());
        let mut call = script::PLAIN_RENEW.on(&self.keys);
        call.arg(&self.worker).arg(millis(self.lease));
        for element in elements {
            call.arg(element.payload);
        }
        let codes = answer::bytes(self.link.run(&script::PLAIN_RENEW, &call).await?)?;
        let mut renewed = vec![false; held.len()];
        for (index, code) in known.into_iter().zip(codes) {
            renewed[index] = code == b'1';
        }
        Ok(renewed)
    }
}

impl Renewer for PlainRenewer {
    fn renew<'a>(&'a mut self, held: &'a [Receipt]) -> Answer<'a, Vec<bool>> {
        Box::pin(self.renew_all(held))
    }

    fn sweep(&mut self) -> Answer<'_, u64> {
        // The lists of lost workers are looked for in every step.
        Box::pin(async { Ok(0) })
    }
}
