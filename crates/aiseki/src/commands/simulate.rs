//! `aiseki simulate`: simulated people over real HTTP, and whether everything held.

mod chance;
mod history;
mod judge;
mod person;
mod phone;
mod report;
mod stage;

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use hyper::Method;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use self::chance::Chance;
use self::history::History;
use self::judge::World;
use self::person::Person;
use self::phone::Phone;
use self::stage::{Counts, Pace, Stage};
use super::child::Temporary;
use super::server_url::ServerUrl;
use super::{Exit, Failure, child, output};
use crate::clock::Stopwatch;
use crate::config::Environment;
use crate::duration;

/// How often the display is drawn anew, and how often a line says the same without a terminal.
const DRAWN: Duration = Duration::from_millis(200);
const LINE_EVERY: Duration = Duration::from_secs(5);
/// Waits of the server of our own: short, so that every way in which a wait can end is seen.
const FALLBACK: &str = "2s";
const WAIT: Duration = Duration::from_secs(6);
const PRESENCE: &str = "3s";
/// For so long people are asked how it stands after the run, on a server that others use.
const AFTERWARDS: Duration = Duration::from_secs(8);

/// Let simulated people wait, meet, vanish and come back, and check that everything holds
#[derive(Args)]
#[command(after_help = "\
Without --server it starts a server by itself, in a directory that is removed afterwards: rate limits off, \
fallback after 2 s, waits of 6 s. With --server the topics there are used, the server's limits are respected \
(its Retry-After), and people leave at the end. Several servers, with commas between, have to share a store; \
people move between them.\n\n\
The seed decides what people do; the network decides the rest.\n\n\
Exit codes: 0 every invariant held, 1 one was broken or something failed, 2 wrong usage.")]
pub(super) struct Simulate {
    /// How many people
    #[arg(long, value_name = "NUMBER", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    people: u32,

    /// How many topics they choose from
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    topics: u16,

    /// For how long
    #[arg(long = "for", value_name = "DURATION", default_value = "30s", value_parser = run_time)]
    run_time: Duration,

    /// Servers to use instead of one of our own
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    server: Vec<String>,

    /// What people do is decided by it [default: another one each time]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

fn run_time(text: &str) -> Result<Duration, duration::DurationError> {
    duration::parse(text, duration::SECOND..=duration::DAY).map(Duration::from_millis)
}

impl Simulate {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let servers: Vec<ServerUrl> = self
            .server
            .iter()
            .map(|url| ServerUrl::find(Some(url), environment))
            .collect::<Result<_, _>>()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the runtime does not start")?;
        let seed = self.seed.unwrap_or_else(random_seed);
        let json = self.json;
        let result = runtime.block_on(self.simulate(servers, seed))?;
        output::print(&if json { result.as_json()? } else { result.as_text() })?;
        match result.violations.len() {
            0 => Ok(()),
            broken => Err(Failure::new(
                Exit::Failed,
                format_args!("{broken} violations of what has to hold (seed {seed})"),
            )),
        }
    }

    async fn simulate(self, servers: Vec<ServerUrl>, seed: u64) -> anyhow::Result<report::Report> {
        if !servers.is_empty() {
            let pace = Pace {
                poll: None,
                vanish: Duration::from_secs(20),
                rest: Duration::from_secs(4),
                long_poll: 25,
            };
            let (topics, room_types) = offered(&servers[0], usize::from(self.topics)).await?;
            let stage = self.stage(servers, topics, room_types, pace);
            return Ok(self.play(stage, seed, AFTERWARDS, false).await);
        }
        let directory = Temporary::new()?;
        let wait = duration::Shown(u64::try_from(WAIT.as_millis())?).to_string();
        let flags =
            ["--fallback-after", FALLBACK, "--wait-timeout", &wait, "--presence-timeout", PRESENCE];
        let server = child::serve(&directory, usize::from(self.topics), &flags).await?;
        let pace = Pace {
            poll: Some(Duration::from_millis(400)),
            vanish: Duration::from_secs(5),
            rest: Duration::from_millis(1_500),
            long_poll: 3,
        };
        let (topics, room_types) = offered(&server.url, usize::from(self.topics)).await?;
        let stage = self.stage(vec![server.url.clone()], topics, room_types, pace);
        let report = self.play(stage, seed, WAIT + Duration::from_secs(4), true).await;
        server.stop().await;
        Ok(report)
    }

    fn stage(
        &self,
        servers: Vec<ServerUrl>,
        topics: Vec<i64>,
        room_types: Vec<u8>,
        pace: Pace,
    ) -> Arc<Stage> {
        Arc::new(Stage {
            servers,
            topics,
            room_types,
            clock: Stopwatch::start(),
            until: self.run_time,
            broken_off: AtomicBool::new(false),
            pace,
            counts: Counts::default(),
        })
    }

    async fn play(
        &self,
        stage: Arc<Stage>,
        seed: u64,
        afterwards: Duration,
        closed: bool,
    ) -> report::Report {
        let lives: Vec<_> = (0..self.people as usize)
            .map(|number| {
                let mut person = Person::new(Arc::clone(&stage), Chance::new(seed, number));
                tokio::spawn(async move {
                    person.live().await;
                    person
                })
            })
            .collect();
        let mut people = Vec::with_capacity(lives.len());
        let all = async {
            for life in lives {
                people.extend(life.await);
            }
        };
        tokio::select! {
            () = all => {}
            () = show(&stage) => {}
        }
        let quiet_from = u64::try_from(stage.clock.elapsed().as_micros()).unwrap_or(u64::MAX);
        let (people, settled_after) = settle(people, afterwards).await;
        let surprises: Vec<String> =
            people.iter().flat_map(|person| person.surprises.clone()).collect();
        let histories: Vec<History> = people.into_iter().map(|person| person.history).collect();
        let case = judge::judge(&histories, World { closed, quiet_from });
        report::Report::new(&case, &stage, &surprises, seed, settled_after)
    }
}

/// Asks everybody how it stands until nobody waits any more or the time is over, looks at all rooms,
/// and leaves.
async fn settle(people: Vec<Person>, at_most: Duration) -> (Vec<Person>, Duration) {
    let watch = Stopwatch::start();
    let settling = people.into_iter().map(|mut person| {
        tokio::spawn(async move {
            while !person.ask().await && watch.elapsed() < at_most {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            person
        })
    });
    let people = join_all(settling.collect()).await;
    let settled_after = watch.elapsed();
    // Once nobody changes anything, the rooms are looked at, and only then are they left.
    let looking = people.into_iter().map(|mut person| {
        tokio::spawn(async move {
            person.look_back().await;
            person
        })
    });
    let people = join_all(looking.collect()).await;
    let leaving = people.into_iter().map(|mut person| {
        tokio::spawn(async move {
            person.go_home().await;
            person
        })
    });
    (join_all(leaving.collect()).await, settled_after)
}

async fn join_all(tasks: Vec<tokio::task::JoinHandle<Person>>) -> Vec<Person> {
    let mut people = Vec::with_capacity(tasks.len());
    for task in tasks {
        people.extend(task.await);
    }
    people
}

/// Draws what happens until the end of time; ends never. Ctrl-C ends the run early, with a report.
async fn show(stage: &Stage) {
    let length = u64::try_from(stage.until.as_millis()).unwrap_or(u64::MAX);
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
        bar.set_style(style);
    }
    let terminal = std::io::stderr().is_terminal();
    let mut interval = tokio::time::interval(if terminal { DRAWN } else { LINE_EVERY });
    loop {
        tokio::select! {
            _ = interval.tick() => {}
            _ = tokio::signal::ctrl_c() => stage.broken_off.store(true, Ordering::Relaxed),
        }
        let elapsed = stage.clock.elapsed();
        let line = report::line(stage);
        if terminal {
            bar.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(length));
            bar.set_message(line);
        } else {
            let _ = writeln!(std::io::stderr().lock(), "{:>4} s  {line}", elapsed.as_secs());
        }
    }
}

/// The topics and room types that a server offers.
async fn offered(server: &ServerUrl, at_most: usize) -> anyhow::Result<(Vec<i64>, Vec<u8>)> {
    let mut phone = Phone::new(server.clone());
    let answer = phone
        .ask(Method::GET, "/api/topics", None, Duration::ZERO)
        .await
        .map_err(|_| anyhow::anyhow!("no server answers at {server}"))?;
    let topics = answer.body["topics"].as_array().cloned().unwrap_or_default();
    let Some(first) = topics.first() else {
        bail!("{server} has no active topics (it answered {})", answer.status);
    };
    let room_types = first["waiting"].as_object().into_iter().flat_map(|types| types.keys());
    let room_types: Vec<u8> = room_types.filter_map(|size| size.parse().ok()).collect();
    let ids: Vec<i64> =
        topics.iter().filter_map(|topic: &Value| topic["id"].as_i64()).take(at_most).collect();
    if room_types.is_empty() || ids.is_empty() {
        bail!("{server} does not say which rooms it has");
    }
    Ok((ids, room_types))
}

fn random_seed() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    // Short enough to be typed again.
    u64::from_ne_bytes(bytes) % 1_000_000_000
}
