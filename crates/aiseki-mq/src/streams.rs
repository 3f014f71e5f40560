//! The `streams` engine: a stream and a consumer group.

mod consumer;

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::answer;
use crate::budgets::Budgets;
use crate::error::Result;
use crate::hand::{check_simple, count_published, set_paused};
use crate::keys::{QueueName, streams_keys};
use crate::link::Link;
use crate::lists::BATCH;
use crate::message::{DeadLetter, Message, Published, Stats, Which, check_name};
use crate::metrics::Metrics;
use crate::queue::{Answer, Consumer, Queue};
use crate::script;
use crate::server::Server;

/// A queue of the `streams` engine: a stream and a consumer group named `mq`.
///
/// Guarantees: at least once; an ack counts only from the worker that has the message, for the
/// delivery that it was given (plain `XACK` asks neither); what a lost worker had is claimed by
/// others after one lease (`XAUTOCLAIM`); nothing is trimmed, entries leave the stream when they
/// are acked. Cannot: keep the order of a message that is tried again (it is a new entry at the
/// end, with its id), delay, deduplicate. A publish whose answer is lost may have been done.
#[derive(Clone)]
pub struct Streams {
    shared: Arc<Shared>,
}

struct Shared {
    link: Link,
    /// Stream, dead letters, state.
    keys: [String; 3],
    budgets: Budgets,
}

impl Streams {
    /// The queue of this name, in its first prefix; nothing is connected yet.
    pub fn new(server: &Server, name: &QueueName, budgets: Budgets) -> Self {
        let link = Link::new(server.clone(), Metrics::default());
        Self { shared: Arc::new(Shared { link, keys: streams_keys(name), budgets }) }
    }

    /// What the doctor looks at.
    pub(crate) fn parts(&self) -> (&Link, &[String; 3]) {
        (&self.shared.link, &self.shared.keys)
    }

    async fn publish_all(&self, messages: &[Message]) -> Result<Vec<Published>> {
        check_simple("streams", messages, self.shared.budgets.payload_limit)?;
        for batch in messages.chunks(BATCH) {
            let mut call = script::STREAMS_PUBLISH.on(&self.shared.keys[..1]);
            for message in batch {
                call.arg(&message.id).arg(&message.payload);
            }
            let answer = self.shared.link.run_once(&script::STREAMS_PUBLISH, &call).await;
            count_published(self.shared.link.metrics(), batch, answer)?;
        }
        Ok(vec![Published::Accepted; messages.len()])
    }

    async fn stats_now(&self) -> Result<Stats> {
        let call = script::STREAMS_STATS.on(&self.shared.keys);
        answer::stats(&self.shared.link.run(&script::STREAMS_STATS, &call).await?)
    }

    async fn recover_all(&self) -> Result<u64> {
        let mut found = 0;
        loop {
            let mut call = script::STREAMS_RECOVER.on(&self.shared.keys);
            call.arg(self.shared.budgets.crashes);
            let here = self.shared.link.run(&script::STREAMS_RECOVER, &call).await?;
            match answer::count(&here)? {
                0 => return Ok(found),
                here => found += here,
            }
        }
    }

    /// Dead letters with their entries, the oldest first.
    async fn page(&self, skip: usize, count: usize) -> Result<Vec<(String, DeadLetter)>> {
        let (mut letters, mut left) = (Vec::new(), skip);
        let mut from = "-".to_owned();
        while letters.len() < count {
            let mut read = redis::cmd("XRANGE");
            read.arg(&self.shared.keys[1]).arg(&from).arg("+").arg("COUNT").arg(BATCH);
            let page = answer::list(self.shared.link.query(&read).await?)?;
            if page.is_empty() {
                break;
            }
            for entry in page {
                let (entry, letter) = letter(entry)?;
                from = format!("({entry}");
                if left > 0 {
                    left -= 1;
                } else if letters.len() < count {
                    letters.push((entry, letter));
                }
            }
        }
        Ok(letters)
    }

    async fn list(&self, skip: usize, count: usize) -> Result<Vec<DeadLetter>> {
        Ok(self.page(skip, count).await?.into_iter().map(|(_, letter)| letter).collect())
    }

    async fn take_out(&self, which: &Which, again: bool) -> Result<u64> {
        let letters = self.page(0, usize::MAX).await?;
        let wanted = letters.into_iter().filter(|(_, letter)| which.has(&letter.id));
        let entries: Vec<String> = wanted.map(|(entry, _)| entry).collect();
        let [stream, dead, state] = self.shared.keys.clone();
        let keys = [dead, stream, state];
        let mut found = 0;
        for batch in entries.chunks(BATCH) {
            let mut call = script::STREAMS_LETTERS.on(&keys);
            call.arg(u8::from(again)).arg(batch);
            let here = self.shared.link.run_once(&script::STREAMS_LETTERS, &call).await?;
            found += answer::count(&here)?;
        }
        Ok(found)
    }

    async fn erase_all(&self) -> Result<()> {
        self.shared.link.unlink(&self.shared.keys).await
    }

    async fn set_paused(&self, paused: bool) -> Result<()> {
        set_paused(&self.shared.link, &self.shared.keys[2], paused).await
    }
}

fn letter(entry: Value) -> Result<(String, DeadLetter)> {
    let mut parts = answer::list(entry)?.into_iter();
    let entry = answer::text(parts.next().unwrap_or(Value::Nil))?;
    let mut letter = DeadLetter {
        shard: 0,
        id: entry.clone(),
        reason: String::new(),
        died_ms: None,
        failures: 0,
        crashes: 0,
        payload: Vec::new(),
    };
    let mut fields = answer::list(parts.next().unwrap_or(Value::Nil))?.into_iter();
    while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
        let value = answer::bytes(value)?;
        let text = || String::from_utf8_lossy(&value).into_owned();
        match answer::bytes(name)?.as_slice() {
            b"id" => letter.id = text(),
            b"reason" => letter.reason = text(),
            b"died" => letter.died_ms = text().parse().ok(),
            b"failures" => letter.failures = text().parse().unwrap_or_default(),
            b"crashes" => letter.crashes = text().parse().unwrap_or_default(),
            b"payload" => letter.payload = value,
            _ => {}
        }
    }
    Ok((entry, letter))
}

impl Queue for Streams {
    fn engine(&self) -> &'static str {
        "streams"
    }

    fn publish<'a>(&'a self, messages: &'a [Message]) -> Answer<'a, Vec<Published>> {
        Box::pin(self.publish_all(messages))
    }

    fn consumer(&self, name: &str, lease: Duration) -> Result<Arc<dyn Consumer>> {
        check_name("a worker's name", name)?;
        Ok(Arc::new(consumer::StreamsConsumer::new(Arc::clone(&self.shared), name, lease)))
    }

    fn recover(&self) -> Answer<'_, u64> {
        Box::pin(self.recover_all())
    }

    fn stats(&self) -> Answer<'_, Stats> {
        Box::pin(self.stats_now())
    }

    fn dead_letters(&self, skip: usize, count: usize) -> Answer<'_, Vec<DeadLetter>> {
        Box::pin(self.list(skip, count))
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
