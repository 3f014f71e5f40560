//! How much a server can do: every connection asks again as soon as it is answered.

use std::time::Duration;

use anyhow::bail;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::crowd::{self, join};
use super::wire::Wire;
use crate::commands::server_url::ServerUrl;

/// Sessions for finding out how many will be needed.
const TRIAL: usize = 20_000;
const TRIAL_TIME: Duration = Duration::from_secs(1);

/// Joins as fast as they are answered, each of a new person, two by two into rooms.
pub(super) async fn joins(
    url: &ServerUrl,
    topics: &[i64],
    connections: usize,
    time: Duration,
) -> anyhow::Result<f64> {
    let trial = crowd::sessions(url, TRIAL).await?;
    let warm = run(url, topics, connections, TRIAL_TIME, Some(trial)).await?;
    let needed = warm * 1.5 * time.as_secs_f64();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
    let tokens = crowd::sessions(url, needed as usize + connections * 2).await?;
    run(url, topics, connections, time, Some(tokens)).await
}

/// The same bytes, sent to a handler that does nothing.
pub(super) async fn nothing(
    url: &ServerUrl,
    connections: usize,
    time: Duration,
) -> anyhow::Result<f64> {
    run(url, &[1], connections, TRIAL_TIME / 2, None).await?;
    run(url, &[1], connections, time, None).await
}

async fn run(
    url: &ServerUrl,
    topics: &[i64],
    connections: usize,
    time: Duration,
    tokens: Option<Vec<String>>,
) -> anyhow::Result<f64> {
    let mut shares = vec![Vec::new(); connections];
    for (i, token) in tokens.iter().flatten().enumerate() {
        shares[i % connections].push(token.clone());
    }
    let endless = tokens.is_none();
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for (i, share) in shares.into_iter().enumerate() {
        let (url, topic) = (url.clone(), topics[i % topics.len()]);
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
    Ok(per_second)
}
