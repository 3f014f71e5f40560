//! Operations: health, readiness, metrics and the description of the interface.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::Server;

use super::Shared;

#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    status: &'static str,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Readiness {
    /// `ready`, `degraded` (people wait and are not seated for now), `draining` or `unavailable`.
    status: &'static str,
    /// Each thing that was looked at.
    checks: BTreeMap<&'static str, &'static str>,
}

/// Whether the process lives
#[utoipa::path(
    get, path = "/healthz", tag = "operations",
    responses((status = 200, description = "It does", body = Health))
)]
pub(super) async fn healthz() -> axum::Json<Health> {
    axum::Json(Health { status: "ok" })
}

/// Whether people can be seated here
///
/// For load balancers: 503 while the store is away, and while the server ends.
#[utoipa::path(
    get, path = "/readyz", tag = "operations",
    responses(
        (status = 200, description = "They can", body = Readiness),
        (status = 503, description = "They cannot", body = Readiness),
    )
)]
pub(super) async fn readyz(State(services): Shared) -> (StatusCode, axum::Json<Readiness>) {
    let available = services.matching.available();
    let draining = services.draining.is_cancelled();
    let degraded = services.matching.degraded();
    let status = match (draining, available) {
        (true, _) => "draining",
        (false, false) => "unavailable",
        (false, true) if degraded => "degraded",
        (false, true) => "ready",
    };
    let code = match status {
        "ready" | "degraded" => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    let word = |there: bool| if there { "ok" } else { "away" };
    let checks = BTreeMap::from([("store", word(available)), ("records", word(!degraded))]);
    (code, axum::Json(Readiness { status, checks }))
}

/// Nothing can be asked yet.
pub(super) async fn starting() -> (StatusCode, axum::Json<Readiness>) {
    let checks = BTreeMap::from([("store", "away"), ("records", "away")]);
    (StatusCode::SERVICE_UNAVAILABLE, axum::Json(Readiness { status: "unavailable", checks }))
}

/// What is counted
#[utoipa::path(
    get, path = "/metrics", tag = "operations",
    responses((status = 200, description = "OpenMetrics", body = String, content_type = "application/openmetrics-text"))
)]
pub(super) async fn metrics(State(services): Shared) -> impl IntoResponse {
    let metrics = &services.metrics;
    metrics.set_store_available(services.matching.available());
    // With the store away the last figures stand.
    if let Ok(queues) = services.matching.queues().await {
        let now = services.matching.now();
        for room_type in &services.outside.room_types {
            let queues = queues.iter().filter(|queue| queue.queue.room_type == *room_type);
            let people = queues.clone().map(|queue| queue.waiting).sum();
            let oldest = queues.map(|queue| queue.oldest_since).min().unwrap_or(now);
            let oldest = Duration::from_millis(now.saturating_sub(oldest));
            metrics.set_waiting(*room_type, people, oldest);
        }
    }
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], metrics.encode())
}

/// This description
#[utoipa::path(
    get, path = "/openapi.json", tag = "operations",
    responses((status = 200, description = "OpenAPI 3.1", body = Object))
)]
pub(super) async fn openapi(State(services): Shared) -> impl IntoResponse {
    let mut description = super::openapi();
    if services.outside.base_path != "/" {
        description.servers = Some(vec![Server::new(services.outside.base_path.clone())]);
    }
    axum::Json(description)
}
