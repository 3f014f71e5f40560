//! `aiseki mq bench`: what a queue does on this machine and this server.

mod idle;
mod loaded;

use std::sync::Arc;
use std::time::Duration;

use aiseki_mq::{Message, Queue, Receipt, Server};
use clap::Args;
use clap::ValueEnum as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{At, Engine, Failure, Limits, failed, output, read_duration, usage};
use crate::config::Environment;

/// A lease that nothing in a measurement outlives.
const LEASE: Duration = Duration::from_mins(10);
/// The most messages of one publish.
const PUBLISH_BATCH: usize = 1_000;

/// Measure publishing, receiving and latency, every engine side by side
#[derive(Args)]
#[command(after_help = "\
Works in queues of its own, named bench:…, and removes what it made. One consumer publishes and \
receives as fast as it can; the figures are those of this machine, this server and its persistence. \
--ready, --in-flight, --blocked and --idle measure more, and want a server that nobody else uses.")]
pub(super) struct Bench {
    /// How many messages
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    messages: usize,

    /// How many messages one by one
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    singles: usize,

    /// How many latencies; each takes some milliseconds
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    latencies: usize,

    /// The size of a payload in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    payload: usize,

    /// How many messages are received and acked at a time
    #[arg(long, value_name = "N", default_value_t = 100)]
    batch: usize,

    /// How many consumers receive at the same time
    #[arg(long, value_name = "N", default_value_t = 4)]
    consumers: usize,

    /// How many consumers receive one by one at the same time
    #[arg(long, value_name = "N", default_value_t = 32)]
    single_consumers: usize,

    /// Time acks with so many messages ready, and in an empty queue
    #[arg(long, value_name = "N", default_value_t = 0)]
    ready: usize,

    /// Time acks with so many messages out with a worker, and in an empty queue
    #[arg(long, value_name = "N", default_value_t = 0)]
    in_flight: usize,

    /// Time the commands of others with so many idle workers, and without any
    #[arg(long, value_name = "N", default_value_t = 0)]
    blocked: usize,

    /// Count the commands of one idle worker for so long
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = read_duration)]
    idle: Duration,

    /// Only the engine of --engine, instead of all
    #[arg(long)]
    only: bool,

    #[command(flatten)]
    at: At,
}

/// What one engine did.
struct Figures {
    engine: Engine,
    publish: f64,
    receive: f64,
    one_by_one: f64,
    p50_ms: f64,
    p99_ms: f64,
    loaded: Option<loaded::Loaded>,
    others: Option<idle::Others>,
    idle_per_second: Option<f64>,
}

impl Bench {
    pub(super) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        if self.messages == 0
            || self.singles == 0
            || self.latencies == 0
            || !(1..=1_000).contains(&self.batch)
        {
            return Err(usage(
                "--messages, --singles and --latencies are at least 1, --batch is 1 to 1,000",
            ));
        }
        let engines: &[Engine] =
            if self.only { &[self.at.engine] } else { Engine::value_variants() };
        let mut all = Vec::new();
        for engine in engines {
            all.push(self.measure(*engine, environment).await?);
        }
        let json = all.iter().map(as_json).collect();
        self.at.print(&json, || {
            let rows = all.iter().map(|each| {
                [
                    name(each.engine),
                    format!("{:.0}/s", each.publish),
                    format!("{:.0}/s", each.receive),
                    format!("{:.0}/s", each.one_by_one),
                    format!("{:.3} ms", each.p50_ms),
                    format!("{:.3} ms", each.p99_ms),
                ]
            });
            let header = ["ENGINE", "PUBLISH", "RECEIVE+ACK", "ONE BY ONE", "P50", "P99"];
            output::table(header, rows) + &all.iter().map(more).collect::<String>()
        })
    }

    async fn measure(&self, engine: Engine, environment: &Environment) -> Result<Figures, Failure> {
        let at = At {
            engine,
            shards: if engine == Engine::Lists { self.at.shards } else { 1 },
            ..self.at.clone()
        };
        let name = format!("bench:{}", std::process::id());
        let queue = at.open(&name, Limits::default(), environment)?;
        progress(engine, "in batches");
        let (publish, receive) = self.in_batches(&queue).await.map_err(failed)?;
        progress(engine, "one by one");
        let one_by_one = self.one_by_one(&queue).await.map_err(failed)?;
        progress(engine, "latency");
        let (p50_ms, p99_ms) = self.latency(&queue).await.map_err(failed)?;
        queue.erase().await.map_err(failed)?;
        let server = at.server(environment)?;
        let more = self.more(engine, &server, &queue).await;
        queue.erase().await.map_err(failed)?;
        let (loaded, others, idle_per_second) = more.map_err(failed)?;
        Ok(Figures {
            engine,
            publish,
            receive,
            one_by_one,
            p50_ms,
            p99_ms,
            loaded,
            others,
            idle_per_second,
        })
    }

    async fn more(
        &self,
        engine: Engine,
        server: &Server,
        queue: &Arc<dyn Queue>,
    ) -> aiseki_mq::Result<(Option<loaded::Loaded>, Option<idle::Others>, Option<f64>)> {
        let (mut loaded, mut others, mut idle_per_second) = (None, None, None);
        if self.ready > 0 || self.in_flight > 0 {
            progress(engine, "acks in a full queue");
            loaded = Some(loaded::measure(self, queue).await?);
        }
        if self.blocked > 0 {
            progress(engine, "others beside blocked workers");
            others = Some(idle::others(self, server, queue).await?);
        }
        if !self.idle.is_zero() {
            progress(engine, "an idle worker");
            idle_per_second = Some(idle::commands(self, server, queue).await?);
        }
        Ok((loaded, others, idle_per_second))
    }

    async fn in_batches(&self, queue: &Arc<dyn Queue>) -> aiseki_mq::Result<(f64, f64)> {
        let publish = self.publish(queue, self.messages).await?;
        let receive = receive(queue, self.messages, self.batch, self.consumers).await?;
        Ok((publish, receive))
    }

    async fn one_by_one(&self, queue: &Arc<dyn Queue>) -> aiseki_mq::Result<f64> {
        self.publish(queue, self.singles).await?;
        receive(queue, self.singles, 1, self.single_consumers).await
    }

    /// Messages a second, a thousand at a time, four batches on their way.
    async fn publish(&self, queue: &Arc<dyn Queue>, count: usize) -> aiseki_mq::Result<f64> {
        const WRITERS: usize = 4;
        let payload = vec![b'x'; self.payload];
        let begin = Instant::now();
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            let share = count / WRITERS + usize::from(writer < count % WRITERS);
            let (queue, payload) = (Arc::clone(queue), payload.clone());
            writers.spawn(async move {
                let mut left = share;
                while left > 0 {
                    let batch = left.min(PUBLISH_BATCH);
                    let messages: Vec<_> =
                        (0..batch).map(|_| Message::new(payload.clone())).collect();
                    queue.publish(&messages).await?;
                    left -= batch;
                }
                Ok(())
            });
        }
        joined(writers).await?;
        Ok(rate(count, begin))
    }

    /// From just before the publish to the handler, with an idle worker that blocks.
    async fn latency(&self, queue: &Arc<dyn Queue>) -> aiseki_mq::Result<(f64, f64)> {
        let consumer = queue.consumer("bench", LEASE)?;
        let samples = self.latencies;
        let (sender, mut answers) = tokio::sync::mpsc::channel::<Instant>(1);
        let receiving = tokio::spawn(async move {
            for _ in 0..samples {
                let mut got = Vec::new();
                while got.is_empty() {
                    got = consumer.receive(1, Duration::from_secs(5)).await?;
                }
                let now = Instant::now();
                consumer.ack(&[got.remove(0).receipt]).await?;
                if sender.send(now).await.is_err() {
                    break;
                }
            }
            consumer.drain(&[]).await
        });
        // A task, as the consumer is: the thread that waits for the whole measurement would have to be
        // woken for each message.
        let (queue, payload) = (Arc::clone(queue), self.payload);
        let publishing = tokio::spawn(async move {
            let mut latencies = Vec::with_capacity(samples);
            for _ in 0..samples {
                // Until the worker blocks again: it is the idle worker that is measured.
                tokio::time::sleep(Duration::from_millis(2)).await;
                let begin = Instant::now();
                queue.publish(&[Message::new(vec![b'x'; payload])]).await?;
                let Some(received) = answers.recv().await else { break };
                latencies.push((received - begin).as_secs_f64() * 1_000.0);
            }
            Ok::<_, aiseki_mq::Error>(latencies)
        });
        let mut latencies = publishing.await.unwrap_or_else(|_| Ok(Vec::new()))?;
        let _ = receiving.await;
        Ok((percentile(&mut latencies, 50), percentile(&mut latencies, 99)))
    }
}

/// What so many of a hundred are not above; 0 when there are none.
fn percentile(times: &mut [f64], hundredths: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() * hundredths / 100).copied().unwrap_or_default()
}

/// Messages a second, received and acked by these consumers.
async fn receive(
    queue: &Arc<dyn Queue>,
    count: usize,
    batch: usize,
    consumers: usize,
) -> aiseki_mq::Result<f64> {
    let begin = Instant::now();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..consumers {
        let consumer = queue.consumer("bench", LEASE)?;
        workers.spawn(async move {
            let mut acks: Vec<Receipt> = Vec::new();
            loop {
                let got = consumer.exchange(&acks, batch).await?;
                acks = got.deliveries.into_iter().map(|each| each.receipt).collect();
                if acks.is_empty() && !got.more {
                    consumer.drain(&[]).await?;
                    return Ok(());
                }
            }
        });
    }
    joined(workers).await?;
    Ok(rate(count, begin))
}

async fn joined(mut tasks: tokio::task::JoinSet<aiseki_mq::Result<()>>) -> aiseki_mq::Result<()> {
    while let Some(done) = tasks.join_next().await {
        if let Ok(result) = done {
            result?;
        }
    }
    Ok(())
}

/// A measurement takes long enough for people to ask whether it stands still.
#[expect(clippy::print_stderr, reason = "it is for people, and not part of the figures")]
fn progress(engine: Engine, what: &str) {
    eprintln!("{}: {what}", name(engine));
}

#[expect(clippy::cast_precision_loss, reason = "a rate is shown without decimals")]
fn rate(count: usize, begin: Instant) -> f64 {
    count as f64 / begin.elapsed().as_secs_f64()
}

fn name(engine: Engine) -> String {
    engine.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// What was asked for beyond the table, a line each.
fn more(figures: &Figures) -> String {
    let loaded = figures.loaded.as_ref().map(|loaded::Loaded { empty_ms, loaded_ms }| {
        format!("ack p99 {loaded_ms:.3} ms, in an empty queue {empty_ms:.3} ms")
    });
    let others = figures.others.as_ref().map(|idle::Others { alone_ms, blocked_ms }| {
        format!("PING p99 {blocked_ms:.3} ms beside blocked workers, without {alone_ms:.3} ms")
    });
    let idle = figures.idle_per_second;
    let idle = idle.map(|count| format!("an idle worker sends {count:.2} commands a second"));
    let name = name(figures.engine);
    let lines = [loaded, others, idle].into_iter().flatten();
    lines.flat_map(|line| [name.clone(), ": ".to_owned(), line, "\n".to_owned()]).collect()
}

fn as_json(figures: &Figures) -> Value {
    let mut json = json!({
        "engine": name(figures.engine),
        "publish_per_second": figures.publish.round(),
        "receive_per_second": figures.receive.round(),
        "one_by_one_per_second": figures.one_by_one.round(),
        "latency_p50_ms": figures.p50_ms,
        "latency_p99_ms": figures.p99_ms,
    });
    if let Some(loaded::Loaded { empty_ms, loaded_ms }) = figures.loaded {
        json["ack_p99_ms"] = json!(loaded_ms);
        json["ack_p99_empty_ms"] = json!(empty_ms);
    }
    if let Some(idle::Others { alone_ms, blocked_ms }) = figures.others {
        json["ping_p99_blocked_ms"] = json!(blocked_ms);
        json["ping_p99_ms"] = json!(alone_ms);
    }
    if let Some(count) = figures.idle_per_second {
        json["idle_commands_per_second"] = json!(count);
    }
    json
}
