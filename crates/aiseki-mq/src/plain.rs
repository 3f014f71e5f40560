//! The `plain` engine: one list that any client fills, made safe.

mod consumer;

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};

use crate::answer;
use crate::budgets::Budgets;
use crate::doctor::simple::PlainParts;
use crate::error::{Error, Result};
use crate::hand::{check_simple, count_published, set_paused};
use crate::keys::PlainKeys;
use crate::link::Link;
use crate::lists::BATCH;
use crate::message::{DeadLetter, Message, Published, Stats, Which, check_name};
use crate::metrics::Metrics;
use crate::queue::{Answer, Consumer, Queue};
use crate::script;
use crate::server::Server;

/// A queue of the `plain` engine.
///
/// Its list is named as the queue is; any client of any language publishes with
/// `LPUSH NAME PAYLOAD`. A worker moves elements into a list of its own (`BLMOVE`, right to left),
/// and acks by removing them there.
///
/// Guarantees: at least once, first in first out until something fails; what a lost worker had is
/// moved back by whoever is alive once its sign of life is one lease old; an element that a worker
/// was given and never read is found again; poison ends among the dead letters. Cannot: tell two
/// equal payloads apart (counts and ids are those of the payload), fence (the token is a number and
/// no proof), delay, deduplicate, or know which of a lost worker's messages was the cause. A publish
/// whose answer is lost may have been done.
#[derive(Clone)]
pub struct Plain {
    shared: Arc<Shared>,
}

struct Shared {
    link: Link,
    keys: PlainKeys,
    budgets: Budgets,
}

impl Plain {
    /// The queue whose list is `name`; nothing is connected yet.
    pub fn new(server: &Server, name: &str, budgets: Budgets) -> Result<Self> {
        check_name("a queue's name", name)?;
        let link = Link::new(server.clone(), Metrics::default());
        Ok(Self { shared: Arc::new(Shared { link, keys: PlainKeys::new(name), budgets }) })
    }

    /// What the doctor looks at.
    pub(crate) async fn parts(&self) -> Result<(&Link, PlainParts<'_>)> {
        let Shared { link, keys, .. } = &*self.shared;
        let workers = self.shared.workers().await?;
        let known = workers.iter().map(|worker| keys.processing(worker)).collect();
        let processing = keys.processing("");
        Ok((link, PlainParts { list: &keys.list, dead: &keys.dead, processing, known }))
    }

    async fn publish_all(&self, messages: &[Message]) -> Result<Vec<Published>> {
        check_simple("plain", messages, self.shared.budgets.payload_limit)?;
        for batch in messages.chunks(BATCH) {
            let mut push = redis::cmd("LPUSH");
            push.arg(&self.shared.keys.list);
            for message in batch {
                push.arg(&message.payload);
            }
            let answer = self.shared.link.once(&push).await;
            count_published(self.shared.link.metrics(), batch, answer.map_err(Error::from))?;
        }
        Ok(vec![Published::Accepted; messages.len()])
    }

    async fn stats_now(&self) -> Result<Stats> {
        let Shared { link, keys, .. } = &*self.shared;
        let mut all = vec![keys.list.clone(), keys.dead.clone(), keys.state.clone()];
        all.extend(self.shared.workers().await?.iter().map(|worker| keys.processing(worker)));
        let call = script::PLAIN_STATS.on(&all);
        answer::stats(&link.run(&script::PLAIN_STATS, &call).await?)
    }

    /// Dead letters with their payloads: the digest is no key to find them by.
    async fn page(&self, skip: usize, count: usize) -> Result<Vec<DeadLetter>> {
        let keys = &self.shared.keys;
        let mut letters = Vec::new();
        while letters.len() < count {
            let mut call = script::PLAIN_DEAD.on(&[keys.dead.clone(), keys.reasons.clone()]);
            call.arg(skip + letters.len()).arg(BATCH.min(count - letters.len()));
            let page = self.shared.link.run(&script::PLAIN_DEAD, &call).await?;
            let mut values = answer::list(page)?.into_iter();
            let before = letters.len();
            while let (Some(id), Some(known), Some(payload)) =
                (values.next(), values.next(), values.next())
            {
                letters.push(letter(answer::text(id)?, known, answer::bytes(payload)?)?);
            }
            if letters.len() == before {
                break;
            }
        }
        Ok(letters)
    }

    async fn take_out(&self, which: &Which, again: bool) -> Result<u64> {
        let letters = self.page(0, usize::MAX).await?;
        let wanted = letters.into_iter().filter(|letter| which.has(&letter.id));
        let payloads: Vec<Vec<u8>> = wanted.map(|letter| letter.payload).collect();
        let Shared { link, keys, .. } = &*self.shared;
        let mut found = 0;
        for batch in payloads.chunks(BATCH) {
            let all = [keys.dead.clone(), keys.reasons.clone(), keys.list.clone()];
            let mut call = script::PLAIN_LETTERS.on(&all);
            call.arg(u8::from(again)).arg(batch);
            found += answer::count(&link.run_once(&script::PLAIN_LETTERS, &call).await?)?;
        }
        Ok(found)
    }

    async fn recover_all(&self) -> Result<u64> {
        let mut found = 0;
        for worker in self.shared.workers().await? {
            loop {
                let here = self.shared.reap(&worker).await?;
                found += here;
                if here == 0 {
                    break;
                }
            }
        }
        Ok(found)
    }

    async fn erase_all(&self) -> Result<()> {
        let keys = &self.shared.keys;
        let mut all: Vec<String> =
            [&keys.list, &keys.workers, &keys.counts, &keys.dead, &keys.reasons, &keys.state]
                .map(Clone::clone)
                .to_vec();
        all.extend(self.shared.workers().await?.iter().map(|worker| keys.processing(worker)));
        self.shared.link.unlink(&all).await
    }

    async fn set_paused(&self, paused: bool) -> Result<()> {
        set_paused(&self.shared.link, &self.shared.keys.state, paused).await
    }
}

impl Shared {
    /// Every worker that gave a sign of life and has not been given up.
    async fn workers(&self) -> Result<Vec<String>> {
        let mut ask = redis::cmd("ZRANGE");
        ask.arg(&self.keys.workers).arg(0).arg(-1);
        answer::list(self.link.query(&ask).await?)?.into_iter().map(answer::text).collect()
    }

    /// Moves back what a lost worker had; nothing when it is alive.
    async fn reap(&self, worker: &str) -> Result<u64> {
        let keys = &self.keys;
        let all = [
            keys.list.clone(),
            keys.processing(worker),
            keys.workers.clone(),
            keys.counts.clone(),
            keys.dead.clone(),
            keys.reasons.clone(),
        ];
        let mut call: Cmd = script::PLAIN_REAP.on(&all);
        call.arg(worker).arg(self.budgets.crashes);
        let moved = answer::count(&self.link.run(&script::PLAIN_REAP, &call).await?)?;
        if moved > 0 {
            tracing::warn!(worker, moved, "messages of a lost worker are given back");
        }
        Ok(moved)
    }
}

fn letter(id: String, known: Value, payload: Vec<u8>) -> Result<DeadLetter> {
    let known = String::from_utf8_lossy(&answer::bytes(known)?).into_owned();
    let mut fields = known.splitn(4, ':');
    let died_ms = fields.next().and_then(|field| field.parse().ok());
    let mut count = || fields.next().and_then(|field| field.parse().ok()).unwrap_or_default();
    let (failures, crashes) = (count(), count());
    let reason = fields.next().unwrap_or_default().to_owned();
    Ok(DeadLetter { shard: 0, id, reason, died_ms, failures, crashes, payload })
}

impl Queue for Plain {
    fn engine(&self) -> &'static str {
        "plain"
    }

    fn publish<'a>(&'a self, messages: &'a [Message]) -> Answer<'a, Vec<Published>> {
        Box::pin(self.publish_all(messages))
    }

    fn consumer(&self, name: &str, lease: Duration) -> Result<Arc<dyn Consumer>> {
        check_name("a worker's name", name)?;
        Ok(Arc::new(consumer::PlainConsumer::new(Arc::clone(&self.shared), name, lease)))
    }

    fn recover(&self) -> Answer<'_, u64> {
        Box::pin(self.recover_all())
    }

    fn stats(&self) -> Answer<'_, Stats> {
        Box::pin(self.stats_now())
    }

    fn dead_letters(&self, skip: usize, count: usize) -> Answer<'_, Vec<DeadLetter>> {
        Box::pin(self.page(skip, count))
    }

    fn replay<'a>(&'a self, which: &'a Which) -> Answer<'a, u64> {
        Box::pin(self.take_out(which, true))
    }

    fn drop_dead<'a>(&'a self, which: &'a Which) -> Answer<'a, u64> {
        Box::pin(self.take_out(which, false))
    }

    fn pause(&self, paused: bool) -> Answer<'_, ()> {
        Box::pin(self.set_paused(paused))
    }

    fn erase(&self) -> Answer<'_, ()> {
        Box::pin(self.erase_all())
    }

    fn metrics(&self) -> &Metrics {
        self.shared.link.metrics()
    }
}
