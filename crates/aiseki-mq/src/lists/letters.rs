//! Dead letters and cancelling in a `lists` queue.

use redis::Value;

use super::{BATCH, Lists, Shared};
use crate::answer;
use crate::error::{Error, Result};
use crate::message::{DeadLetter, Which};
use crate::script::{self, Script};

/// What became of a message that was to be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It is out of the queue; a worker that had it has lost it.
    Done,
    /// It is a dead letter: drop it instead.
    Dead,
    /// There is no such message, or it is acked.
    NotThere,
}

impl Lists {
    /// Takes messages out of the queue, whatever state they are in; one answer for each. A message
    /// with a unique key in a queue of several shards is found by its id in every shard.
    pub async fn cancel(&self, ids: &[String]) -> Result<Vec<Cancelled>> {
        let queue = self.shared();
        let mut cancelled = vec![Cancelled::NotThere; ids.len()];
        for shard in 0..queue.keys.len() {
            for (batch, answers) in ids.chunks(BATCH).zip(cancelled.chunks_mut(BATCH)) {
                let now = queue.now();
                let options = &queue.options;
                let age = u64::try_from(options.memo_age.as_millis()).unwrap_or(u64::MAX);
                let codes =
                    queue.run(shard, &script::CANCEL, (now, options.memo_limit, age, batch));
                for (code, answer) in answer::bytes(codes.await?)?.into_iter().zip(answers) {
                    match code {
                        b'1' => *answer = Cancelled::Done,
                        b'3' => *answer = Cancelled::Dead,
                        _ => {}
                    }
                }
            }
        }
        Ok(cancelled)
    }
}

pub(super) async fn list(queue: &Shared, skip: usize, count: usize) -> Result<Vec<DeadLetter>> {
    // Oldest first over all shards: each could hold all of the first ones.
    let mut letters = Vec::new();
    for shard in 0..queue.keys.len() {
        let (mut from, end) = if queue.keys.len() == 1 {
            (skip, skip.saturating_add(count))
        } else {
            (0, skip.saturating_add(count))
        };
        while from < end {
            let page = page(queue, shard, from, BATCH.min(end - from)).await?;
            if page.is_empty() {
                break;
            }
            from += page.len();
            letters.extend(page);
        }
    }
    if queue.keys.len() > 1 {
        letters.sort_by_key(|letter| letter.died_ms);
        letters.drain(..skip.min(letters.len()));
        letters.truncate(count);
    }
    Ok(letters)
}

async fn page(queue: &Shared, shard: usize, from: usize, count: usize) -> Result<Vec<DeadLetter>> {
    let answer = queue.run(shard, &script::DEAD, (from, count));
    let mut values = answer::list(answer.await?)?.into_iter();
    let mut letters = Vec::new();
    while let Some(id) = values.next() {
        let mut next = || values.next().ok_or(Error::Answer("half a dead letter"));
        let died_ms = Some(answer::count(&next()?)?);
        let reason = String::from_utf8_lossy(&answer::bytes(next()?)?).into_owned();
        let meta = answer::meta(&answer::bytes(next()?)?)?;
        let (_, payload) = answer::body(answer::bytes(next()?)?);
        let id = answer::text(id)?;
        let (failures, crashes) = (meta.failures, meta.crashes);
        letters.push(DeadLetter { shard, id, reason, died_ms, failures, crashes, payload });
    }
    Ok(letters)
}

pub(super) async fn replay(queue: &Shared, which: &Which) -> Result<u64> {
    each(queue, which, &script::REPLAY, |answer| {
        Ok(answer::bytes(answer)?.into_iter().filter(|code| *code == b'1').count() as u64)
    })
    .await
}

pub(super) async fn drop(queue: &Shared, which: &Which) -> Result<u64> {
    each(queue, which, &script::DROP, |answer| answer::count(&answer)).await
}

/// Runs a script on dead letters, a bounded number at a time. The ids are read first, so that
/// letters that die meanwhile, or cannot be replayed, do not keep it going for ever.
async fn each(
    queue: &Shared,
    which: &Which,
    script: &Script,
    read: impl Fn(Value) -> Result<u64>,
) -> Result<u64> {
    let mut done = 0;
    for shard in 0..queue.keys.len() {
        let ids = match which {
            Which::Ids(ids) => ids.clone(),
            Which::All => {
                let mut ids = Vec::new();
                loop {
                    let page = page(queue, shard, ids.len(), BATCH).await?;
                    if page.is_empty() {
                        break ids;
                    }
                    ids.extend(page.into_iter().map(|letter| letter.id));
                }
            }
        };
        for batch in ids.chunks(BATCH) {
            done += read(queue.run(shard, script, batch).await?)?;
        }
    }
    Ok(done)
}
