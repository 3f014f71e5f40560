//! The people of a measurement: sessions and topics, made before the clock runs.

use std::sync::Arc;

use anyhow::{Context as _, bail};

use super::wire::{Wire, request};
use crate::commands::server_url::ServerUrl;

/// Connections over which sessions are made.
const CONNECTIONS: usize = 32;

/// Makes so many sessions. The server's rate limits have to be off.
pub(super) async fn sessions(url: &ServerUrl, count: usize) -> anyhow::Result<Vec<String>> {
    let ask = Arc::new(request(url, "POST", "/api/session", None, ""));
    let mut tasks = tokio::task::JoinSet::new();
    for i in 0..CONNECTIONS {
        let share = count / CONNECTIONS + usize::from(i < count % CONNECTIONS);
        let (url, ask) = (url.clone(), Arc::clone(&ask));
        tasks.spawn(async move {
            let mut wire = Wire::connect(&url).await.with_context(|| url.to_string())?;
            let mut tokens = Vec::with_capacity(share);
            for _ in 0..share {
                let reply = wire.ask(&ask).await?;
                match reply.status {
                    201 => tokens.push(token(reply.body).context("a session without a token")?),
                    429 => bail!("{url} limits sessions: start it with --rate-limit off"),
                    status => bail!("{url} answered {status} to POST /api/session"),
                }
            }
            Ok(tokens)
        });
    }
    let mut all = Vec::with_capacity(count);
    while let Some(tokens) = tasks.join_next().await {
        all.extend(tokens??);
    }
    Ok(all)
}

fn token(body: &[u8]) -> Option<String> {
    let body = std::str::from_utf8(body).ok()?;
    let (_, rest) = body.split_once("\"token\":\"")?;
    rest.split_once('"').map(|(token, _)| token.to_owned())
}

/// The ids of the topics that a server offers.
pub(super) async fn topics(url: &ServerUrl) -> anyhow::Result<Vec<i64>> {
    let topics = list(url).await?;
    let ids: Vec<i64> = topics.iter().filter_map(|topic| topic["id"].as_i64()).collect();
    if ids.is_empty() {
        bail!("{url} has no active topics");
    }
    Ok(ids)
}

/// How many people wait at a server.
pub(super) async fn waiting(url: &ServerUrl) -> anyhow::Result<u64> {
    let topics = list(url).await?;
    let counts = topics.iter().filter_map(|topic| topic["waiting"].as_object());
    Ok(counts.flat_map(|counts| counts.values()).filter_map(serde_json::Value::as_u64).sum())
}

async fn list(url: &ServerUrl) -> anyhow::Result<Vec<serde_json::Value>> {
    let mut wire = Wire::connect(url).await.with_context(|| url.to_string())?;
    let reply = wire.ask(&request(url, "GET", "/api/topics", None, "")).await?;
    let mut body: serde_json::Value = serde_json::from_slice(reply.body)?;
    Ok(serde_json::from_value(body["topics"].take())?)
}

/// The bytes of a join.
pub(super) fn join(url: &ServerUrl, token: &str, topic: i64, room_type: u8) -> Vec<u8> {
    let body = format!("{{\"topic_id\":{topic},\"room_type\":{room_type}}}");
    request(url, "POST", "/api/matching", Some(token), &body)
}
