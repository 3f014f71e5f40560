//! `GET /api/topics`.

use std::collections::{BTreeMap, HashMap};

use aiseki_lobby::{Queue, TopicId};
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::error::Problem;
use super::{Services, Shared};
use crate::topics::Topic;

/// Topics and who waits for them.
#[derive(Serialize, ToSchema)]
pub(super) struct TopicsBody {
    topics: Vec<OpenTopic>,
}

/// A topic that people can wait for.
#[derive(Serialize, ToSchema)]
pub(super) struct OpenTopic {
    id: i64,
    title: String,
    /// How many people wait, by room type.
    #[schema(value_type = BTreeMap<String, usize>)]
    waiting: BTreeMap<u8, usize>,
}

/// What there is to talk about
///
/// The active topics.
#[utoipa::path(
    get, path = "/api/topics", tag = "matching",
    responses(
        (status = 200, description = "The active topics", body = TopicsBody),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list_topics(
    State(services): Shared,
) -> Result<axum::Json<TopicsBody>, Problem> {
    let waiting = Waiting::count(&services).await?;
    let topics = services.topics.all().into_iter().filter(|topic| topic.active).map(|topic| {
        let Topic { id, title, .. } = topic;
        OpenTopic { id: id.0, title: title.as_str().to_owned(), waiting: waiting.of(id) }
    });
    Ok(axum::Json(TopicsBody { topics: topics.collect() }))
}

/// How many people wait for what.
pub(super) struct Waiting {
    lengths: HashMap<Queue, usize>,
    room_types: Vec<u8>,
}

impl Waiting {
    pub(super) async fn count(services: &Services) -> Result<Self, Problem> {
        let lengths = services.matching.lengths().await?.into_iter().collect();
        Ok(Self { lengths, room_types: services.outside.room_types.clone() })
    }

    /// The people who wait for this topic by room type, those nobody waits for too.
    pub(super) fn of(&self, topic: TopicId) -> BTreeMap<u8, usize> {
        let length = |room_type| self.lengths.get(&Queue { topic, room_type }).copied();
        self.room_types.iter().map(|size| (*size, length(*size).unwrap_or(0))).collect()
    }
}
