//! A worker for tests that kill it: it says what it has just done, and goes on when told to.
//!
//! `mq-stepper steps URL QUEUE LEASE_MS` prints `ready`, `claimed ID`, `handled ID`, `acked ID` and
//! reads a line from its standard input after each. `mq-stepper work URL QUEUE LEASE_MS CONCURRENCY
//! SHARDS` is a plain worker that counts each effect in the hash `effects` of the same server, until
//! it is killed or told to end by SIGTERM.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use aiseki_mq::{
    Lists, ListsOptions, Outcome, Queue, QueueName, Result, Server, Worker, stop_on_signals,
};

type Any = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Any> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, url, queue, lease, rest @ ..] = arguments.as_slice() else {
        return Err("usage: mq-stepper steps|work URL QUEUE LEASE_MS …".into());
    };
    let lease = Duration::from_millis(lease.parse()?);
    match (mode.as_str(), rest) {
        ("steps", []) => steps(&open(url, queue, 1)?, lease).await,
        ("work", [concurrency, shards]) => {
            let queue = open(url, queue, shards.parse()?)?;
            work(Arc::new(queue), url, lease, concurrency.parse()?).await
        }
        _ => Err("unknown mode".into()),
    }
}

fn open(url: &str, queue: &str, shards: usize) -> Result<Lists> {
    let options = ListsOptions { crash_budget: 1_000_000, ..ListsOptions::default() };
    Ok(Lists::new(&Server::new(url)?, QueueName::sharded(queue, shards)?, options))
}

async fn steps(queue: &Lists, lease: Duration) -> std::result::Result<(), Any> {
    let consumer = queue.consumer("stepper", lease)?;
    say("ready")?;
    loop {
        for delivery in consumer.receive(1, Duration::from_secs(1)).await? {
            say(&format!("claimed {}", delivery.id()))?;
            say(&format!("handled {}", delivery.id()))?;
            consumer.ack(std::slice::from_ref(&delivery.receipt)).await?;
            say(&format!("acked {}", delivery.id()))?;
        }
    }
}

/// Says where it is, and waits to be told to go on.
fn say(text: &str) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{text}")?;
    output.flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map(|_| ())
}

async fn work(
    queue: Arc<dyn Queue>,
    url: &str,
    lease: Duration,
    concurrency: usize,
) -> std::result::Result<(), Any> {
    let client = redis::Client::open(url)?;
    let effects = client.get_multiplexed_async_connection().await?;
    let worker = Worker::new(queue, move |job| {
        let mut effects = effects.clone();
        async move {
            let mut note = redis::cmd("HINCRBY");
            note.arg("effects").arg(job.delivery.id()).arg(1);
            match note.query_async::<()>(&mut effects).await {
                Ok(()) => Outcome::Ack,
                Err(error) => Outcome::FailAfter(Duration::from_millis(50), error.to_string()),
            }
        }
    });
    worker.concurrency(concurrency).lease(lease).run(stop_on_signals()?).await?;
    Ok(())
}
