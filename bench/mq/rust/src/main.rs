//! What `aiseki-mq` and `rsmq_async` do on one server, in one run, in turns.
//!
//! `mq-compare URL [MESSAGES] [ROUNDS]` prints one line of JSON for each measurement. Both do the
//! same: payloads of 100 bytes, published a thousand at a time, received and deleted a hundred at a
//! time by as many consumers, each message out with its consumer for ten minutes unless deleted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aiseki_mq::{Lists, ListsOptions, Message, Queue, QueueName, Server};
use futures_util::future::try_join_all;
use rsmq_async::{Rsmq, RsmqConnection, RsmqOptions};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const LEASE: Duration = Duration::from_secs(600);
const PAYLOAD: usize = 100;
const PUBLISH: usize = 1_000;
const BATCH: usize = 100;
/// How many publish or consume at the same time, and how many consume one by one.
const CONSUMERS: usize = 4;
const SINGLE_CONSUMERS: usize = 32;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("which Redis? mq-compare redis://HOST:PORT")?;
    let messages: usize = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(3), |text| text.parse())?;
    for round in 0..rounds {
        ours(&url, round, messages).await?;
        rsmq(&url, round, messages).await?;
    }
    Ok(())
}

fn report(who: &str, round: usize, what: &str, value: f64) {
    println!(r#"{{"who":"{who}","round":{round},"what":"{what}","value":{value:.3}}}"#);
}

fn rate(count: usize, begin: Instant) -> f64 {
    count as f64 / begin.elapsed().as_secs_f64()
}

async fn ours(url: &str, round: usize, messages: usize) -> Result<(), Failure> {
    let server = Server::new(url)?;
    let name = QueueName::new(format!("compare:{}", std::process::id()))?;
    let queue: Arc<dyn Queue> = Arc::new(Lists::new(&server, name, ListsOptions::default()));
    report("aiseki-mq", round, "publish", publish(&queue, messages).await?);
    report("aiseki-mq", round, "receive+ack", receive(&queue, messages, BATCH, CONSUMERS).await?);
    let singles = messages / 5;
    publish(&queue, singles).await?;
    let one_by_one = receive(&queue, singles, 1, SINGLE_CONSUMERS).await?;
    report("aiseki-mq", round, "one by one", one_by_one);
    report("aiseki-mq", round, "latency p50 ms", latency(&queue, 500).await?);
    queue.erase().await?;
    Ok(())
}

async fn publish(queue: &Arc<dyn Queue>, count: usize) -> Result<f64, Failure> {
    let begin = Instant::now();
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..CONSUMERS {
        let queue = Arc::clone(queue);
        writers.spawn(async move {
            let mut left = count / CONSUMERS;
            while left > 0 {
                let batch = left.min(PUBLISH);
                let some: Vec<_> = (0..batch).map(|_| Message::new(vec![b'x'; PAYLOAD])).collect();
                queue.publish(&some).await?;
                left -= batch;
            }
            Ok::<(), Failure>(())
        });
    }
    while let Some(done) = writers.join_next().await {
        done??;
    }
    Ok(rate(count, begin))
}

async fn receive(
    queue: &Arc<dyn Queue>,
    count: usize,
    batch: usize,
    consumers: usize,
) -> Result<f64, Failure> {
    let begin = Instant::now();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..consumers {
        let consumer = queue.consumer("compare", LEASE)?;
        workers.spawn(async move {
            let mut acks = Vec::new();
            loop {
                let got = consumer.exchange(&acks, batch).await?;
                acks = got.deliveries.into_iter().map(|each| each.receipt).collect();
                if acks.is_empty() && !got.more {
                    return Ok::<(), Failure>(());
                }
            }
        });
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    Ok(rate(count, begin))
}

/// The median of the time from just before a publish to the handler, with an idle worker.
async fn latency(queue: &Arc<dyn Queue>, samples: usize) -> Result<f64, Failure> {
    let consumer = queue.consumer("compare", LEASE)?;
    let (sender, mut received) = tokio::sync::mpsc::channel::<Instant>(1);
    let worker = tokio::spawn(async move {
        for _ in 0..samples {
            let mut got = Vec::new();
            while got.is_empty() {
                got = consumer.receive(1, Duration::from_secs(5)).await?;
            }
            sender.send(Instant::now()).await?;
            consumer.ack(&[got.remove(0).receipt]).await?;
        }
        Ok::<(), Failure>(())
    });
    let mut all = Vec::new();
    for _ in 0..samples {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let begin = Instant::now();
        queue.publish(&[Message::new(vec![b'x'; PAYLOAD])]).await?;
        let Some(at) = received.recv().await else { break };
        all.push((at - begin).as_secs_f64() * 1_000.0);
    }
    worker.await??;
    all.sort_by(f64::total_cmp);
    Ok(all[all.len() / 2])
}

/// It publishes and receives in batches and deletes one by one: as many deletes as were received are
/// on their way at the same time, on one connection that they share, which is its fastest way.
async fn rsmq(url: &str, round: usize, messages: usize) -> Result<(), Failure> {
    let address = url.trim_start_matches("redis://");
    let (host, port) = address.split_once(':').ok_or("redis://HOST:PORT is wanted")?;
    let options = RsmqOptions {
        host: host.to_owned(),
        port: port.trim_end_matches('/').parse()?,
        ..RsmqOptions::default()
    };
    let mut queue = Rsmq::new(options).await?;
    let _ = queue.delete_queue("compare").await;
    queue.create_queue("compare", Some(LEASE), None, None).await?;
    let begin = Instant::now();
    all(&queue, messages / CONSUMERS, send).await?;
    report("rsmq_async", round, "publish", rate(messages, begin));
    let begin = Instant::now();
    all(&queue, messages / CONSUMERS, take).await?;
    report("rsmq_async", round, "receive+ack", rate(messages, begin));
    let singles = messages / 5;
    all(&queue, singles / CONSUMERS, send).await?;
    let begin = Instant::now();
    let one = |mut queue: Rsmq| async move {
        for _ in 0..singles / SINGLE_CONSUMERS {
            let got = queue.receive_message::<Vec<u8>>("compare", None).await?;
            queue.delete_message("compare", &got.ok_or("empty too early")?.id).await?;
        }
        Ok::<(), Failure>(())
    };
    try_join_all((0..SINGLE_CONSUMERS).map(|_| tokio::spawn(one(queue.clone())))).await?;
    report("rsmq_async", round, "one by one", rate(singles, begin));
    queue.delete_queue("compare").await?;
    Ok(())
}

/// As many tasks as consumers, each with its share.
async fn all<F>(queue: &Rsmq, share: usize, task: fn(Rsmq, usize) -> F) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let tasks = (0..CONSUMERS).map(|_| tokio::spawn(task(queue.clone(), share)));
    for done in try_join_all(tasks).await? {
        done?;
    }
    Ok(())
}

async fn send(mut queue: Rsmq, mut left: usize) -> Result<(), Failure> {
    while left > 0 {
        let some = vec![vec![b'x'; PAYLOAD]; left.min(PUBLISH)];
        left -= some.len();
        queue.send_message_batch("compare", some, None).await?;
    }
    Ok(())
}

async fn take(mut queue: Rsmq, mut left: usize) -> Result<(), Failure> {
    while left > 0 {
        let count = u32::try_from(left.min(BATCH))?;
        let got = queue.receive_message_batch::<Vec<u8>>("compare", None, count).await?;
        if got.is_empty() {
            return Err("empty too early".into());
        }
        left -= got.len();
        let delete = |id: String, mut queue: Rsmq| async move {
            queue.delete_message("compare", &id).await
        };
        try_join_all(got.into_iter().map(|each| delete(each.id, queue.clone()))).await?;
    }
    Ok(())
}
