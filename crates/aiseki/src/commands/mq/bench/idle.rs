//! What idle workers cost: commands each second, and the time of other clients' commands.

use std::sync::Arc;
use std::time::Duration;

use aiseki_mq::{Error, Link, Metrics, Outcome, Queue, Result, Server, Worker};
use redis::Value;
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
    let ping = redis::cmd("PING");
    let mut times = Vec::with_capacity(OTHERS);
    for _ in 0..OTHERS {
        let begin = Instant::now();
        link.query(&ping).await?;
        times.push(begin.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(percentile(&mut times, 99))
}

/// Waits until so many clients are blocked; nearly all of very many, because each looks now and then.
async fn blocked(link: &Link, count: usize) -> Result<()> {
    let wanted = count - count / 20;
    let end = Instant::now() + PATIENCE;
    while number(&info(link, "clients").await?, "blocked_clients:") < wanted {
        if Instant::now() > end {
            return Err(Error::Unsupported(format!("{count} workers do not get to block")));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

async fn sent(link: &Link) -> Result<usize> {
    let info = info(link, "commandstats").await?;
    Ok(SENT.iter().map(|name| number(&info, &format!("cmdstat_{name}:calls="))).sum())
}

async fn info(link: &Link, section: &str) -> Result<String> {
    let mut ask = redis::cmd("INFO");
    ask.arg(section);
    match link.query(&ask).await? {
        Value::BulkString(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
        Value::VerbatimString { text, .. } => Ok(text),
        _ => Err(Error::Unsupported("these are measured on a single server".to_owned())),
    }
}

/// The number after this beginning of a line; 0 when there is none.
fn number(info: &str, beginning: &str) -> usize {
    let rest = info.lines().find_map(|line| line.strip_prefix(beginning));
    let digits = rest.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    digits.flatten().and_then(|digits| digits.parse().ok()).unwrap_or_default()
}
