//! The topics' table. Its trigger tells the other servers of every change.

use aiseki_lobby::TopicId;
use tokio_postgres::Row;

use super::{PostgresStore, sql};
use crate::port::Pending;
use crate::topics::{Title, Topic, TopicStore};

impl TopicStore for PostgresStore {
    fn topics(&self) -> Pending<'_, Vec<Topic>> {
        Box::pin(self.link.ask("reading topics", async |client| {
            let statement = client.prepare_cached(sql::TOPICS).await?;
            Ok(client.query(&statement, &[]).await?.iter().filter_map(topic).collect())
        }))
    }

    fn topic(&self, id: TopicId) -> Pending<'_, Option<Topic>> {
        Box::pin(self.link.ask("reading a topic", async move |client| {
            let statement = client.prepare_cached(sql::TOPIC).await?;
            Ok(client.query_opt(&statement, &[&id.0]).await?.as_ref().and_then(topic))
        }))
    }

    fn add_topic(&self, title: Title, active: bool) -> Pending<'_, Topic> {
        Box::pin(self.link.ask("adding a topic", async move |client| {
            let statement = client.prepare_cached(sql::ADD_TOPIC).await?;
            let row = client.query_one(&statement, &[&title.as_str(), &active]).await?;
            Ok(Topic { id: TopicId(row.get(0)), title, active })
        }))
    }

    fn change_topic(
        &self,
        id: TopicId,
        title: Option<Title>,
        active: Option<bool>,
    ) -> Pending<'_, Option<Topic>> {
        Box::pin(self.link.ask("changing a topic", async move |client| {
            let statement = client.prepare_cached(sql::CHANGE_TOPIC).await?;
            let title = title.as_ref().map(Title::as_str);
            let row = client.query_opt(&statement, &[&id.0, &title, &active]).await?;
            Ok(row.as_ref().and_then(topic))
        }))
    }
}

/// A title that was written by hand and is none is left out, so that it does not take the others away.
fn topic(row: &Row) -> Option<Topic> {
    let id: i64 = row.get(0);
    match Title::try_from(row.get::<_, String>(1)) {
        Ok(title) => Some(Topic { id: TopicId(id), title, active: row.get(2) }),
        Err(error) => {
            tracing::warn!(topic = id, %error, "a topic of the database is left out");
            None
        }
    }
}
