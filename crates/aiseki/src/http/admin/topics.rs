//! Topics, for operators.

use std::collections::BTreeMap;

use aiseki_lobby::TopicId;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::number;
use crate::http::Shared;
use crate::http::error::{Code, Problem, to_the_end};
use crate::http::extract::{Json, Named, Operator};
use crate::http::topics::Waiting;
use crate::topics::{Title, Topic};

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct TopicList {
    topics: Vec<ListedTopic>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ListedTopic {
    id: i64,
    title: String,
    active: bool,
    /// How many people wait, by room type.
    #[schema(value_type = BTreeMap<String, usize>)]
    waiting: BTreeMap<u8, usize>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct TopicBody {
    id: i64,
    title: String,
    active: bool,
}

impl From<Topic> for TopicBody {
    fn from(topic: Topic) -> Self {
        let Topic { id, title, active } = topic;
        Self { id: id.0, title: title.as_str().to_owned(), active }
    }
}

#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewTopic {
    /// 1 to 200 characters, no control characters; kept exactly.
    #[schema(min_length = 1, max_length = 200)]
    title: String,
    /// Whether people can wait for it; true if it is left out.
    active: Option<bool>,
}

#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct TopicChange {
    /// Unchanged if it is left out.
    title: Option<String>,
    /// Unchanged if it is left out.
    active: Option<bool>,
}

/// All topics
#[utoipa::path(
    get, path = "/admin/topics", tag = "operators", security(("admin" = [])),
    responses(
        (status = 200, description = "All topics", body = TopicList),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`: the server has no admin token", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::http) async fn list_topics(
    _: Operator,
    State(services): Shared,
) -> Result<axum::Json<TopicList>, Problem> {
    let waiting = Waiting::count(&services).await?;
    let topics = services.topics.all().into_iter().map(|topic| {
        let Topic { id, title, active } = topic;
        let title = title.as_str().to_owned();
        ListedTopic { id: id.0, title, active, waiting: waiting.of(id) }
    });
    Ok(axum::Json(TopicList { topics: topics.collect() }))
}

/// Add a topic
#[utoipa::path(
    post, path = "/admin/topics", tag = "operators", security(("admin" = [])),
    request_body = NewTopic,
    responses(
        (status = 201, description = "Added", body = TopicBody),
        (status = 400, description = "`invalid_body` or `invalid_title`", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`: the server has no admin token", body = Problem, content_type = "application/problem+json"),
        (status = 408, description = "`request_timeout`", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "`body_too_large`", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "`unsupported_media_type`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::http) async fn add_topic(
    _: Operator,
    State(services): Shared,
    Json(body): Json<NewTopic>,
) -> Result<(StatusCode, axum::Json<TopicBody>), Problem> {
    let title = title(body.title)?;
    let active = body.active.unwrap_or(true);
    let topic = to_the_end(async move { services.topics.add(title, active).await }).await??;
    Ok((StatusCode::CREATED, axum::Json(topic.into())))
}

/// Change a topic
///
/// Switched off, it loses the people who wait for it: they are idle (`topic_closed`).
#[utoipa::path(
    put, path = "/admin/topics/{id}", tag = "operators", security(("admin" = [])),
    params(("id" = i64, Path)),
    request_body = TopicChange,
    responses(
        (status = 200, description = "Changed", body = TopicBody),
        (status = 400, description = "`invalid_body` or `invalid_title`", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        (status = 408, description = "`request_timeout`", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "`body_too_large`", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "`unsupported_media_type`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::http) async fn change_topic(
    _: Operator,
    State(services): Shared,
    Named(id): Named,
    Json(body): Json<TopicChange>,
) -> Result<axum::Json<TopicBody>, Problem> {
    let id = TopicId(number(&id)?);
    let title = body.title.map(title).transpose()?;
    let operators = services.operators.clone();
    let topic =
        to_the_end(async move { operators.change_topic(id, title, body.active).await }).await??;
    let topic = topic.ok_or_else(|| Problem::new(Code::NotFound))?;
    Ok(axum::Json(topic.into()))
}

fn title(text: String) -> Result<Title, Problem> {
    Title::try_from(text)
        .map_err(|error| Problem::new(Code::InvalidTitle).with_detail(error.to_string()))
}
