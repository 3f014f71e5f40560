//! Reads beside the writer: SQLite's readers see the last commit and keep nobody waiting.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use aiseki_lobby::{Queue, RoomId, SessionId, TopicId};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tokio::sync::Semaphore;

use super::schema;
use crate::bans::{Ban, BanSubject};
use crate::conversations::{Conversation, Participant};
use crate::matching::QueueLength;
use crate::port::Unavailable;
use crate::topics::{Title, Topic};

/// Reads under way at once, at most; more would only compete for the same cores.
const AT_ONCE: usize = 4;

/// Connections for reading.
#[derive(Clone)]
pub(super) struct Readers(Arc<Pool>);

struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    places: Semaphore,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(Arc::new(Pool { path, idle: Mutex::default(), places: Semaphore::new(AT_ONCE) }))
    }

    /// Closes the connections that nobody reads from.
    pub(super) fn close(&self) {
        self.0.places.close();
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Runs `read` on a thread that may block.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Unavailable> {
        let pool = Arc::clone(&self.0);
        let _place = self.0.places.acquire().await.map_err(|_| Unavailable)?;
        let result = tokio::task::spawn_blocking(move || pool.read(read)).await;
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                let file = self.0.path.display();
                let damaged = schema::is_damage(&error);
                tracing::error!(%file, %error, damaged, "the store cannot be read");
                Err(Unavailable)
            }
            Err(error) => {
                tracing::error!(%error, "a read of the store broke off");
                Err(Unavailable)
            }
        }
    }
}

impl Pool {
    fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => schema::open_reader(&self.path)?,
        };
        let value = read(&connection)?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(value)
    }
}

pub(super) fn topics(connection: &Connection) -> rusqlite::Result<Vec<Topic>> {
    connection
        .prepare_cached("SELECT id, title, active FROM topics ORDER BY id")?
        .query_map([], topic)?
        .collect()
}

pub(super) fn topic_of(connection: &Connection, id: TopicId) -> rusqlite::Result<Option<Topic>> {
    connection
        .prepare_cached("SELECT id, title, active FROM topics WHERE id = ?")?
        .query_row([id.0], topic)
        .optional()
}

pub(super) fn topic(row: &Row<'_>) -> rusqlite::Result<Topic> {
    let title =
        Title::try_from(row.get::<_, String>(1)?).map_err(|error| conversion_failed(1, error))?;
    Ok(Topic { id: TopicId(row.get(0)?), title, active: row.get(2)? })
}

pub(super) fn bans(connection: &Connection) -> rusqlite::Result<Vec<Ban>> {
    connection
        .prepare_cached(
            "SELECT id, session, network, reason, created_at, expires_at FROM bans ORDER BY id",
        )?
        .query_map([], ban)?
        .collect()
}

pub(super) fn ban(row: &Row<'_>) -> rusqlite::Result<Ban> {
    let subject = match row.get::<_, Option<[u8; 16]>>(1)? {
        Some(session) => BanSubject::Session(SessionId(session)),
        None => {
            let network: String = row.get(2)?;
            BanSubject::Network(network.parse().map_err(|error| conversion_failed(2, error))?)
        }
    };
    Ok(Ban {
        id: row.get(0)?,
        subject,
        reason: row.get(3)?,
        created_at: row.get(4)?,
        expires_at: row.get(5)?,
    })
}

/// The people who wait, with the addresses from which they came.
pub(super) fn waiting_people(
    connection: &Connection,
) -> rusqlite::Result<Vec<(SessionId, String)>> {
    connection
        .prepare_cached("SELECT session, address FROM tickets")?
        .query_map([], |row| Ok((SessionId(row.get(0)?), row.get(1)?)))?
        .collect()
}

pub(super) fn queues(connection: &Connection) -> rusqlite::Result<Vec<QueueLength>> {
    connection
        .prepare_cached(
            "SELECT topic_id, room_type, count(*), min(since) FROM tickets
             GROUP BY topic_id, room_type ORDER BY topic_id, room_type",
        )?
        .query_map([], |row| {
            Ok(QueueLength {
                queue: Queue { topic: TopicId(row.get(0)?), room_type: row.get(1)? },
                waiting: row.get(2)?,
                oldest_since: row.get(3)?,
            })
        })?
        .collect()
}

pub(super) fn conversation(
    connection: &Connection,
    room: RoomId,
) -> rusqlite::Result<Option<Conversation>> {
    let found = connection
        .prepare_cached(
            "SELECT id, topic_id, size, created_at, ended_at FROM conversations WHERE id = ?",
        )?
        .query_row([room.0], conversation_row)
        .optional()?;
    found.map(|found| with_participants(connection, found)).transpose()
}

pub(super) fn live_conversations(
    connection: &Connection,
    topic: Option<TopicId>,
    after: Option<RoomId>,
    limit: usize,
) -> rusqlite::Result<Vec<Conversation>> {
    let after = after.map_or([0; 16], |room| room.0);
    let found: Vec<Conversation> = connection
        .prepare_cached(
            "SELECT id, topic_id, size, created_at, ended_at FROM conversations
             WHERE ended_at IS NULL AND id > ?1 AND (?2 IS NULL OR topic_id = ?2)
             ORDER BY id LIMIT ?3",
        )?
        .query_map(params![after, topic.map(|topic| topic.0), limit], conversation_row)?
        .collect::<rusqlite::Result<_>>()?;
    found.into_iter().map(|found| with_participants(connection, found)).collect()
}

fn conversation_row(row: &Row<'_>) -> rusqlite::Result<Conversation> {
    Ok(Conversation {
        room: RoomId(row.get(0)?),
        topic: TopicId(row.get(1)?),
        size: row.get(2)?,
        created_at: row.get(3)?,
        ended_at: row.get(4)?,
        participants: Vec::new(),
    })
}

fn with_participants(
    connection: &Connection,
    mut conversation: Conversation,
) -> rusqlite::Result<Conversation> {
    conversation.participants = connection
        .prepare_cached(
            "SELECT seat, session_id, requested_size, joined_at, left_at FROM participants
             WHERE conversation_id = ? ORDER BY seat",
        )?
        .query_map([conversation.room.0], |row| {
            Ok(Participant {
                seat: row.get(0)?,
                session: SessionId(row.get(1)?),
                requested: row.get(2)?,
                joined_at: row.get(3)?,
                left_at: row.get(4)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(conversation)
}

fn conversion_failed(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}
