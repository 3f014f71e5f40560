//! Reading what scripts answer.

use std::time::Duration;

use redis::Value;

use crate::error::{Error, Result};
use crate::message::{Delivery, Receipt, Settled, Stats};

/// 13 digits and a space stand before each payload.
const STAMP: usize = 14;

pub(crate) fn list(value: Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(values) => Ok(values),
        _ => Err(Error::Answer("a list was expected")),
    }
}

pub(crate) fn bytes(value: Value) -> Result<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.into_bytes()),
        _ => Err(Error::Answer("a string was expected")),
    }
}

pub(crate) fn text(value: Value) -> Result<String> {
    String::from_utf8(bytes(value)?).map_err(|_| Error::Answer("text was expected"))
}

/// Text that RESP3 marks as such.
pub(crate) fn verbatim(value: Value) -> Result<String> {
    match value {
        Value::VerbatimString { text, .. } => Ok(text),
        other => text(other),
    }
}

pub(crate) fn int(value: &Value) -> Result<i64> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::BulkString(bytes) => std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or(Error::Answer("a number was expected")),
        _ => Err(Error::Answer("a number was expected")),
    }
}

pub(crate) fn count(value: &Value) -> Result<u64> {
    Ok(u64::try_from(int(value)?).unwrap_or_default())
}

/// What every engine's step begins with.
pub(crate) struct Head {
    /// When there may be more to do without anybody publishing.
    pub(crate) wait: Option<Duration>,
    pub(crate) paused: bool,
    /// How many messages are left ready.
    pub(crate) left: u64,
    pub(crate) settled: Vec<Settled>,
}

pub(crate) fn head(values: &mut impl Iterator<Item = Value>) -> Result<Head> {
    let mut next = || values.next().ok_or(Error::Answer("too short a step"));
    Ok(Head {
        wait: u64::try_from(int(&next()?)?).ok().map(Duration::from_millis),
        paused: int(&next()?)? == 1,
        left: count(&next()?)?,
        settled: settled(next()?)?,
    })
}

/// One digit for each ack or nack.
pub(crate) fn settled(value: Value) -> Result<Vec<Settled>> {
    let digit = |digit| match digit {
        b'0' => Ok(Settled::Stale),
        b'1' => Ok(Settled::Done),
        b'2' => Ok(Settled::Repeated),
        b'3' => Ok(Settled::Buried),
        _ => Err(Error::Answer("an unknown digit")),
    };
    bytes(value)?.into_iter().map(digit).collect()
}

/// A stored payload: when it was published, and itself.
pub(crate) fn body(mut body: Vec<u8>) -> (Option<u64>, Vec<u8>) {
    if body.len() < STAMP {
        return (None, Vec::new());
    }
    let published = std::str::from_utf8(&body[..STAMP - 1]).ok().and_then(|text| text.parse().ok());
    body.drain(..STAMP);
    (published, body)
}

/// What is stored of a message besides its payload.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) token: u64,
    pub(crate) failures: u32,
    pub(crate) crashes: u32,
}

pub(crate) fn meta(text: &[u8]) -> Result<Meta> {
    if text.is_empty() {
        return Ok(Meta::default());
    }
    let mut fields = text
        .splitn(5, |byte| *byte == b':')
        .map(|field| std::str::from_utf8(field).ok().and_then(|text| text.parse::<u64>().ok()));
    let mut next = || fields.next().flatten().ok_or(Error::Answer("a broken meta field"));
    let token = next()?;
    let mut small = || Ok::<_, Error>(u32::try_from(next()?).unwrap_or(u32::MAX));
    Ok(Meta { token, failures: small()?, crashes: small()? })
}

/// Deliveries as id, body, meta; and so on.
pub(crate) fn deliveries(
    shard: usize,
    values: impl Iterator<Item = Value>,
) -> Result<Vec<Delivery>> {
    let mut values = values;
    let mut deliveries = Vec::with_capacity(values.size_hint().0 / 3);
    while let Some((delivery, _)) = delivery(shard, &mut values)? {
        deliveries.push(delivery);
    }
    Ok(deliveries)
}

/// The next delivery, and the worker that it is for.
pub(crate) fn delivery(
    shard: usize,
    values: &mut impl Iterator<Item = Value>,
) -> Result<Option<(Delivery, Vec<u8>)>> {
    let Some(id) = values.next() else { return Ok(None) };
    let (Some(body_value), Some(meta_value)) = (values.next(), values.next()) else {
        return Err(Error::Answer("half a delivery"));
    };
    let (published_ms, payload) = body(bytes(body_value)?);
    let mut text_of_meta = bytes(meta_value)?;
    let Meta { token, failures, crashes } = meta(&text_of_meta)?;
    let fields = text_of_meta.splitn(5, |byte| *byte == b':').take(4);
    let worker = fields.map(|field| field.len() + 1).sum::<usize>().min(text_of_meta.len());
    text_of_meta.drain(..worker);
    let receipt = Receipt { shard, id: text(id)?, token };
    let delivery = Delivery { receipt, payload, failures, crashes, published_ms };
    Ok(Some((delivery, text_of_meta)))
}

pub(crate) fn stats(value: &Value) -> Result<Stats> {
    let Value::Array(values) = value else {
        return Err(Error::Answer("a list was expected"));
    };
    let at = |index: usize| count(values.get(index).ok_or(Error::Answer("too short a list"))?);
    Ok(Stats {
        ready: at(0)?,
        delayed: at(1)?,
        leased: at(2)?,
        dead: at(3)?,
        acked: at(4)?,
        oldest_ms: at(5)?,
        paused: at(6)? == 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meta_field_may_end_in_anything() -> Result<()> {
        let expected = Meta { token: 7, failures: 1, crashes: 2 };
        assert_eq!(meta(b"7:1:2:0:a:worker")?, expected);
        assert_eq!(meta(b"")?, Meta::default());
        assert!(meta(b"7:x").is_err());
        Ok(())
    }

    #[test]
    fn a_body_carries_its_time() {
        assert_eq!(body(b"0000000000042 \0\xff".to_vec()), (Some(42), vec![0, 255]));
        assert_eq!(body(b"short".to_vec()), (None, vec![]));
    }
}
