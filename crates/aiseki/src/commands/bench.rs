//! `aiseki bench`: how fast, beside a handler that does nothing in the same run.

mod closed;
mod crowd;
mod idle;
mod open;
mod plot;
mod process;
mod report;
mod wire;

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};

use self::closed::Measured;
use self::open::{Plan, Scenario};
use self::report::Report;
use super::child::{Served, Temporary};
use super::server_url::ServerUrl;
use super::{Failure, child, output};
use crate::config::Environment;
use crate::duration;

/// Topics of a server of our own.
const TOPICS: usize = 256;
/// People who only poll must not be seated by a fallback while others are measured.
const FLAGS: [&str; 2] = ["--fallback-after", "7d"];

/// Measure how fast people are seated, beside a handler that does nothing
#[derive(Args)]
#[command(after_help = "\
Without --server it starts a server by itself, as a process of its own in a directory that is removed \
afterwards. Every run also measures an empty handler of the same server, so that ratios hold on any machine. \
With two servers they are measured in turns, and compared, or as one with --together; their rate limits have to be off.\n\n\
Latencies are those of an open loop: requests are due at fixed times, and each counts from when it was due, \
so that a server that stops is charged for everything that would have come meanwhile. Throughput is that of a \
closed loop. bench/README.md says what the figures mean.\n\n\
Exit codes: 0 measured, 1 something failed, 2 wrong usage.")]
pub(super) struct Bench {
    /// Servers to measure instead of one of our own, with commas between
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    server: Vec<String>,

    /// The servers share their queues: measure them as one, the people of a pair at different ones
    #[arg(long, requires = "server")]
    together: bool,

    /// Processes of those servers, and of their stores, whose time on the cores counts
    #[arg(long, value_name = "PIDS", value_delimiter = ',', requires = "server")]
    pids: Vec<u32>,

    /// Joins (or polls) that are due in a second, for latencies
    #[arg(long, value_name = "NUMBER", default_value_t = 500, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    rate: u32,

    /// How long each latency is measured, in all rounds together
    #[arg(long = "for", value_name = "DURATION", default_value = "15s", value_parser = run_time)]
    run_time: Duration,

    /// What comes before it and does not count
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = run_time)]
    warm_up: Duration,

    /// How often everything is measured in turns
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// Connections of the closed loop
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4_096))]
    connections: u16,

    /// Hold so many long polls, and then streams, and say what they cost while nothing happens
    #[arg(long, value_name = "NUMBER", conflicts_with = "waiting")]
    idle: Option<u32>,

    /// Let so many people wait, and say what they cost: memory, the start, and joins beside them
    #[arg(long, value_name = "NUMBER", conflicts_with = "server")]
    waiting: Option<u32>,

    /// Print JSON, for programs
    #[arg(long)]
    json: bool,

    /// Draw the distributions of latency into an SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// The empty handler, as a server of its own
#[derive(Args)]
#[command(hide = true)]
pub(super) struct BenchEmpty {}

fn run_time(text: &str) -> Result<Duration, duration::DurationError> {
    duration::parse(text, duration::SECOND..=duration::HOUR).map(Duration::from_millis)
}

impl BenchEmpty {
    #[expect(clippy::unused_self, reason = "as every command")]
    pub(super) fn run(self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the runtime does not start")?;
        Ok(runtime.block_on(crate::app::serve_nothing())?)
    }
}

/// What is measured.
struct Target {
    name: String,
    /// Several when they share their queues and are measured together.
    urls: Vec<ServerUrl>,
    topics: Vec<i64>,
    /// The processes whose time on the cores counts, as far as they are known.
    pids: Vec<u32>,
}

impl Target {
    fn measured(&self) -> Measured<'_> {
        Measured { urls: &self.urls, pids: &self.pids }
    }
}

/// One series of latencies.
struct Series {
    target: String,
    scenario: Scenario,
    histogram: Histogram<u64>,
    failed: u64,
}

/// Requests in a second of a closed loop, one figure a round.
struct Rates {
    target: String,
    what: &'static str,
    per_second: Vec<f64>,
    cpu_micros_each: Vec<f64>,
}

impl Bench {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let servers: Vec<ServerUrl> = self
            .server
            .iter()
            .map(|url| ServerUrl::find(Some(url), environment))
            .collect::<Result<_, _>>()?;
        // One thread: the load must leave the cores to the server.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("the runtime does not start")?;
        let (json, plot) = (self.json, self.plot.clone());
        let report = runtime.block_on(async {
            tokio::select! {
                report = self.measure(servers) => report,
                _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("broken off")),
            }
        })?;
        if let Some(file) = plot {
            let write = std::fs::write(&file, report.as_svg());
            write.with_context(|| file.display().to_string())?;
        }
        output::print(&if json { report.as_json()? } else { report.as_text() })
    }

    async fn measure(&self, servers: Vec<ServerUrl>) -> anyhow::Result<Report> {
        let mut report = Report::new(self.rate, self.run_time, self.rounds, self.connections);
        if let Some(count) = self.idle {
            let progress = Progress::new(2);
            for streams in [false, true] {
                progress.next(if streams { "streams" } else { "long polls" });
                let held = if servers.is_empty() {
                    idle::hold_own(count as usize, streams).await?
                } else {
                    idle::hold(&servers, &self.pids, count as usize, streams).await?
                };
                report.idle.push(held);
            }
            return Ok(report);
        }
        if let Some(people) = self.waiting {
            let people = [0, 1_000, people as usize];
            let progress = Progress::new(people.len() as u64);
            for people in people {
                progress.next(&format!("{people} people wait"));
                let time = self.run_time / self.rounds;
                let waiting = idle::wait(people, usize::from(self.connections), time).await?;
                report.waiting.push(waiting);
            }
            return Ok(report);
        }
        let directory = Temporary::new()?;
        let empty = child::start(directory.path(), &["bench-empty"]).await?;
        let own = if servers.is_empty() {
            Some(child::serve(&directory, TOPICS, &FLAGS).await?)
        } else {
            None
        };
        let targets = self.targets(servers, own.as_ref()).await?;
        self.rounds(&targets, &empty, &mut report).await?;
        empty.stop().await;
        if let Some(own) = own {
            own.stop().await;
        }
        Ok(report)
    }

    async fn targets(
        &self,
        servers: Vec<ServerUrl>,
        own: Option<&Served>,
    ) -> anyhow::Result<Vec<Target>> {
        if let Some(own) = own {
            let topics = crowd::topics(&own.url).await?;
            let (urls, pids) = (vec![own.url.clone()], vec![own.pid]);
            return Ok(vec![Target { name: "aiseki".into(), urls, topics, pids }]);
        }
        let groups: Vec<Vec<ServerUrl>> = if self.together {
            vec![servers]
        } else {
            servers.into_iter().map(|url| vec![url]).collect()
        };
        let mut targets = Vec::new();
        for urls in groups {
            let topics = crowd::topics(&urls[0]).await?;
            let names: Vec<String> = urls.iter().map(ToString::to_string).collect();
            let pids = self.pids.clone();
            targets.push(Target { name: names.join(" and "), urls, topics, pids });
        }
        Ok(targets)
    }

    async fn rounds(
        &self,
        targets: &[Target],
        empty: &Served,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let connections = usize::from(self.connections);
        let time = self.run_time / self.rounds;
        let due = f64::from(self.rate);
        let each = Scenario::SERVED.len() + 1;
        let steps = (self.rounds as usize) * (targets.len() * each + 2);
        let progress = Progress::new(steps as u64);
        let nobody = Target {
            name: "empty handler".into(),
            urls: vec![empty.url.clone()],
            topics: vec![1],
            pids: vec![empty.pid],
        };
        for _ in 0..self.rounds {
            progress.next("empty handler, as fast as it can");
            let nothing = closed::nothing(&nobody.measured(), connections, time).await?;
            report.add_throughput(&nobody.name, "requests", nothing);
            for target in targets {
                progress.next(&format!("joins as fast as {} can", target.name));
                let measured = target.measured();
                let joins = closed::joins(&measured, &target.topics, connections, time).await?;
                report.add_throughput(&target.name, "joins", joins);
            }
            progress.next("empty handler");
            self.latencies(&nobody, Scenario::Empty, due, time, report).await?;
            for scenario in Scenario::SERVED {
                for target in targets {
                    progress.next(&format!("{} at {}", scenario.name(), target.name));
                    // The rate is one of joins, and a pair has two of them.
                    let steps = due / f64::from(u8::try_from(scenario.joins().max(1))?);
                    self.latencies(target, scenario, steps, time, report).await?;
                }
            }
        }
        Ok(())
    }

    async fn latencies(
        &self,
        target: &Target,
        scenario: Scenario,
        rate: f64,
        time: Duration,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let mut plan = Plan {
            scenario,
            urls: target.urls.clone(),
            topics: target.topics.clone(),
            rate,
            warm_up: self.warm_up,
            time,
            tokens: Vec::new(),
        };
        if scenario != Scenario::Empty {
            plan.tokens = crowd::sessions(&target.urls[0], plan.sessions()).await?;
        }
        let latencies = plan.run().await?;
        report.add_latencies(&target.name, scenario, latencies)
    }
}

/// What is being measured now: a bar on a terminal, lines elsewhere.
struct Progress {
    bar: ProgressBar,
    terminal: bool,
}

impl Progress {
    fn new(steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        Self { bar, terminal: std::io::stderr().is_terminal() }
    }

    fn next(&self, what: &str) {
        self.bar.inc(1);
        if self.terminal {
            self.bar.set_message(what.to_owned());
        } else {
            let (at, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
            let _ = writeln!(std::io::stderr().lock(), "{at:>3}/{all}  {what}");
        }
    }
}
