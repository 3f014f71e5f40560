//! Queues, for operators.

use aiseki_lobby::Millis;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::Shared;
use crate::http::error::Problem;
use crate::http::extract::Operator;
use crate::http::state::timestamp;

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct QueueList {
    queues: Vec<QueueBody>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct QueueBody {
    topic_id: i64,
    title: Option<String>,
    room_type: u8,
    waiting: usize,
    #[schema(format = DateTime)]
    oldest_waiting_since: String,
    oldest_wait_ms: Millis,
}

/// Who waits where
///
/// Every queue that has people.
#[utoipa::path(
    get, path = "/admin/queues", tag = "operators", security(("admin" = [])),
    responses(
        (status = 200, description = "Every queue that has people", body = QueueList),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`: the server has no admin token", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::http) async fn list_queues(
    _: Operator,
    State(services): Shared,
) -> Result<axum::Json<QueueList>, Problem> {
    let now = services.matching.now();
    let queues = services.matching.queues().await?.into_iter().map(|queue| QueueBody {
        topic_id: queue.queue.topic.0,
        title: services.topics.get(queue.queue.topic).map(|topic| topic.title.as_str().to_owned()),
        room_type: queue.queue.room_type,
        waiting: queue.waiting,
        oldest_waiting_since: timestamp(queue.oldest_since),
        oldest_wait_ms: now.saturating_sub(queue.oldest_since),
    });
    Ok(axum::Json(QueueList { queues: queues.collect() }))
}
