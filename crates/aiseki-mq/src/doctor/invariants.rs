//! A `lists` queue: every message in exactly one state.

use std::collections::{HashMap, HashSet};

use redis::{Cmd, Value};

use super::{Finding, dead_letters};
use crate::answer;
use crate::error::{Error, Result};
use crate::lists::Shared;
use crate::script;

const PAGE: usize = 5_000;
/// The most suspects that are asked for again, of each shard; more of them change nothing.
const SUSPECTS: usize = 160;
/// How many ids are named in a finding.
const NAMED: usize = 5;

// Places of `LISTS_KEYS`.
const READY: usize = 1;
const DELAYED: usize = 2;
const LEASED: usize = 3;
const PAYLOAD: usize = 4;
const DEAD: usize = 6;
const UNIQUE: usize = 8;
const CANCELLED: usize = 12;

pub(super) async fn examine(queue: &Shared) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for shard in 0..queue.keys.len() {
        let view = View { queue, keys: &queue.keys[shard] };
        let suspects = view.suspects().await?;
        let faults = view.confirm(&suspects).await?;
        let keys = view.dangling_keys().await?;
        let prefix = &queue.name.prefixes()[shard];
        if faults.is_empty() && keys.is_empty() {
            findings.push(Finding::good(
                "invariants",
                format!("{prefix}: every message is in exactly one state"),
            ));
        }
        for (fault, ids) in faults {
            findings
                .push(Finding::wrong("invariants", format!("{prefix}: {fault}: {}", names(&ids))));
        }
        if !keys.is_empty() {
            let text = format!("{prefix}: unique keys without a message: {}", names(&keys));
            findings.push(Finding::wrong("invariants", text));
        }
        findings.push(view.ready_list(prefix).await?);
        findings.extend(view.dead(prefix).await?);
    }
    Ok(findings)
}

fn names(ids: &[String]) -> String {
    let named = ids.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if ids.len() > NAMED { format!("{named} and {} more", ids.len() - NAMED) } else { named }
}

/// One shard.
struct View<'a> {
    queue: &'a Shared,
    keys: &'a [String],
}

impl View<'_> {
    async fn ask(&self, command: &Cmd) -> Result<Value> {
        self.queue.link.query(command).await
    }

    /// Ids that seem to be in no state or in several. Messages move on while this reads, so many of
    /// them are innocent.
    async fn suspects(&self) -> Result<Vec<String>> {
        // Ready last and payloads after it: a message that is published meanwhile has no place yet
        // and no payload here either, or both.
        let mut states: HashMap<String, u32> = HashMap::new();
        for key in [DEAD, LEASED, DELAYED] {
            for id in self.scan("ZSCAN", key, 2).await? {
                *states.entry(id).or_default() += 1;
            }
        }
        let cancelled: HashSet<String> =
            self.scan("SSCAN", CANCELLED, 1).await?.into_iter().collect();
        for id in self.ready().await? {
            if !cancelled.contains(&id) {
                *states.entry(id).or_default() += 1;
            }
        }
        let payloads: HashSet<String> = self.scan("HSCAN", PAYLOAD, 2).await?.into_iter().collect();
        let several = states.iter().filter(|(_, count)| **count != 1).map(|(id, _)| id);
        let nowhere = payloads.iter().filter(|id| !states.contains_key(*id));
        let without = states.keys().filter(|id| !payloads.contains(*id));
        let out_of_place = several.chain(nowhere).chain(without);
        let mut suspects: Vec<String> = out_of_place.cloned().collect();
        // Leases are cheap to compare and matter most: who is out without one, one without who.
        suspects.extend(self.out_without_lease(&states).await?);
        suspects.sort_unstable();
        suspects.dedup();
        suspects.truncate(SUSPECTS);
        Ok(suspects)
    }

    async fn out_without_lease(&self, states: &HashMap<String, u32>) -> Result<Vec<String>> {
        let meta = self.scan("HSCAN", 5, 2).await?;
        Ok(meta.into_iter().filter(|id| !states.contains_key(id)).collect())
    }

    async fn ready(&self) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        loop {
            let mut range = redis::cmd("LRANGE");
            range.arg(&self.keys[READY]).arg(ids.len()).arg(ids.len() + PAGE - 1);
            let page = answer::list(self.ask(&range).await?)?;
            if page.is_empty() {
                return Ok(ids);
            }
            for id in page {
                ids.push(answer::text(id)?);
            }
        }
    }

    /// The members of a key, a page at a time; every `step`-th value is one.
    async fn scan(&self, verb: &str, key: usize, step: usize) -> Result<Vec<String>> {
        let (mut ids, mut cursor) = (Vec::new(), 0);
        loop {
            let mut scan = redis::cmd(verb);
            scan.arg(&self.keys[key]).arg(cursor).arg("COUNT").arg(PAGE);
            let mut answer = answer::list(self.ask(&scan).await?)?.into_iter();
            let (Some(next), Some(page)) = (answer.next(), answer.next()) else {
                return Err(Error::Answer("a cursor and a page were expected"));
            };
            for id in answer::list(page)?.into_iter().step_by(step) {
                let id = answer::text(id)?;
                // The empty name is no message's: see parts/large.lua.
                if !id.is_empty() {
                    ids.push(id);
                }
            }
            cursor = answer::count(&next)?;
            if cursor == 0 {
                return Ok(ids);
            }
        }
    }

    /// Asks for each suspect in one step.
    async fn confirm(&self, suspects: &[String]) -> Result<HashMap<&'static str, Vec<String>>> {
        let mut faults: HashMap<&'static str, Vec<String>> = HashMap::new();
        for ids in suspects.chunks(16) {
            let mut call = script::LOCATE.on(self.keys);
            call.arg(ids);
            let answer = self.queue.link.run(&script::LOCATE, &call).await?;
            let mut answers = answer::list(answer)?.into_iter();
            for id in ids {
                let digits = answer::text(answers.next().unwrap_or(Value::Nil))?;
                answers.next();
                if let Some(fault) = judge(&digits) {
                    faults.entry(fault).or_default().push(id.clone());
                }
            }
        }
        Ok(faults)
    }

    /// Unique keys whose message is not there, or does not know of it.
    async fn dangling_keys(&self) -> Result<Vec<String>> {
        let mut dangling = Vec::new();
        for key in self.scan("HSCAN", UNIQUE, 2).await? {
            let mut ask = redis::cmd("HGET");
            ask.arg(&self.keys[UNIQUE]).arg(&key);
            let Value::BulkString(id) = self.ask(&ask).await? else { continue };
            let mut exists = redis::cmd("HEXISTS");
            exists.arg(&self.keys[PAYLOAD]).arg(&id);
            let there = self.ask(&exists).await? == Value::Int(1);
            // Its message may just have been acked, and its key with it.
            if !there && self.ask(&ask).await? == Value::BulkString(id) {
                dangling.push(key);
            }
        }
        Ok(dangling)
    }

    async fn ready_list(&self, prefix: &str) -> Result<Finding> {
        let mut length = redis::cmd("LLEN");
        length.arg(&self.keys[READY]);
        let length = answer::count(&self.ask(&length).await?)?;
        if length == 0 {
            return Ok(Finding::good("length", format!("{prefix}: nothing is ready")));
        }
        let mut encoding = redis::cmd("OBJECT");
        encoding.arg("ENCODING").arg(&self.keys[READY]);
        let encoding = match self.ask(&encoding).await? {
            Value::Nil => "gone meanwhile".to_owned(),
            text => answer::text(text)?,
        };
        let mut usage = redis::cmd("MEMORY");
        usage.arg("USAGE").arg(&self.keys[READY]);
        let usage = answer::count(&self.ask(&usage).await?).unwrap_or_default();
        let text = format!(
            "{prefix}: the ready list is the longest: {length} ({encoding}, {usage} bytes)"
        );
        Ok(Finding::good("length", text))
    }

    async fn dead(&self, prefix: &str) -> Result<Option<Finding>> {
        let mut count = redis::cmd("ZCARD");
        count.arg(&self.keys[DEAD]);
        let count = answer::count(&self.ask(&count).await?)?;
        Ok(dead_letters(prefix, count))
    }
}

/// What is wrong with a message in these states, if anything: ready, delayed, leased, dead,
/// payload, out with a worker, cancelled.
fn judge(digits: &str) -> Option<&'static str> {
    let mut bits = digits.bytes().map(|digit| digit == b'1');
    let mut next = || bits.next().unwrap_or_default();
    let states = [next(), next(), next(), next()];
    let [ready, _, leased, dead] = states;
    let (payload, out, cancelled) = (next(), next(), next());
    let count = states.iter().filter(|state| **state).count();
    match count {
        0 if out => Some("out with a worker, without a lease (the next sweep gives them back)"),
        0 if payload => Some("payloads in no state: never delivered again"),
        0 | 1 if payload || count == 0 => None,
        1 if ready && cancelled => None,
        1 if dead => Some("dead letters whose payload is gone"),
        1 if leased || ready => Some("messages without a payload (the next claim buries them)"),
        1 => Some("delayed messages without a payload (the next claim buries them)"),
        _ => Some("messages in more than one state"),
    }
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn one_state_with_its_payload_is_right() {
        // ready, delayed, leased, dead, payload, out, cancelled
        for right in ["1000100", "0100100", "0010110", "0001100", "0000000", "1000001"] {
            assert_eq!(judge(right), None, "{right}");
        }
        for wrong in ["0000100", "0000110", "1000000", "1010110", "0001000", "0100000"] {
            assert!(judge(wrong).is_some(), "{wrong}");
        }
    }
}
