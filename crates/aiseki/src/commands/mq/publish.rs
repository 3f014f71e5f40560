//! `aiseki mq publish`.

use std::path::PathBuf;
use std::time::Duration;

use aiseki_mq::{BATCH, Durability, ListsOptions, Message, Published, Queue};
use clap::Args;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};

use super::{At, Engine, Exit, Failure, Limits, failed, read_duration, usage};
use crate::config::Environment;

/// How long a durable publish waits for its confirmation.
const WITHIN: Duration = Duration::from_secs(5);

/// Publish one message, or one for each line
#[derive(Args)]
pub(super) struct Publish {
    queue: String,

    /// The payload: a file, or - for standard input
    #[arg(default_value = "-")]
    file: PathBuf,

    /// An id of your own: a second message with it is a duplicate
    #[arg(long, conflicts_with = "lines")]
    id: Option<String>,

    /// Not to be delivered before, such as 5s
    #[arg(long, value_name = "DURATION", value_parser = read_duration)]
    delay: Option<Duration>,

    /// Refused while a live message has this key
    #[arg(long, value_name = "KEY", conflicts_with = "lines")]
    unique: Option<String>,

    /// Each line is a message
    #[arg(long)]
    lines: bool,

    /// The most messages the queue may hold; beyond it nothing is published
    #[arg(long, value_name = "N")]
    max_length: Option<u64>,

    /// When it is done: memory, replicas:N, or fsync
    #[arg(long, value_name = "WHEN", default_value = "memory", value_parser = read_durability)]
    durability: Durability,

    #[command(flatten)]
    at: At,
}

fn read_durability(text: &str) -> Result<Durability, String> {
    if let Some(count) = text.strip_prefix("replicas:").and_then(|count| count.parse().ok()) {
        return Ok(Durability::Replicas { count, within: WITHIN });
    }
    match text {
        "memory" => Ok(Durability::Memory),
        "fsync" => Ok(Durability::Fsync { within: WITHIN }),
        _ => Err("expected memory, replicas:N or fsync".to_owned()),
    }
}

impl Publish {
    pub(super) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let only_lists =
            self.id.is_some() || self.max_length.is_some() || self.durability != Durability::Memory;
        if only_lists && self.at.engine != Engine::Lists {
            return Err(usage(
                "--id, --max-length and --durability: only the engine lists has them",
            ));
        }
        let lists = ListsOptions {
            max_length: self.max_length,
            durability: self.durability,
            ..ListsOptions::default()
        };
        let limits = Limits { lists };
        let queue = self.at.open(&self.queue, limits, environment)?;
        let mut input = self.input().await?;
        if self.lines {
            return self.lines(&*queue, input).await;
        }
        let mut payload = Vec::new();
        let read = input.read_to_end(&mut payload).await;
        read.map_err(|error| Failure::new(Exit::Failed, format_args!("the payload: {error}")))?;
        let mut message = self.message(payload);
        if let Some(id) = &self.id {
            message = message.with_id(id);
        }
        if let Some(key) = &self.unique {
            message = message.with_unique(key);
        }
        let published = queue.publish(std::slice::from_ref(&message)).await.map_err(failed)?;
        let id = message.id();
        let (json, text) = match published.first() {
            Some(Published::Taken { by }) => (
                json!({ "id": id, "result": "taken", "by": by }),
                format!("not published: the unique key is taken by {by}\n"),
            ),
            Some(Published::Duplicate) => {
                (json!({ "id": id, "result": "duplicate" }), format!("{id} is published already\n"))
            }
            _ => (json!({ "id": id, "result": "accepted" }), format!("{id}\n")),
        };
        self.at.print(&json, || text)
    }

    async fn input(&self) -> Result<Box<dyn AsyncRead + Unpin>, Failure> {
        if self.file.as_os_str() == "-" {
            return Ok(Box::new(tokio::io::stdin()));
        }
        let file = tokio::fs::File::open(&self.file).await;
        let file = file.map_err(|error| {
            Failure::new(Exit::Failed, format_args!("{}: {error}", self.file.display()))
        })?;
        Ok(Box::new(file))
    }

    fn message(&self, payload: Vec<u8>) -> Message {
        Message::new(payload).with_delay(self.delay.unwrap_or_default())
    }

    async fn lines(
        &self,
        queue: &dyn Queue,
        input: Box<dyn AsyncRead + Unpin>,
    ) -> Result<(), Failure> {
        let mut reader = BufReader::new(input);
        let mut batch = Vec::with_capacity(BATCH);
        let (mut accepted, mut refused) = (0_u64, 0_u64);
        loop {
            let mut line = Vec::new();
            let read = reader.read_until(b'\n', &mut line).await;
            let end = read.map_err(|error| Failure::new(Exit::Failed, error))? == 0;
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            if !end {
                batch.push(self.message(line));
            }
            // A slow writer's lines go out when they are there, a fast one's a thousand at a time.
            if batch.len() == BATCH || (!batch.is_empty() && (end || reader.buffer().is_empty())) {
                let published = queue.publish(&batch).await.map_err(|error| {
                    let already = format_args!("after {accepted} messages: {error}").to_string();
                    Failure { message: already, ..failed(error) }
                })?;
                let new = published.iter().filter(|each| **each == Published::Accepted).count();
                accepted += new as u64;
                refused += (published.len() - new) as u64;
                batch.clear();
            }
            if end {
                break;
            }
        }
        let json = json!({ "accepted": accepted, "refused": refused });
        self.at.print(&json, || format!("{accepted} published\n"))
    }
}
