//! A worker's side of a `lists` queue.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::sync::Mutex;

use super::desk::{Ask, Step, call, step};
use super::{BATCH, Shared};
use crate::answer;
use crate::bell::Bell;
use crate::error::{Error, Result, invalid};
use crate::hand::{count_acks, count_nacks};
use crate::link::Link;
use crate::message::{Delivery, Exchange, Nack, Receipt, Settled, Verdict};
use crate::queue::{Answer, Consumer, Renewer, worker_id};
use crate::script::{self, millis};

/// How long a worker blocks for each shard that it then has to ask: it sends at most one command a
/// second while nothing happens.
const PATIENCE_PER_COMMAND: Duration = Duration::from_secs(1);
/// The most receipts of one call of the renew script.
const RENEW_BATCH: usize = 500;

pub(crate) struct ListsConsumer {
    shared: Arc<Shared>,
    worker: Arc<str>,
    lease: Duration,
    bell: Bell,
    claims: Mutex<Claims>,
}

/// What makes a claim repeatable.
struct Claims {
    /// The next sequence number of each shard; it moves on when the answer is here.
    sequence: Vec<u64>,
    /// Which shard is asked first.
    first: usize,
    /// Deliveries that came before another shard's call failed.
    kept: Vec<Delivery>,
}

impl ListsConsumer {
    pub(super) fn new(shared: Arc<Shared>, name: &str, lease: Duration) -> Result<Self> {
        if lease < Duration::from_millis(10) {
            return invalid("a lease is at least 10 ms");
        }
        let worker = worker_id(name).into();
        let shards = shared.keys.len();
        let bell = shared.bell();
        let claims = Claims { sequence: vec![1; shards], first: 0, kept: Vec::new() };
        Ok(Self { shared, worker, lease, bell, claims: Mutex::new(claims) })
    }

    async fn exchange(&self, acks: &[Receipt], max: usize) -> Result<Exchange> {
        let mut claims = self.claims.lock().await;
        let shards = self.shared.keys.len();
        let mut settled = vec![Settled::Stale; acks.len()];
        let mut total = Exchange::default();
        let kept = claims.kept.len().min(max);
        total.deliveries.extend(claims.kept.drain(..kept));
        let mut unsettled = acks.len();
        for turn in 0..shards {
            let shard = (claims.first + turn) % shards;
            let mine: Vec<usize> =
                (0..acks.len()).filter(|index| acks[*index].shard == shard).collect();
            // What another shard still has to take off this worker's hands counts as in them.
            unsettled -= mine.len();
            let wanted = max.saturating_sub(total.deliveries.len() + unsettled);
            if mine.is_empty() && wanted == 0 && max > 0 {
                continue;
            }
            match self.steps(&mut claims, shard, acks, &mine, wanted).await {
                Ok(step) => {
                    for (index, answer) in mine.into_iter().zip(step.settled) {
                        settled[index] = answer;
                    }
                    total.more |= step.left > 0 && !step.paused;
                    total.paused |= step.paused;
                    total.next_due = total.next_due.into_iter().chain(step.wait).min();
                    total.deliveries.extend(step.deliveries);
                }
                Err(error) => {
                    claims.kept.append(&mut total.deliveries);
                    return Err(error);
                }
            }
        }
        claims.first = (claims.first + 1) % shards;
        // Work that is due now but beyond the bound of one call goes on at once.
        total.more |= total.next_due.is_some_and(|due| due.is_zero());
        total.settled = settled;
        let metrics = self.shared.link.metrics();
        metrics.received.inc_by(total.deliveries.len() as u64);
        count_acks(metrics, &total.settled);
        Ok(total)
    }

    /// One step of one shard; acks that are too many for one call go first.
    async fn steps(
        &self,
        claims: &mut Claims,
        shard: usize,
        acks: &[Receipt],
        mine: &[usize],
        wanted: usize,
    ) -> Result<Step> {
        let mut settled = Vec::with_capacity(mine.len());
        let mut rest = mine;
        while rest.len() > BATCH {
            let (batch, later) = rest.split_at(BATCH);
            settled.extend(self.step(claims, shard, acks, batch, 0).await?.settled);
            rest = later;
        }
        let mut step = self.step(claims, shard, acks, rest, wanted.min(BATCH)).await?;
        settled.append(&mut step.settled);
        Ok(Step { settled, ..step })
    }

    async fn step(
        &self,
        claims: &mut Claims,
        shard: usize,
        acks: &[Receipt],
        mine: &[usize],
        max: usize,
    ) -> Result<Step> {
        let acks = mine.iter().map(|index| &acks[*index]);
        let ask = Ask {
            worker: Arc::clone(&self.worker),
            lease: self.lease,
            sequence: claims.sequence[shard],
            max,
            acks: acks.map(|ack| (ack.id.clone(), ack.token)).collect(),
        };
        let step = step(&self.shared, shard, ask).await?;
        // From here the claim is known; repeating it would bring the same once more.
        claims.sequence[shard] += 1;
        Ok(step)
    }

    async fn nack(&self, nacks: &[Nack]) -> Result<Vec<Settled>> {
        let mut settled = vec![Settled::Stale; nacks.len()];
        for shard in 0..self.shared.keys.len() {
            let mine: Vec<usize> =
                (0..nacks.len()).filter(|index| nacks[*index].receipt.shard == shard).collect();
            for batch in mine.chunks(BATCH) {
                let now = self.shared.now();
                let mut command = script::NACK.on(&self.shared.keys[shard]);
                command.arg(&now).arg(self.shared.options.failure_budget);
                for nack in batch.iter().map(|index| &nacks[*index]) {
                    let (kind, delay, reason) = verdict(&nack.verdict);
                    command.arg(&nack.receipt.id).arg(nack.receipt.token);
                    command.arg(kind).arg(millis(delay)).arg(reason);
                }
                let answer = self.shared.link.run(&script::NACK, &command).await?;
                let answers = answer::settled(answer)?;
                for (index, answer) in batch.iter().zip(answers) {
                    settled[*index] = answer;
                }
            }
        }
        count_nacks(self.shared.link.metrics(), nacks, &settled);
        Ok(settled)
    }

    async fn drain(&self, held: &[Receipt]) -> Result<u64> {
        let release = |receipt: &Receipt| Nack {
            receipt: receipt.clone(),
            verdict: Verdict::Release { delay: Duration::ZERO },
        };
        let mut claims = self.claims.lock().await;
        let kept = std::mem::take(&mut claims.kept);
        let kept = kept.iter().map(|delivery| &delivery.receipt);
        let nacks: Vec<Nack> = held.iter().chain(kept).map(release).collect();
        let answers = self.nack(&nacks).await?;
        let mut released = answers.iter().filter(|each| **each == Settled::Done).count() as u64;
        for keys in &self.shared.keys {
            let now = self.shared.now();
            let mut command = script::DRAIN.on(keys);
            command.arg(&now).arg(&*self.worker);
            released += answer::count(&self.shared.link.run(&script::DRAIN, &command).await?)?;
        }
        Ok(released)
    }
}

impl Consumer for ListsConsumer {
    fn worker(&self) -> &str {
        &self.worker
    }

    fn exchange<'a>(&'a self, acks: &'a [Receipt], max: usize) -> Answer<'a, Exchange> {
        Box::pin(self.exchange(acks, max))
    }

    fn wait(&self, at_most: Duration) -> Answer<'_, ()> {
        Box::pin(async move { Ok(self.bell.wait(at_most).await?) })
    }

    fn patience(&self) -> Duration {
        let commands = u32::try_from(self.shared.keys.len()).unwrap_or(1) + 1;
        PATIENCE_PER_COMMAND * commands
    }

    fn nack<'a>(&'a self, nacks: &'a [Nack]) -> Answer<'a, Vec<Settled>> {
        Box::pin(self.nack(nacks))
    }

    fn renewer(&self) -> Box<dyn Renewer> {
        let link = self.shared.link.another();
        let shared = Arc::clone(&self.shared);
        Box::new(ListsRenewer {
            shared,
            link,
            lease: self.lease,
            cursors: vec![0; self.shared.keys.len()],
        })
    }

    fn drain<'a>(&'a self, held: &'a [Receipt]) -> Answer<'a, u64> {
        Box::pin(self.drain(held))
    }
}

struct ListsRenewer {
    shared: Arc<Shared>,
    link: Link,
    lease: Duration,
    cursors: Vec<u64>,
}

impl ListsRenewer {
    async fn renew(&self, held: &[Receipt]) -> Result<Vec<bool>> {
        let mut renewed = vec![false; held.len()];
        for (shard, keys) in self.shared.keys.iter().enumerate() {
            let mine: Vec<usize> =
                (0..held.len()).filter(|index| held[*index].shard == shard).collect();
            for batch in mine.chunks(RENEW_BATCH) {
                let now = self.shared.now();
                let mut command = script::RENEW.on(keys);
                command.arg(&now).arg(millis(self.lease));
                for index in batch {
                    command.arg(&held[*index].id).arg(held[*index].token);
                }
                let codes = answer::bytes(self.link.run(&script::RENEW, &command).await?)?;
                for (index, code) in batch.iter().zip(codes) {
                    renewed[*index] = code == b'1';
                }
            }
        }
        Ok(renewed)
    }

    async fn sweep(&mut self) -> Result<u64> {
        let mut found = 0;
        for (keys, cursor) in self.shared.keys.iter().zip(&mut self.cursors) {
            let (next, here) = page(&self.link, &self.shared, keys, *cursor).await?;
            *cursor = next;
            found += here;
        }
        Ok(found)
    }
}

impl Renewer for ListsRenewer {
    fn renew<'a>(&'a mut self, held: &'a [Receipt]) -> Answer<'a, Vec<bool>> {
        Box::pin(Self::renew(self, held))
    }

    fn sweep(&mut self) -> Answer<'_, u64> {
        Box::pin(Self::sweep(self))
    }
}

async fn page(link: &Link, queue: &Shared, keys: &[String], cursor: u64) -> Result<(u64, u64)> {
    let now = queue.now();
    let mut command = script::SWEEP.on(keys);
    command.arg(&now).arg(cursor);
    match answer::list(link.run(&script::SWEEP, &command).await?)?.as_slice() {
        [next, found] => Ok((answer::count(next)?, answer::count(found)?)),
        _ => Err(Error::Answer("a cursor and a number were expected")),
    }
}

/// Looks at all messages of a shard that are out; the answer is how many had no lease.
pub(super) async fn sweep(queue: &Shared, shard: usize) -> Result<u64> {
    let (mut cursor, mut found) = (0, 0);
    loop {
        let (next, here) = page(&queue.link, queue, &queue.keys[shard], cursor).await?;
        found += here;
        if next == 0 {
            return Ok(found);
        }
        cursor = next;
    }
}

/// Takes back all leases of a shard that have ended; the answer is how many.
pub(super) async fn reclaim(queue: &Shared, shard: usize) -> Result<u64> {
    let mut reclaimed = 0;
    loop {
        let before = count_reclaimed(queue, shard).await?;
        // The grace after a restart is the workers' affair: whoever recovers by hand means it, and
        // says so with no lease.
        let (worker, lease) = ("recover".into(), Duration::ZERO);
        let ask = Ask { worker, lease, sequence: 0, max: 0, acks: Vec::new() };
        let steps = call(queue, shard, &[ask]).await?;
        reclaimed += count_reclaimed(queue, shard).await? - before;
        if steps.iter().all(|step| step.wait.is_none_or(|wait| !wait.is_zero())) {
            return Ok(reclaimed);
        }
    }
}

async fn count_reclaimed(queue: &Shared, shard: usize) -> Result<u64> {
    let mut command = redis::cmd("HGET");
    command.arg(&queue.keys[shard][0]).arg("reclaimed");
    match queue.link.query(&command).await? {
        Value::Nil => Ok(0),
        value => answer::count(&value),
    }
}

fn verdict(verdict: &Verdict) -> (&'static str, Duration, &str) {
    match verdict {
        Verdict::Fail { delay, reason } => ("fail", *delay, reason),
        Verdict::Release { delay } => ("release", *delay, ""),
        Verdict::Bury { reason } => ("bury", Duration::ZERO, reason),
    }
}
