//! Queues of the engines `plain` and `streams`: what is where, and what nobody will find.

use redis::{Cmd, Value};

use super::{Finding, dead_letters};
use crate::answer;
use crate::error::{Error, Result};
use crate::link::Link;

/// How many entries that are out are looked for in the stream.
const LOOKED_AT: usize = 1_000;

/// What a `plain` queue is made of, as its doctor sees it.
pub(crate) struct PlainParts<'a> {
    pub(crate) list: &'a str,
    pub(crate) dead: &'a str,
    /// What the names of all processing lists begin with.
    pub(crate) processing: String,
    /// The processing lists of workers that are known.
    pub(crate) known: Vec<String>,
}

pub(crate) async fn examine_plain(link: &Link, parts: PlainParts<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    if let Some(finding) = other_type(link, parts.list, "list").await? {
        return Ok(vec![finding]);
    }
    let ready = number(link, redis::cmd("LLEN").arg(parts.list)).await?;
    let mut out = 0;
    for list in &parts.known {
        out += number(link, redis::cmd("LLEN").arg(list)).await?;
    }
    let workers = parts.known.len();
    findings.push(Finding::good(
        "length",
        format!("{}: {ready} ready, {out} out with {workers} workers", parts.list),
    ));
    let mut orphans = Vec::new();
    for list in processing_lists(link, &parts.processing).await? {
        if !parts.known.contains(&list) {
            orphans.push(list);
        }
    }
    findings.push(if orphans.is_empty() {
        Finding::good("workers", format!("{}: every list has its worker", parts.list))
    } else {
        let names = orphans.join(", ");
        let text = format!("messages that nobody gives back, in lists without a worker: {names}");
        Finding::wrong("workers", text)
    });
    let dead = number(link, redis::cmd("LLEN").arg(parts.dead)).await?;
    findings.extend(dead_letters(parts.list, dead));
    Ok(findings)
}

/// A cluster is not searched: each node would have to be asked.
async fn processing_lists(link: &Link, prefix: &str) -> Result<Vec<String>> {
    let (mut lists, mut cursor) = (Vec::new(), 0);
    while !link.server().is_cluster() {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("TYPE").arg("list").arg("COUNT").arg(1_000);
        let mut page = answer::list(link.query(&scan).await?)?.into_iter();
        let (Some(next), Some(keys)) = (page.next(), page.next()) else {
            return Err(Error::Answer("a cursor and a page were expected"));
        };
        for key in answer::list(keys)? {
            let key = String::from_utf8_lossy(&answer::bytes(key)?).into_owned();
            if key.starts_with(prefix) {
                lists.push(key);
            }
        }
        cursor = answer::count(&next)?;
        if cursor == 0 {
            break;
        }
    }
    Ok(lists)
}

pub(crate) async fn examine_streams(link: &Link, keys: &[String; 3]) -> Result<Vec<Finding>> {
    let [stream, dead, _] = keys;
    if let Some(finding) = other_type(link, stream, "stream").await? {
        return Ok(vec![finding]);
    }
    let length = number(link, redis::cmd("XLEN").arg(stream)).await?;
    let mut findings = vec![Finding::good("length", format!("{stream}: {length} entries"))];
    let mut pending = redis::cmd("XPENDING");
    pending.arg(stream).arg("mq").arg("-").arg("+").arg(LOOKED_AT);
    match link.query(&pending).await {
        Ok(out) => {
            let mut lost = 0;
            for each in answer::list(out)? {
                let Some(entry) = answer::list(each)?.into_iter().next() else { continue };
                let entry = answer::text(entry)?;
                let mut read = redis::cmd("XRANGE");
                read.arg(stream).arg(&entry).arg(&entry);
                let gone = answer::list(link.query(&read).await?)?.is_empty();
                // It may just have been acked, and then it is not out any more.
                let mut again = redis::cmd("XPENDING");
                again.arg(stream).arg("mq").arg(&entry).arg(&entry).arg(1);
                if gone && !answer::list(link.query(&again).await?)?.is_empty() {
                    lost += 1;
                }
            }
            findings.push(if lost == 0 {
                Finding::good("entries", format!("{stream}: whatever is out is in the stream"))
            } else {
                let text = format!("{stream}: {lost} entries are out and were deleted or trimmed");
                Finding::wrong("entries", text)
            });
        }
        Err(Error::Server(error)) if error.code() == Some("NOGROUP") => {
            let text = format!("{stream}: no group yet: the first worker makes it");
            findings.push(Finding::note("group", text));
        }
        Err(error) => return Err(error),
    }
    findings.extend(dead_letters(stream, number(link, redis::cmd("XLEN").arg(dead)).await?));
    Ok(findings)
}

async fn number(link: &Link, command: &Cmd) -> Result<u64> {
    answer::count(&link.query(command).await?)
}

async fn other_type(link: &Link, key: &str, wanted: &str) -> Result<Option<Finding>> {
    let found = match link.query(redis::cmd("TYPE").arg(key)).await? {
        Value::SimpleString(name) => name,
        other => answer::text(other)?,
    };
    let right = found == wanted || found == "none";
    let text = format!("{key} is a {found}, and not a {wanted}");
    Ok((!right).then(|| Finding::wrong("type", text)))
}
