//! How long a server takes at a given rate: requests are due at fixed times, whether or not those
//! before them have been answered, and each one's latency counts from when it was due. A server that
//! stops for a second is thus charged with every request that would have come in that second.

use std::collections::HashMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use hdrhistogram::Histogram;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::crowd::join;
use super::wire::{Wire, request};
use crate::commands::server_url::ServerUrl;

/// The longest latency that is told from others, in microseconds.
const LONGEST: u64 = 60_000_000;
/// What is not answered by then has failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// So long before its pair is due, the first person joins and begins to wait.
const AHEAD: Duration = Duration::from_millis(100);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scenario {
    /// The same bytes as a join, to a handler that does nothing.
    Empty,
    /// A join: the first of a pair waits, the second completes the room.
    Joins,
    /// A poll of somebody who waits.
    Polls,
    /// Completing a room until both people know, the other one by a long poll.
    LongPolls,
    /// The same, the other one by a stream of events.
    Streams,
}

impl Scenario {
    pub(super) const SERVED: [Self; 4] = [Self::Joins, Self::Polls, Self::LongPolls, Self::Streams];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty handler",
            Self::Joins => "join",
            Self::Polls => "poll",
            Self::LongPolls => "pair, long poll",
            Self::Streams => "pair, stream",
        }
    }

    /// Joins that one of its steps is made of.
    pub(super) fn joins(self) -> usize {
        match self {
            Self::Joins => 1,
            Self::LongPolls | Self::Streams => 2,
            Self::Empty | Self::Polls => 0,
        }
    }
}

/// A measurement to be made.
pub(super) struct Plan {
    pub(super) scenario: Scenario,
    /// Servers that share their queues: the two people of a pair are at different ones.
    pub(super) urls: Vec<ServerUrl>,
    pub(super) topics: Vec<i64>,
    /// Steps in a second.
    pub(super) rate: f64,
    pub(super) warm_up: Duration,
    pub(super) time: Duration,
    /// As many as [`Plan::sessions`] says.
    pub(super) tokens: Vec<String>,
}

/// What came of it.
pub(super) struct Latencies {
    pub(super) histogram: Histogram<u64>,
    pub(super) failed: u64,
}

impl Plan {
    fn steps(&self, time: Duration) -> usize {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let steps = (self.rate * time.as_secs_f64()) as usize;
        // Whole pairs.
        steps.next_multiple_of(2)
    }

    /// How many people it takes.
    pub(super) fn sessions(&self) -> usize {
        let steps = self.steps(self.warm_up) + self.steps(self.time);
        match self.scenario {
            Scenario::Empty => 1,
            Scenario::Polls => self.topics.len().min(256),
            other => steps * other.joins(),
        }
    }

    /// Measures.
    pub(super) async fn run(self) -> anyhow::Result<Latencies> {
        let warm_up = self.steps(self.warm_up);
        let steps = warm_up + self.steps(self.time);
        let interval = Duration::from_secs_f64(1.0 / self.rate);
        let runner = Arc::new(Runner {
            warm_up,
            idle: Mutex::new(self.urls.iter().map(|_| Vec::new()).collect()),
            told: Mutex::default(),
            latencies: Mutex::new(Latencies {
                histogram: Histogram::new_with_bounds(1, LONGEST, 3)?,
                failed: 0,
            }),
            plan: self,
        });
        runner.prepare().await?;
        let (stop, stopped) = channel::<()>();
        let (due, mut dues) = mpsc::unbounded_channel();
        let begun = Instant::now() + AHEAD + Duration::from_millis(50);
        // The timers of the runtime have a grain of a millisecond, which would be measured too: a
        // thread of its own keeps the time.
        let pacer = std::thread::spawn(move || {
            for step in 0..steps {
                let at = begun + interval.mul_f64(f64::from(u32::try_from(step).unwrap_or(0)));
                let pause = at.saturating_duration_since(Instant::now());
                if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                if due.send((step, at)).is_err() {
                    return;
                }
            }
        });
        let mut tasks = tokio::task::JoinSet::new();
        if runner.plan.scenario.joins() == 2 {
            for step in 0..runner.ahead().min(steps) {
                tasks.spawn(Arc::clone(&runner).begin_waiting(step));
            }
        }
        while let Some((step, at)) = dues.recv().await {
            let ahead = step + runner.ahead();
            if runner.plan.scenario.joins() == 2 && ahead < steps {
                tasks.spawn(Arc::clone(&runner).begin_waiting(ahead));
            }
            tasks.spawn(Arc::clone(&runner).step(step, at));
            while tasks.try_join_next().is_some() {}
        }
        while tasks.join_next().await.is_some() {}
        drop(stop);
        let _ = pacer.join();
        let runner = Arc::into_inner(runner).context("every step has ended")?;
        Ok(runner.latencies.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Runner {
    plan: Plan,
    warm_up: usize,
    /// Connections that nobody uses, by server.
    idle: Mutex<Vec<Vec<Wire>>>,
    /// For each pair under way, when the one who waits is told.
    told: Mutex<HashMap<usize, oneshot::Receiver<Instant>>>,
    latencies: Mutex<Latencies>,
}

impl Runner {
    fn ahead(&self) -> usize {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let steps = (AHEAD.as_secs_f64() * self.plan.rate).ceil() as usize;
        steps
    }

    /// People who wait, for those who only poll.
    async fn prepare(&self) -> anyhow::Result<()> {
        if self.plan.scenario != Scenario::Polls {
            return Ok(());
        }
        let url = &self.plan.urls[0];
        let mut wire = Wire::connect(url).await?;
        for (token, topic) in self.plan.tokens.iter().zip(&self.plan.topics) {
            let reply = wire.ask(&join(url, token, *topic, 3)).await?;
            if reply.status != 202 {
                bail!("{url} answered {} to a join", reply.status);
            }
        }
        Ok(())
    }

    async fn connection(&self, server: usize) -> std::io::Result<Wire> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner)[server].pop();
        match idle {
            Some(wire) => Ok(wire),
            None => Wire::connect(&self.plan.urls[server]).await,
        }
    }

    fn give_back(&self, server: usize, wire: Wire) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)[server].push(wire);
    }

    async fn step(self: Arc<Self>, step: usize, due: Instant) {
        let answered = match timeout(PATIENCE, self.act(step)).await {
            Ok(Ok(answered)) => Some(answered),
            Ok(Err(_)) | Err(_) => None,
        };
        if step < self.warm_up {
            return;
        }
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        match answered {
            Some(answered) => {
                let micros = answered.saturating_duration_since(due).as_micros();
                let micros = u64::try_from(micros).unwrap_or(LONGEST).max(1);
                latencies.histogram.saturating_record(micros);
            }
            None => latencies.failed += 1,
        }
    }

    /// One step, and when it was over.
    async fn act(&self, step: usize) -> anyhow::Result<Instant> {
        let Plan { scenario, urls, topics, tokens, .. } = &self.plan;
        let server = (step + 1) % urls.len();
        let url = &urls[server];
        let (bytes, expected): (_, &[u16]) = match scenario {
            Scenario::Empty => (join(url, &"x".repeat(88), 1, 2), &[200]),
            Scenario::Joins => {
                (join(url, &tokens[step], topics[step / 2 % topics.len()], 2), &[200, 202])
            }
            Scenario::Polls => {
                let token = &tokens[step % tokens.len()];
                (request(url, "GET", "/api/matching", Some(token), ""), &[200])
            }
            Scenario::LongPolls | Scenario::Streams => {
                (join(url, &tokens[step * 2 + 1], topics[step % topics.len()], 2), &[200])
            }
        };
        let mut wire = self.connection(server).await?;
        let status = wire.ask(&bytes).await?.status;
        let mut answered = Instant::now();
        self.give_back(server, wire);
        if !expected.contains(&status) {
            bail!("answered {status}");
        }
        if scenario.joins() == 2 {
            let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(&step);
            let told = told.context("nobody waits")?.await?;
            answered = answered.max(told);
        }
        Ok(answered)
    }

    /// The first person of a pair joins and waits to be told.
    async fn begin_waiting(self: Arc<Self>, step: usize) {
        let (tell, told) = oneshot::channel();
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(step, told);
        if let Ok(Ok(at)) = timeout(PATIENCE, self.wait(step)).await {
            let _ = tell.send(at);
        }
    }

    async fn wait(&self, step: usize) -> anyhow::Result<Instant> {
        let Plan { scenario, urls, topics, tokens, .. } = &self.plan;
        let server = step % urls.len();
        let url = &urls[server];
        let token = &tokens[step * 2];
        let mut wire = self.connection(server).await?;
        let status = wire.ask(&join(url, token, topics[step % topics.len()], 2)).await?.status;
        if status != 202 {
            bail!("answered {status}");
        }
        if *scenario == Scenario::LongPolls {
            let bytes = request(url, "GET", "/api/matching?wait=55", Some(token), "");
            let status = wire.ask(&bytes).await?.status;
            let at = Instant::now();
            self.give_back(server, wire);
            if status != 200 {
                bail!("answered {status}");
            }
            return Ok(at);
        }
        let bytes = request(url, "GET", "/api/matching/events", Some(token), "");
        wire.send(&bytes).await?;
        wire.read_until(b"\"status\":\"matched\"").await?;
        Ok(Instant::now())
    }
}
