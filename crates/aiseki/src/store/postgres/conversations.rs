//! Reads of the written record.

use aiseki_lobby::{RoomId, SessionId, TopicId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{PostgresStore, millis, rows, small, sql, uuid};
use crate::conversations::{Conversation, ConversationStore, Participant};
use crate::port::Pending;

impl ConversationStore for PostgresStore {
    fn conversation(&self, room: RoomId) -> Pending<'_, Option<Conversation>> {
        Box::pin(self.link.ask("reading a conversation", async move |client| {
            let statement = client.prepare_cached(sql::CONVERSATION).await?;
            let rows = client.query(&statement, &[&uuid(room.0)]).await?;
            Ok(collect(&rows).pop())
        }))
    }

    fn live_conversations(
        &self,
        topic: Option<TopicId>,
        after: Option<RoomId>,
        limit: usize,
    ) -> Pending<'_, Vec<Conversation>> {
        let after = after.map_or(Uuid::nil(), |room| uuid(room.0));
        let topic = topic.map(|topic| topic.0);
        Box::pin(self.link.ask("reading live conversations", async move |client| {
            let statement = client.prepare_cached(sql::LIVE_CONVERSATIONS).await?;
            let found = client.query(&statement, &[&after, &topic, &rows(limit)]).await?;
            Ok(collect(&found))
        }))
    }
}

/// Rows of one conversation stand together, one for each person, or a single one without a person.
fn collect(rows: &[Row]) -> Vec<Conversation> {
    let mut found: Vec<Conversation> = Vec::new();
    for row in rows {
        let room = RoomId(row.get::<_, Uuid>(0).into_bytes());
        if found.last().is_none_or(|last| last.room != room) {
            found.push(Conversation {
                room,
                topic: TopicId(row.get(1)),
                size: small(row.get(2)),
                created_at: millis(row.get(3)),
                ended_at: row.get::<_, Option<_>>(4).map(millis),
                participants: Vec::new(),
            });
        }
        if let (Some(seat), Some(last)) = (row.get::<_, Option<i16>>(5), found.last_mut()) {
            last.participants.push(Participant {
                seat: small(seat),
                session: SessionId(row.get::<_, Uuid>(6).into_bytes()),
                requested: small(row.get(7)),
                joined_at: millis(row.get(8)),
                left_at: row.get::<_, Option<_>>(9).map(millis),
            });
        }
    }
    found
}
