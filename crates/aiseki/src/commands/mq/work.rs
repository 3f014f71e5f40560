//! `aiseki mq work`: a command for each message.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use aiseki_mq::{Backoff, Job, ListsOptions, Outcome, Worker, stop_on_signals};
use clap::Args;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

use super::{At, Exit, Failure, Limits, failed, read_duration};
use crate::config::Environment;

/// What a command exits with to be asked again, uncounted: `EX_TEMPFAIL` of sysexits.
const TRY_AGAIN: i32 = 75;
/// When a message is tried again whose command asked for it.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Run a command for each message
#[derive(Args)]
#[command(after_help = "\
The command runs in /bin/sh with the payload as standard input, and with AISEKI_MESSAGE_ID, \
AISEKI_ATTEMPT (1 for the first) and AISEKI_TOKEN (the fencing token) in its environment. Exit 0 \
acks the message, 75 asks for a retry that does not count, anything else is a failure. It is killed \
when the lease is lost. SIGTERM and SIGINT drain: running commands end, nothing new begins.")]
pub(super) struct Work {
    queue: String,

    /// The command, as for sh -c
    #[arg(long, value_name = "CMD")]
    exec: String,

    /// How many commands run at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    concurrency: usize,

    /// How long a worker may be silent until its messages go to others
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = read_duration)]
    lease: Duration,

    /// Stop when nothing is ready, delayed or out with any worker
    #[arg(long)]
    until_empty: bool,

    /// How long running commands may take to end after SIGTERM
    #[arg(long, value_name = "DURATION", default_value = "25s", value_parser = read_duration)]
    drain: Duration,

    /// The longest wait before the first retry; doubled for each further one
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = read_duration)]
    backoff: Duration,

    /// So many failures make a dead letter
    #[arg(long, value_name = "N", default_value_t = 10)]
    failure_budget: u32,

    /// So many lost workers make a dead letter
    #[arg(long, value_name = "N", default_value_t = 5)]
    crash_budget: u32,

    /// The name that the worker's id begins with
    #[arg(long, default_value = "worker")]
    name: String,

    #[command(flatten)]
    at: At,
}

impl Work {
    pub(super) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let lists = ListsOptions {
            failure_budget: self.failure_budget,
            crash_budget: self.crash_budget,
            ..ListsOptions::default()
        };
        let queue = self.at.open(&self.queue, Limits { lists }, environment)?;
        let logs = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_writer(io::stderr)
            .with_ansi(false);
        // A second subscriber in one process, as in tests, changes nothing.
        let _ = logs.try_init();
        let stop = stop_on_signals().map_err(|error| Failure::new(Exit::Failed, error))?;
        let command = Arc::new(self.exec);
        let worker = Worker::new(queue, move |job| {
            let command = Arc::clone(&command);
            async move { run_command(&command, job).await }
        });
        let worker = worker
            .name(self.name)
            .concurrency(self.concurrency)
            .lease(self.lease)
            .drain(self.drain)
            .backoff(Backoff { first: self.backoff, ..Backoff::default() })
            .until_empty(self.until_empty);
        let report = worker.run(stop).await.map_err(failed)?;
        let json = json!({
            "acked": report.acked, "failed": report.failed,
            "released": report.released, "lost": report.lost,
        });
        self.at.print(&json, || {
            format!(
                "acked {}, failed {}, released {}, lost {}\n",
                report.acked, report.failed, report.released, report.lost
            )
        })
    }
}

/// A command and everything that it started: killed with this value, unless it has ended.
struct Running {
    child: Child,
    group: Option<Pid>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

async fn run_command(command: &str, job: Job) -> Outcome {
    match finish(command, job).await {
        Ok(status) => match status.code() {
            Some(0) => Outcome::Ack,
            Some(TRY_AGAIN) => Outcome::Release(TRY_AGAIN_AFTER),
            Some(code) => Outcome::Fail(format!("exit {code}")),
            None => Outcome::Fail(format!("{status}")),
        },
        Err(error) => Outcome::Fail(format!("the command cannot be run: {error}")),
    }
}

async fn finish(command: &str, job: Job) -> io::Result<ExitStatus> {
    let delivery = job.delivery;
    let child = Command::new("/bin/sh")
        .args(["-c", command])
        .env("AISEKI_MESSAGE_ID", delivery.id())
        .env("AISEKI_ATTEMPT", delivery.attempt().to_string())
        .env("AISEKI_TOKEN", delivery.receipt.token.to_string())
        .stdin(Stdio::piped())
        // A group of its own: the terminal's Ctrl-C is for the worker, which lets commands end.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let mut running = Running { child, group };
    let input = running.child.stdin.take();
    let feed = async move {
        if let Some(mut input) = input {
            // A command that does not read its input is as good as one that does.
            let _ = input.write_all(&delivery.payload).await;
            let _ = input.shutdown().await;
        }
    };
    let (status, ()) = tokio::join!(running.child.wait(), feed);
    // It has ended by itself, and what it left running in its group is its own affair.
    running.group = None;
    status
}
