//! What it costs to hold people who wait: open connections while nothing happens, and long queues.

use std::time::Duration;

use anyhow::bail;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::crowd::{join, sessions, topics, waiting};
use super::wire::{Wire, request};
use super::{closed, process};
use crate::app::Offline;
use crate::commands::child::{self, Temporary};
use crate::commands::server_url::ServerUrl;
use crate::config::Config;
use aiseki_lobby::{Policy, Queue, SessionId, TopicId};

/// Rooms of all sizes, so that many people fit into few topics without ever filling a room: one
/// fewer than its size in each queue.
const ROOM_TYPES: &str = "2,3,4,5,6,7,8";
const PER_TOPIC: usize = 1 + 2 + 3 + 4 + 5 + 6 + 7;
const FOR_EVER: &str = "7d";
/// How long nothing happens.
const QUIET: Duration = Duration::from_secs(20);
/// People of the measurement before have closed their connections, and are soon gone.
const PATIENCE: Duration = Duration::from_mins(1);
/// Commands that are given to the store at once; its queue holds twice as many.
const AT_ONCE: usize = 8_000;

/// Open connections and what they cost.
#[derive(Serialize)]
pub(super) struct Idle {
    pub(super) kind: &'static str,
    pub(super) connections: usize,
    pub(super) memory_bytes: u64,
    pub(super) bytes_each: u64,
    /// Of one core, in percent.
    pub(super) cpu_percent: f64,
    pub(super) seconds: f64,
}

/// People in queues and what they cost.
#[derive(Serialize)]
pub(super) struct Waiting {
    pub(super) people: usize,
    pub(super) ready_ms: u128,
    pub(super) memory_bytes: u64,
    pub(super) file_bytes: u64,
    pub(super) joins_per_second: f64,
    /// The server's time on the cores for each join.
    pub(super) cpu_micros_each: f64,
}

/// The places of so many people who never fill a room.
fn places() -> impl Iterator<Item = (usize, u8)> {
    let topic = || (2..=8_u8).flat_map(|size| std::iter::repeat_n(size, usize::from(size) - 1));
    (0..).flat_map(move |number| topic().map(move |size| (number, size)))
}

/// Holds so many connections open to a server of our own.
pub(super) async fn hold_own(count: usize, streams: bool) -> anyhow::Result<Idle> {
    let directory = Temporary::new()?;
    let flags = ["--room-types", ROOM_TYPES, "--wait-timeout", FOR_EVER];
    let server = child::serve(&directory, count.div_ceil(PER_TOPIC), &flags).await?;
    let held = hold(std::slice::from_ref(&server.url), &[server.pid], count, streams).await?;
    server.stop().await;
    Ok(held)
}

/// Holds so many connections open to servers that share their queues.
pub(super) async fn hold(
    servers: &[ServerUrl],
    pids: &[u32],
    count: usize,
    streams: bool,
) -> anyhow::Result<Idle> {
    let topics = topics(&servers[0]).await?;
    let needed = count.div_ceil(PER_TOPIC);
    if topics.len() < needed {
        bail!("{count} people need {needed} topics, and room types {ROOM_TYPES}");
    }
    let patience = Instant::now() + PATIENCE;
    while waiting(&servers[0]).await? > 0 {
        if Instant::now() > patience {
            bail!("other people wait at {}", servers[0]);
        }
        sleep(Duration::from_secs(1)).await;
    }
    let tokens = sessions(&servers[0], count).await?;
    let before = memory_of(pids)?;
    let route = if streams { "/api/matching/events" } else { "/api/matching?wait=55" };
    let mut opening = JoinSet::new();
    let mut open = Vec::with_capacity(count);
    for (i, (token, (topic, size))) in tokens.into_iter().zip(places()).enumerate() {
        let (url, topic) = (servers[i % servers.len()].clone(), topics[topic]);
        opening.spawn(async move {
            let mut wire = Wire::connect(&url).await?;
            let status = wire.ask(&join(&url, &token, topic, size)).await?.status;
            if status != 202 {
                bail!("{url} answered {status} to a join");
            }
            wire.send(&request(&url, "GET", route, Some(&token), "")).await?;
            if streams {
                wire.read_until(b"\"status\":\"waiting\"").await?;
            }
            Ok(wire)
        });
        // A few at a time, as people come.
        while opening.len() >= 256 {
            if let Some(opened) = opening.join_next().await {
                open.push(opened??);
            }
        }
    }
    while let Some(opened) = opening.join_next().await {
        open.push(opened??);
    }
    sleep(Duration::from_secs(2)).await;
    let (cpu, begun) = (process::cpu_of(pids).unwrap_or_default(), Instant::now());
    sleep(QUIET).await;
    let seconds = begun.elapsed().as_secs_f64();
    let used = process::cpu_of(pids).unwrap_or_default().saturating_sub(cpu);
    let memory_bytes = memory_of(pids)?;
    let idle = Idle {
        kind: if streams { "streams" } else { "long polls" },
        connections: open.len(),
        memory_bytes,
        bytes_each: memory_bytes.saturating_sub(before) / count.max(1) as u64,
        cpu_percent: used.as_secs_f64() / seconds * 100.0,
        seconds,
    };
    drop(open);
    Ok(idle)
}

fn memory_of(pids: &[u32]) -> anyhow::Result<u64> {
    pids.iter().map(|pid| process::memory(*pid)).sum()
}

/// Fills queues with so many people, and measures start, memory and joins beside them.
pub(super) async fn wait(
    people: usize,
    connections: usize,
    time: Duration,
) -> anyhow::Result<Waiting> {
    let directory = Temporary::new()?;
    fill(&directory, people, connections).await?;
    let store = directory.path().join("data/aiseki.db");
    let file_bytes = std::fs::metadata(store)?.len();
    let flags = [
        "--room-types",
        ROOM_TYPES,
        "--wait-timeout",
        FOR_EVER,
        "--presence-timeout",
        FOR_EVER,
        "--fallback-after",
        FOR_EVER,
    ];
    let begun = Instant::now();
    let server = child::serve_again(&directory, &flags).await?;
    let mut wire = Wire::connect(&server.url).await?;
    let ready = wire.ask(&request(&server.url, "GET", "/readyz", None, "")).await?.status;
    let ready_ms = begun.elapsed().as_millis();
    if ready != 200 {
        bail!("the server is not ready: {ready}");
    }
    let memory_bytes = process::memory(server.pid)?;
    // The last topics are empty.
    let last = i64::try_from(people.div_ceil(PER_TOPIC) + connections)?;
    let free: Vec<i64> = (last - i64::try_from(connections)? + 1..=last).collect();
    let (urls, pids) = ([server.url.clone()], [server.pid]);
    let measured = closed::Measured { urls: &urls, pids: &pids };
    let joins = closed::joins(&measured, &free, connections, time).await?;
    server.stop().await;
    Ok(Waiting {
        people,
        ready_ms,
        memory_bytes,
        file_bytes,
        joins_per_second: joins.per_second,
        cpu_micros_each: joins.cpu_micros_each.unwrap_or(0.0),
    })
}

/// Makes a store in which so many people wait, beside as many empty topics as there are connections.
async fn fill(directory: &Temporary, people: usize, empty: usize) -> anyhow::Result<()> {
    let mut config = Config { data_dir: directory.path().join("data"), ..Config::default() };
    config.rate_limits = None;
    let week = crate::duration::DAY * 7;
    config.policy = Policy {
        room_types: ROOM_TYPES.parse()?,
        wait_timeout: week,
        presence_timeout: week,
        fallback_after: week,
        ..Policy::default()
    };
    let offline = Offline::open(&config).await?;
    for number in 0..people.div_ceil(PER_TOPIC) + empty {
        offline.add_topic(number.to_string()).await?;
    }
    let mut places = places().take(people).enumerate();
    loop {
        let mut joins = JoinSet::new();
        for (person, (topic, room_type)) in places.by_ref().take(AT_ONCE) {
            let topic = TopicId(i64::try_from(topic + 1)?);
            let session = SessionId((person as u128 + 1).to_be_bytes());
            let offline = offline.clone();
            joins.spawn(async move { offline.join(session, Queue { topic, room_type }).await });
        }
        if joins.is_empty() {
            break;
        }
        while let Some(joined) = joins.join_next().await {
            joined??;
        }
    }
    offline.close().await;
    Ok(())
}
