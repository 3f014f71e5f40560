//! What idle workers cost: commands each second, and the time of other clients' commands.

use std::sync::Arc;
use std::time::Duration;

use aiseki_mq::{Error, Link, Metrics, Outcome, Queue, Result, Server, Worker};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Bench, LEASE, percentile, rate};

/// How many commands of somebody else are timed.
const OTHERS: usize = 5_000;
/// How long blocked workers may take to be there.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// What the workers of all engines send.
const SENT: [&str; 5] = ["evalsha", "eval", "blpop", "blmove", "xreadgroup"];

/// 99 of 100 `PING`s of another client were answered within this time.
pub(super) struct Others {
    pub(super) alone_ms: f64,
    pub(super) blocked_ms: f64,
}

/// Commands a second of one idle worker. Whatever else uses the server counts, too.
pub(super) async fn commands(
    bench: &Bench,
    server: &Server,
    queue: &Arc<dyn Queue>,
) -> Result<f64> {
    let link = Link::new(server.clone(), Metrics::default());
    let stop = CancellationToken::new();
    let (token, queue) = (stop.clone(), Arc::clone(queue));
    let working = tokio::spawn(async move {
        Worker::new(queue, |_| async { Outcome::Ack }).name("bench").run(token).await
    });
    blocked(&link, 1).await?;
    let (before, begin) = (sent(&link).await?, Instant::now());
    tokio::time::sleep(bench.idle).await;
    let sent = rate(sent(&link).await? - before, begin);
    stop.cancel();
    let _ = working.await;
    Ok(sent)
}

/// The time of another client's commands, without workers and with many that wait.
pub(super) async fn others(
    bench: &Bench,
    server: &Server,
    queue: &Arc<dyn Queue>,
) -> Result<Others> {
    // Each worker has a connection of its own.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    let link = Link::new(server.clone(), Metrics::default());
    let alone_ms = pings(&link).await?;
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..bench.blocked {
        let consumer = queue.consumer("bench", LEASE)?;
        workers.spawn(async move {
            // As idle workers do: they block, look, and block again.
            while consumer.receive(1, LEASE).await.is_ok_and(|got| got.is_empty()) {}
        });
    }
    blocked(&link, bench.blocked).await?;
    let blocked_ms = pings(&link).await?;
    workers.shutdown().await;
    Ok(Others { alone_ms, blocked_ms })
}

async fn pings(link: &Link) -> Result<f64> {
    let mut times = Vec::with_capacity(OTHERS);
    for _ in 0..OTHERS {
        let begin = Instant::now();
        link.ping().await?;
        times.push(begin.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(percentile(&mut times, 99))
}

/// Waits until so many clients are blocked; nearly all of very many, because each looks now and then.
async fn blocked(link: &Link, count: usize) -> Result<()> {
    let wanted = count - count / 20;
    let end = Instant::now() + PATIENCE;
    while number(&link.info("clients").await?, "blocked_clients") < wanted {
        if Instant::now() > end {
            return Err(Error::Unsupported(format!("{count} workers do not get to block")));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

async fn sent(link: &Link) -> Result<usize> {
    let stats = link.info("commandstats").await?;
    Ok(SENT.iter().map(|name| number(&stats, &format!("cmdstat_{name}"))).sum())
}

/// The number that a value begins with, or its `calls=` does; 0 when there is none.
fn number(info: &[(String, String)], name: &str) -> usize {
    let found = info.iter().find(|(each, _)| each == name).map(|(_, value)| value.as_str());
    let value = found.map_or("", |value| value.strip_prefix("calls=").unwrap_or(value));
    let digits = value.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_default()
}
