//! How much a server can do: every connection asks again as soon as it is answered.

use std::time::Duration;

use anyhow::bail;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::crowd::{self, join};
use super::process;
use super::wire::Wire;
use crate::commands::server_url::ServerUrl;

/// Sessions for finding out how many will be needed.
const TRIAL: usize = 20_000;
const TRIAL_TIME: Duration = Duration::from_secs(1);

/// Servers that share their queues, and the processes whose time on the cores is theirs.
pub(super) struct Measured<'a> {
    pub(super) urls: &'a [ServerUrl],
    pub(super) pids: &'a [u32],
}

impl Measured<'_> {
    fn cpu(&self) -> Option<Duration> {
        process::cpu_of(self.pids)
    }
}

/// What was done in a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Throughput {
    pub(super) per_second: f64,
    /// The server's time on the cores for each, in microseconds. Unlike the rate it says the same
    /// when others use the cores too.
    pub(super) cpu_micros_each: Option<f64>,
}

/// Joins as fast as they are answered, each of a new person, two by two into rooms.
pub(super) async fn joins(
    server: &Measured<'_>,
    topics: &[i64],
    connections: usize,
    time: Duration,
) -> anyhow::Result<Throughput> {
    let trial = crowd::sessions(&server.urls[0], TRIAL).await?;
    let warm = run(server, topics, connections, TRIAL_TIME, Some(trial)).await?;
    let needed = warm.per_second * 1.5 * time.as_secs_f64();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
    let tokens = crowd::sessions(&server.urls[0], needed as usize + connections * 2).await?;
    run(server, topics, connections, time, Some(tokens)).await
}

/// The same bytes, sent to a handler that does nothing.
pub(super) async fn nothing(
    server: &Measured<'_>,
    connections: usize,
    time: Duration,
) -> anyhow::Result<Throughput> {
    run(server, &[1], connections, TRIAL_TIME / 2, None).await?;
    run(server, &[1], connections, time, None).await
}

async fn run(
    server: &Measured<'_>,
    topics: &[i64],
    connections: usize,
    time: Duration,
    tokens: Option<Vec<String>>,
) -> anyhow::Result<Throughput> {
    let mut shares = vec![Vec::new(); connections];
    for (i, token) in tokens.iter().flatten().enumerate() {
        // Two at a time: somebody left over would sit down with whoever is measured next.
        shares[i / 2 % connections].push(token.clone());
    }
    let endless = tokens.is_none();
    let before = server.cpu();
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for (i, share) in shares.into_iter().enumerate() {
        let url = server.urls[i % server.urls.len()].clone();
        let topic = topics[i % topics.len()];
        tasks.spawn(async move {
            let mut wire = Wire::connect(&url).await?;
            let same = join(&url, &"x".repeat(88), topic, 2);
            let mut tokens = share.iter();
            let mut done = 0_u32;
            // A pair is completed, so that every join ends in a seat.
            while begun.elapsed() < time || (done % 2 == 1 && !endless) {
                let reply = if endless {
                    wire.ask(&same).await?
                } else {
                    let Some(token) = tokens.next() else { break };
                    wire.ask(&join(&url, token, topic, 2)).await?
                };
                if !matches!(reply.status, 200 | 202) {
                    let body = String::from_utf8_lossy(reply.body).into_owned();
                    bail!("{url} answered {} to a join: {body}", reply.status);
                }
                done += 1;
            }
            Ok(done)
        });
    }
    let mut operations = 0_u32;
    while let Some(done) = tasks.join_next().await {
        operations += done??;
    }
    let per_second = f64::from(operations) / begun.elapsed().as_secs_f64();
    let used = server.cpu().zip(before).map(|(after, before)| after.saturating_sub(before));
    let each = used.map(|used| used.as_secs_f64() * 1e6 / f64::from(operations.max(1)));
    Ok(Throughput { per_second, cpu_micros_each: each })
}
