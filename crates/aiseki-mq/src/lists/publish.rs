//! Publishing into a `lists` queue.

use redis::{RedisError, Value};

use super::{BATCH, Shared};
use crate::answer;
use crate::error::{Error, Result};
use crate::keys::shard_of;
use crate::message::{Message, Published};
use crate::publishing::Durability;
use crate::script;

pub(super) async fn publish(queue: &Shared, messages: &[Message]) -> Result<Vec<Published>> {
    let limit = queue.options.payload_limit;
    for message in messages {
        message.check()?;
        let size = message.payload.len();
        if size > limit {
            return Err(Error::PayloadTooLarge { size, limit });
        }
    }
    let shards = queue.keys.len();
    if shards == 1 {
        let mut published = Vec::with_capacity(messages.len());
        for batch in messages.chunks(BATCH) {
            published.extend(one_shard(queue, 0, batch.iter().collect()).await?);
        }
        return Ok(published);
    }
    let mut by_shard = vec![Vec::new(); shards];
    for (index, message) in messages.iter().enumerate() {
        let routing = message.unique.as_deref().unwrap_or(&message.id);
        by_shard[shard_of(routing, shards)].push((index, message));
    }
    let mut published = vec![Published::Duplicate; messages.len()];
    for (shard, members) in by_shard.iter().enumerate() {
        for batch in members.chunks(BATCH) {
            let messages = batch.iter().map(|(_, each)| *each).collect();
            let answers = one_shard(queue, shard, messages);
            for ((index, _), answer) in batch.iter().zip(answers.await?) {
                published[*index] = answer;
            }
        }
    }
    Ok(published)
}

async fn one_shard(
    queue: &Shared,
    shard: usize,
    messages: Vec<&Message>,
) -> Result<Vec<Published>> {
    let mut call = script::PUBLISH.on(&queue.keys[shard]);
    call.arg(queue.now()).arg(queue.options.max_length.unwrap_or(0));
    for message in messages {
        call.arg(&message.id).arg(script::millis(message.delay));
        call.arg(message.unique.as_deref().unwrap_or("")).arg(&message.payload);
    }
    let answer = match queue.options.durability {
        Durability::Memory => queue.link.run(&script::PUBLISH, &call).await,
        durability => queue.durable.run(durability, &script::PUBLISH, &call).await,
    };
    let metrics = queue.link.metrics();
    let answer = match answer {
        Ok(Value::Nil) => {
            metrics.refused.inc();
            return Err(Error::Full);
        }
        Err(Error::Server(error)) if is_out_of_memory(&error) => {
            metrics.refused.inc();
            return Err(Error::OutOfMemory);
        }
        other => other?,
    };
    let published = read(answer)?;
    let accepted = published.iter().filter(|each| **each == Published::Accepted).count() as u64;
    metrics.published.inc_by(accepted);
    metrics.duplicates.inc_by(published.len() as u64 - accepted);
    Ok(published)
}

fn is_out_of_memory(error: &RedisError) -> bool {
    error.code() == Some("OOM")
}

fn read(value: Value) -> Result<Vec<Published>> {
    let mut values = answer::list(value)?.into_iter();
    let codes = answer::bytes(values.next().unwrap_or(Value::Nil))?;
    let one = |code: &u8| match code {
        b'1' => Ok(Published::Accepted),
        b'2' => Ok(Published::Duplicate),
        b'3' => {
            let by = answer::text(values.next().unwrap_or(Value::Nil))?;
            Ok(Published::Taken { by })
        }
        _ => Err(Error::Answer("an unknown digit")),
    };
    codes.iter().map(one).collect()
}
