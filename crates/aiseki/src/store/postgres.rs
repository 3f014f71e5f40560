//! The written half of the shared store: PostgreSQL is the truth about who sits where.
//!
//! Nothing here fails because the database is away when a server starts: connections are made when
//! they are needed, every call that finds none is answered with [`Unavailable`], and the next one tries
//! again.

mod bans;
mod conversations;
mod doctor;
mod import;
mod link;
mod migrations;
mod notices;
mod outage;
mod reports;
mod rooms;
mod seats;
mod sql;
mod topics;
mod url;

use std::time::{Duration, SystemTime};

use aiseki_lobby::{Millis, Reservation, RoomId, Seat, SessionId};
use tokio_postgres::Row;
use uuid::Uuid;

pub use doctor::{Examination, NoExamination};
pub use import::{ImportError, Imported, import};
pub use migrations::MigrateError;
pub use notices::Notice;
pub use sql::STATEMENTS;
pub use url::BadDatabaseUrl;

use self::link::Link;
use self::url::Address;
use crate::port::{Pending, Unavailable};
use crate::records::{Departure, EndedRoom, RecordStore, Sitters, Written};
use crate::sessions::SessionKey;

/// Connections of a server, at most. One statement writes hundreds of rooms, so a server needs few, and
/// a database has about a hundred for everybody.
pub const MAX_CONNECTIONS: usize = 10;

/// What the store is opened with.
#[derive(Clone)]
pub struct PostgresSettings {
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, see `docs/operations.md` for its options.
    pub url: String,
    /// Connections, at most; one more listens for notices.
    pub max_connections: usize,
}

impl PostgresSettings {
    /// The database at this URL, with [`MAX_CONNECTIONS`].
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), max_connections: MAX_CONNECTIONS }
    }
}

/// The records, topics, bans and keys of all servers.
pub struct PostgresStore {
    link: Link,
    address: Address,
}

impl PostgresStore {
    /// A store that connects when it is first asked. Needs a runtime only from then on.
    pub fn open(settings: &PostgresSettings) -> Result<Self, BadDatabaseUrl> {
        let address = Address::parse(&settings.url)?;
        Ok(Self { link: Link::new(&address, settings.max_connections.max(1)), address })
    }

    /// Brings the tables up to date. To be called until it succeeds, before anything else is asked;
    /// servers that start together do it one after the other.
    pub async fn migrate(&self) -> Result<(), MigrateError> {
        migrations::migrate(&self.link).await
    }

    /// The secrets by which session tokens are signed. The first server to ask makes the first of them,
    /// and all servers get the same.
    pub async fn session_keys(&self) -> Result<Vec<SessionKey>, Unavailable> {
        let key = SessionKey::generate(1);
        self.link
            .ask("reading the session keys", async move |client| {
                let read = client.prepare_cached(sql::SESSION_KEYS).await?;
                let mut rows = client.query(&read, &[]).await?;
                if rows.is_empty() {
                    let write = client.prepare_cached(sql::FIRST_SESSION_KEY).await?;
                    let secret = key.secret.as_slice();
                    client.execute(&write, &[&i64::from(key.number), &secret]).await?;
                    // Read again: another server's may have come first.
                    rows = client.query(&read, &[]).await?;
                }
                let keys: Vec<SessionKey> = rows.iter().filter_map(session_key).collect();
                Ok(keys)
            })
            .await
            // Tables without a single usable key are not ours to repair.
            .and_then(|keys| if keys.is_empty() { Err(Unavailable) } else { Ok(keys) })
    }

    /// Tells what other servers, and operators with SQL, change from now on. Ends when the receiver is
    /// dropped. To be called within a runtime.
    pub fn notices(&self) -> tokio::sync::mpsc::UnboundedReceiver<Notice> {
        notices::listen(self.address.clone())
    }

    /// Whether the last call was answered. A server that has not asked yet assumes so.
    pub fn available(&self) -> bool {
        self.link.available()
    }

    /// Ends the connections. Calls after this are answered with [`Unavailable`].
    pub fn close(&self) {
        self.link.close();
    }
}

impl RecordStore for PostgresStore {
    fn write_rooms(&self, rooms: Vec<Reservation>) -> Pending<'_, Vec<Written>> {
        Box::pin(async move { rooms::write(&self.link, &rooms).await })
    }

    fn bury_rooms(&self, rooms: Vec<Reservation>) -> Pending<'_, Vec<Written>> {
        Box::pin(async move { rooms::bury(&self.link, &rooms).await })
    }

    fn seats_of(&self, sessions: Vec<SessionId>) -> Pending<'_, Vec<(SessionId, Seat)>> {
        Box::pin(async move { seats::seats_of(&self.link, &sessions).await })
    }

    fn live_seats(
        &self,
        after: Option<SessionId>,
        limit: usize,
    ) -> Pending<'_, Vec<(SessionId, Seat)>> {
        Box::pin(seats::live_seats(&self.link, after, limit))
    }

    fn give_up_seat(&self, session: SessionId, room: RoomId) -> Pending<'_, Departure> {
        Box::pin(seats::give_up(&self.link, session, room))
    }

    fn end_room(&self, room: RoomId) -> Pending<'_, Option<Vec<SessionId>>> {
        Box::pin(seats::end_room(&self.link, room))
    }

    fn lately_ended(&self, within: Millis) -> Pending<'_, Vec<EndedRoom>> {
        Box::pin(seats::lately_ended(&self.link, within))
    }

    fn people_of(&self, rooms: Vec<RoomId>) -> Pending<'_, Vec<Sitters>> {
        Box::pin(async move { seats::people_of(&self.link, &rooms).await })
    }

    fn add_block(&self, by: SessionId, whom: SessionId) -> Pending<'_, ()> {
        Box::pin(seats::add_block(&self.link, by, whom))
    }

    fn blocks(
        &self,
        after: Option<(SessionId, SessionId)>,
        limit: usize,
    ) -> Pending<'_, Vec<(SessionId, SessionId)>> {
        Box::pin(seats::blocks(&self.link, after, limit))
    }

    fn ping(&self) -> Pending<'_, ()> {
        Box::pin(seats::ping(&self.link))
    }
}

fn session_key(row: &Row) -> Option<SessionKey> {
    let number: i64 = row.get(0);
    let secret: &[u8] = row.get(1);
    let key = u32::try_from(number).ok().zip(secret.try_into().ok());
    if key.is_none() {
        tracing::warn!(number, "a session key is not one of ours and is left out");
    }
    key.map(|(number, secret)| SessionKey { number, secret })
}

/// Later times are written as this one, the end of the year 9999: PostgreSQL knows no time as late as
/// the latest that we can count.
const LATEST: Millis = 253_402_300_799_999;

fn time(millis: Millis) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis.min(LATEST))
}

fn millis(time: SystemTime) -> Millis {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}

fn uuid(bytes: [u8; 16]) -> Uuid {
    Uuid::from_bytes(bytes)
}

/// Numbers of a room are small; one that does not fit was not written by us, and shows as none.
fn small(number: i16) -> u8 {
    u8::try_from(number).unwrap_or_default()
}

/// How many rows to read, as PostgreSQL counts.
fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
