//! `aiseki mq`: the message queue from the command line.

mod bench;
mod doctor;
mod letters;
mod publish;
mod work;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aiseki_mq::{Budgets, Lists, ListsOptions, Plain, Queue, QueueName, Server, Streams};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::{Exit, Failure, output};
use crate::config::Environment;
use crate::duration;

/// Work with message queues on Redis or Valkey
#[derive(Args)]
#[command(after_help = "\
The server is named by --redis-url or AISEKI_REDIS_URL. A queue needs no setting up; its keys are \
described in docs/message-queue.md.\n\n\
Exit codes: 0 done, 1 failed or (doctor) something is wrong, 2 wrong usage.")]
pub(super) struct Mq {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Publish(publish::Publish),
    Work(work::Work),
    Stats(Stats),
    Dead(letters::Dead),
    Pause(Pause),
    Resume(Resume),
    Doctor(doctor::Doctor),
    Bench(bench::Bench),
}

/// Where the queue is and how it is kept; the same for every subcommand.
#[derive(Args, Clone)]
struct At {
    /// The server: `redis://`, `rediss://`, `redis-sentinel://…?service=NAME`, `redis-cluster://`
    #[arg(long, value_name = "URL")]
    redis_url: Option<String>,

    /// A file with the certificate authority (PEM) to trust instead of the public ones
    #[arg(long, value_name = "FILE")]
    redis_ca: Option<PathBuf>,

    /// How the queue is kept; everybody who uses a queue uses the same
    #[arg(long, value_enum, default_value_t = Engine::Lists)]
    engine: Engine,

    /// How many shards the queue has (lists only); everybody who uses a queue says the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    shards: usize,

    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// Fenced leases, delays, retries, unique keys: the default
    Lists,
    /// A list that any client fills with LPUSH
    Plain,
    /// A stream and a consumer group
    Streams,
}

/// Failures and lengths, as far as a subcommand lets one set them.
#[derive(Clone, Default)]
struct Limits {
    lists: ListsOptions,
}

impl At {
    fn server(&self, environment: &Environment) -> Result<Server, Failure> {
        let url = match &self.redis_url {
            Some(url) => url.clone(),
            None => url_from(environment)?,
        };
        let server = Server::new(&url).map_err(|error| usage(format!("--redis-url: {error}")))?;
        let Some(path) = &self.redis_ca else { return Ok(server) };
        let pem = std::fs::read(path)
            .map_err(|error| usage(format!("--redis-ca: {}: {error}", path.display())))?;
        Ok(server.with_root_certificate(pem))
    }

    fn open(
        &self,
        queue: &str,
        limits: Limits,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Failure> {
        let server = self.server(environment)?;
        let budgets = Budgets {
            failures: limits.lists.failure_budget,
            crashes: limits.lists.crash_budget,
            payload_limit: limits.lists.payload_limit,
        };
        if self.engine != Engine::Lists && self.shards != 1 {
            return Err(usage("--shards: only the engine lists has shards"));
        }
        Ok(match self.engine {
            Engine::Lists => Arc::new(self.lists(queue, limits, environment)?),
            Engine::Plain => Arc::new(Plain::new(&server, queue, budgets).map_err(failed)?),
            Engine::Streams => {
                Arc::new(Streams::new(&server, &QueueName::new(queue).map_err(failed)?, budgets))
            }
        })
    }

    fn lists(
        &self,
        queue: &str,
        limits: Limits,
        environment: &Environment,
    ) -> Result<Lists, Failure> {
        let name = QueueName::sharded(queue, self.shards).map_err(failed)?;
        Ok(Lists::new(&self.server(environment)?, name, limits.lists))
    }

    /// Prints the same as JSON or as text.
    fn print(&self, json: &Value, text: impl FnOnce() -> String) -> Result<(), Failure> {
        output::print(&if self.json { format!("{json}\n") } else { text() })
    }
}

/// Show how many messages are in which state
#[derive(Args)]
struct Stats {
    queue: String,

    #[command(flatten)]
    at: At,
}

impl Stats {
    async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let queue = self.at.open(&self.queue, Limits::default(), environment)?;
        let stats = queue.stats().await.map_err(failed)?;
        let json = json!({
            "ready": stats.ready, "delayed": stats.delayed, "leased": stats.leased,
            "dead": stats.dead, "acked": stats.acked, "oldest_ms": stats.oldest_ms,
        });
        self.at.print(&json, || {
            let paused = if stats.paused { "the queue is paused\n" } else { "" };
            format!(
                "ready {}\ndelayed {}\nleased {}\ndead {}\nacked {}\noldest {} ms\n{paused}",
                stats.ready, stats.delayed, stats.leased, stats.dead, stats.acked, stats.oldest_ms
            )
        })
    }
}

/// Stop the delivery of messages; publishing and acking go on
#[derive(Args)]
struct Pause {
    queue: String,

    #[command(flatten)]
    at: At,
}

/// Resume the delivery of messages
#[derive(Args)]
struct Resume {
    queue: String,

    #[command(flatten)]
    at: At,
}

async fn set_paused(
    at: &At,
    queue: &str,
    paused: bool,
    environment: &Environment,
) -> Result<(), Failure> {
    let opened = at.open(queue, Limits::default(), environment)?;
    opened.pause(paused).await.map_err(failed)?;
    let word = if paused { "paused" } else { "resumed" };
    at.print(&json!({ "paused": paused }), || format!("{} is {word}\n", output::visible(queue)))
}

impl Mq {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| Failure::new(Exit::Failed, error))?;
        runtime.block_on(async {
            match self.command {
                Command::Publish(command) => command.run(environment).await,
                Command::Work(command) => command.run(environment).await,
                Command::Stats(command) => command.run(environment).await,
                Command::Dead(command) => command.run(environment).await,
                Command::Pause(Pause { queue, at }) => {
                    set_paused(&at, &queue, true, environment).await
                }
                Command::Resume(Resume { queue, at }) => {
                    set_paused(&at, &queue, false, environment).await
                }
                Command::Doctor(command) => command.run(environment).await,
                Command::Bench(command) => command.run(environment).await,
            }
        })
    }
}

fn url_from(environment: &Environment) -> Result<String, Failure> {
    if let Some(url) = environment.get("AISEKI_REDIS_URL")? {
        return Ok(url.to_owned());
    }
    let Some(path) = environment.get("AISEKI_REDIS_URL_FILE")? else {
        return Err(usage("no server: give --redis-url or set AISEKI_REDIS_URL"));
    };
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| usage(format!("AISEKI_REDIS_URL_FILE: {error}")))?;
    Ok(text.trim_end().to_owned())
}

fn failed(error: aiseki_mq::Error) -> Failure {
    let exit =
        if matches!(error, aiseki_mq::Error::Invalid(_)) { Exit::Usage } else { Exit::Failed };
    Failure::new(exit, error)
}

fn usage(text: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, text)
}

/// Reads a duration of the command line, such as `5s`.
fn read_duration(text: &str) -> Result<Duration, duration::DurationError> {
    duration::parse(text, 0..=365 * duration::DAY).map(Duration::from_millis)
}
