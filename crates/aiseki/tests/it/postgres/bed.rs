use std::sync::atomic::{AtomicU64, Ordering};

use aiseki::store::postgres::{PostgresSettings, PostgresStore};
use aiseki_lobby::{Kind, Millis, Reservation, Reserved, RoomId, SessionId, TicketNumber, TopicId};
use aiseki_testkit::Postgres;
use tokio_postgres::{Client, NoTls};

/// A database of a test's own, with its tables.
pub(crate) struct Bed {
    pub(crate) url: String,
}

impl Bed {
    /// On the server that all tests share.
    pub(crate) async fn new() -> Self {
        Self::on(Postgres::shared()).await
    }

    /// On a server of the test's own, which it may stop.
    pub(crate) async fn on(server: &Postgres) -> Self {
        let bed = Self { url: server.fresh_database().expect("a database") };
        bed.store().migrate().await.expect("the tables");
        bed
    }

    /// A server of ours.
    pub(crate) fn store(&self) -> PostgresStore {
        PostgresStore::open(&PostgresSettings::new(&self.url)).expect("a good URL")
    }

    /// An operator with SQL.
    pub(crate) async fn client(&self) -> Client {
        let (client, connection) =
            tokio_postgres::connect(&self.url, NoTls).await.expect("it is there");
        tokio::spawn(connection);
        client
    }

    /// The number that a query returns.
    pub(crate) async fn count(&self, sql: &str) -> i64 {
        self.client().await.query_one(sql, &[]).await.expect("an answer").get(0)
    }
}

/// A person by a number.
pub(crate) fn person(number: u64) -> SessionId {
    SessionId((u128::from(number) << 64 | 0xbed).to_be_bytes())
}

/// Takes these people together for a room of a new id.
pub(crate) fn reserve(people: &[u64]) -> Reservation {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let requested = u8::try_from(people.len()).expect("a small room");
    let reserved = |(ticket, number): (u64, &u64)| Reserved {
        session: person(*number),
        ticket: TicketNumber(ticket),
        requested,
        since: FORMED_AT,
    };
    Reservation {
        room: RoomId((u128::from(0x0197_0000_0000_7000 | (number << 16)) << 64).to_be_bytes()),
        topic: TopicId(42),
        kind: Kind::Full,
        formed_at: FORMED_AT,
        people: (1..).zip(people).map(reserved).collect(),
    }
}

/// The time of the store that formed the rooms. The records have PostgreSQL's own.
pub(crate) const FORMED_AT: Millis = 1_000;

/// Those people.
pub(crate) fn people(numbers: &[u64]) -> Vec<SessionId> {
    numbers.iter().copied().map(person).collect()
}
