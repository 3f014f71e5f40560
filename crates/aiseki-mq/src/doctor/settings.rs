//! The server: its version, and what its settings can lose.

use redis::Value;

use super::Finding;
use crate::answer;
use crate::error::Result;
use crate::link::Link;

const OLDEST_REDIS: u64 = 7;
const OLDEST_VALKEY: u64 = 8;
/// Above this the allocator holds much more than the data needs.
const FRAGMENTED: f64 = 1.5;
/// Below this many bytes a ratio says nothing.
const SMALL: u64 = 64 * 1024 * 1024;

struct Settings(Vec<(String, String)>);

impl Settings {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.get(name) == Some(value)
    }

    fn number(&self, name: &str) -> u64 {
        self.get(name).and_then(|value| value.parse().ok()).unwrap_or_default()
    }
}

pub(super) async fn examine(link: &Link) -> Result<Vec<Finding>> {
    let info = Settings(link.info("default").await?);
    let mut findings = vec![version(&info)];
    match config(link).await? {
        Some(config) => {
            findings.push(persistence(&info, &config));
            findings.push(eviction(&info, &config));
        }
        None => findings.push(Finding::note(
            "persistence",
            "this user may not read the server's configuration (CONFIG GET): what the server keeps \
             and evicts is not known",
        )),
    }
    findings.extend(writes(&info));
    findings.push(memory(&info));
    findings.push(replication(&info));
    Ok(findings)
}

/// None where the user or the provider forbids it.
async fn config(link: &Link) -> Result<Option<Settings>> {
    let mut ask = redis::cmd("CONFIG");
    ask.arg("GET").arg("*");
    let answer = match link.once(&ask).await {
        Ok(answer) => answer,
        Err(error) if error.code().is_some() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let answer = match answer {
        Value::Map(mut nodes) if matches!(nodes.first(), Some((_, Value::Array(_)))) => {
            nodes.swap_remove(0).1
        }
        other => other,
    };
    let mut pairs = Vec::new();
    let mut values = answer::list(answer)?.into_iter();
    while let (Some(name), Some(value)) = (values.next(), values.next()) {
        pairs.push((answer::text(name)?, answer::text(value)?));
    }
    Ok(Some(Settings(pairs)))
}

fn version(info: &Settings) -> Finding {
    let (name, version, oldest) = match info.get("valkey_version") {
        Some(version) => ("Valkey", version, OLDEST_VALKEY),
        None => ("Redis", info.get("redis_version").unwrap_or("0"), OLDEST_REDIS),
    };
    let major: u64 = version.split('.').next().and_then(|n| n.parse().ok()).unwrap_or_default();
    if major < oldest {
        return Finding::wrong(
            "version",
            format!("{name} {version} is too old: this queue needs {name} {oldest} or later"),
        );
    }
    let waitaof = info.get("valkey_version").is_some()
        || info.get("redis_version").is_some_and(|version| !version.starts_with("7.0"));
    let sync = if waitaof {
        "publishing can wait until a message is on disk (WAITAOF)"
    } else {
        "publishing cannot wait until a message is on disk (WAITAOF came with Redis 7.2)"
    };
    Finding::good("version", format!("{name} {version}; {sync}"))
}

fn persistence(info: &Settings, config: &Settings) -> Finding {
    let snapshots = config.get("save").is_some_and(|save| !save.is_empty());
    if !config.is("appendonly", "yes") {
        let text = if snapshots {
            "snapshots only, no append-only file: a crash or restart of the server loses \
             everything since the last snapshot, which may be minutes"
        } else {
            "nothing is written to disk: a crash or restart of the server loses every message"
        };
        return Finding::note("persistence", text);
    }
    if info.is("aof_last_write_status", "err") {
        return Finding::wrong("persistence", "the append-only file cannot be written");
    }
    match config.get("appendfsync") {
        Some("always") => Finding::good(
            "persistence",
            "append-only file, synced before each answer: a power cut loses nothing that was \
             answered",
        ),
        Some("no") => Finding::note(
            "persistence",
            "append-only file, synced when the system likes: a killed server loses nothing, a \
             power cut may lose 30 seconds and more",
        ),
        _ => Finding::good(
            "persistence",
            "append-only file, synced every second: a killed server loses nothing, a power cut \
             loses up to two seconds",
        ),
    }
}

fn eviction(info: &Settings, config: &Settings) -> Finding {
    let policy = config.get("maxmemory-policy").unwrap_or("noeviction");
    let limit = info.number("maxmemory");
    match (limit, policy) {
        (0, "noeviction") => Finding::good(
            "eviction",
            "no memory limit: the queue grows until the system's memory ends; bound its length or \
             set maxmemory",
        ),
        (0, policy) => Finding::note(
            "eviction",
            format!(
                "the policy {policy} waits for a memory limit: as soon as maxmemory is set, the \
                 server deletes messages when it is full; set noeviction"
            ),
        ),
        (limit, "noeviction") => Finding::good(
            "eviction",
            format!(
                "at {limit} bytes publishing is refused with a clear error, workers go on, and \
                 nothing is deleted"
            ),
        ),
        (limit, policy) => Finding::wrong(
            "eviction",
            format!(
                "at {limit} bytes the server deletes keys of its own choice ({policy}): whole \
                 queues can vanish without a word; set maxmemory-policy noeviction"
            ),
        ),
    }
}

fn writes(info: &Settings) -> Option<Finding> {
    if info.is("rdb_last_bgsave_status", "err") {
        return Some(Finding::wrong(
            "persistence",
            "the last snapshot failed: unless stop-writes-on-bgsave-error is off, the server \
             refuses every write",
        ));
    }
    None
}

fn memory(info: &Settings) -> Finding {
    let used = info.number("used_memory");
    let ratio: f64 =
        info.get("mem_fragmentation_ratio").and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let text = format!("{used} bytes used, fragmentation {ratio:.2}");
    if ratio > FRAGMENTED && used > SMALL {
        return Finding::note(
            "memory",
            format!("{text}: the system gives more than the data needs; see activedefrag"),
        );
    }
    Finding::good("memory", text)
}

fn replication(info: &Settings) -> Finding {
    if info.is("role", "slave") {
        return Finding::wrong(
            "replication",
            "this is a replica: it takes no writes, and what is written to it is lost",
        );
    }
    match info.number("connected_slaves") {
        0 => Finding::note(
            "replication",
            "no replica: while this server is away the queue is away, and what its disk loses is \
             lost",
        ),
        count => Finding::good(
            "replication",
            format!(
                "{count} connected; they follow with a delay, so a fail-over can lose what was \
                 written last, unless publishing waits for them (replicas)"
            ),
        ),
    }
}
