//! What an examination asks of PostgreSQL, on one connection that may only read.

use std::collections::HashMap;
use std::time::Duration;

use aiseki_lobby::{Millis, RoomId, SessionId};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::link::{CREATE_TIMEOUT, GREETING, explain};
use super::migrations::OLDEST;
use super::migrations::{self, MigrateError};
use super::url::Address;
use super::{BadDatabaseUrl, MAX_CONNECTIONS, millis, sql, uuid};
use crate::clock::{Clock, Stopwatch};
use crate::doctor::{Finding, good, latency, note, some_of, wrong};
/// Seats in one page.
const PAGE: i64 = 500;
/// Rooms that are looked at for whether they are whole.
const ROOMS: i64 = 20_000;
/// Round trips that are timed.
const TRIPS: usize = 5;
/// Above this a round trip is slow: every room waits for some.
const SLOW_MS: f64 = 20.0;
/// For one question.
const PATIENCE: Duration = Duration::from_secs(4);

/// Nothing that is asked here can change anything, and the server sees to it.
const READ_ONLY: &str = "SET default_transaction_read_only = on";

const SETTINGS: &str = "
    SELECT current_setting('server_version_num')::int / 10000,
        current_setting('server_version'),
        current_setting('fsync')::bool,
        current_setting('synchronous_commit'),
        current_setting('full_page_writes')::bool,
        current_setting('synchronous_standby_names'),
        pg_is_in_recovery(),
        current_setting('max_connections')::int8
            - current_setting('superuser_reserved_connections')::int8,
        (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
        (SELECT count(*) FROM pg_stat_activity
            WHERE application_name = current_setting('application_name')),
        pg_database_size(current_database())";

const NOW: &str = "SELECT clock_timestamp()";

/// Live rooms with fewer people than a room needs.
const LONELY: &str = "
    SELECT id::text FROM (
        SELECT id FROM conversations WHERE ended_at IS NULL ORDER BY id LIMIT $1
    ) AS live
    WHERE (
        SELECT count(*) FROM participants WHERE conversation_id = id AND left_reason IS NULL
    ) < 2";

/// People who hold a seat of a room that is not live.
const STRAY: &str = "
    SELECT session_id::text FROM (
        SELECT session_id, conversation_id FROM participants
        WHERE left_at IS NULL ORDER BY session_id LIMIT $1
    ) AS seats
    WHERE NOT EXISTS (
        SELECT FROM conversations WHERE id = conversation_id AND ended_at IS NULL OFFSET 0
    )";

/// A PostgreSQL that is being looked at.
pub struct Examination {
    client: Client,
    /// Whether it can be written to, as far as its settings go.
    closed: bool,
}

/// Why there is nothing to look at.
pub enum NoExamination {
    /// The URL is none.
    Url(BadDatabaseUrl),
    /// It does not answer, for this reason.
    Away(String),
}

type Asked<T> = Result<T, String>;

impl Examination {
    /// Connects.
    pub async fn begin(url: &str) -> Result<Self, NoExamination> {
        let address = Address::parse(url).map_err(NoExamination::Url)?;
        let away = |reason: String| NoExamination::Away(reason);
        let connected = tokio::time::timeout(CREATE_TIMEOUT, address.connect()).await;
        let (client, connection) = connected
            .map_err(|_| away("no answer in time".into()))?
            .map_err(|error| away(explain(&error)))?;
        tokio::spawn(async {
            // Whoever asks on it is told of its end.
            let _ = connection.await;
        });
        let greeted = async {
            client.batch_execute(GREETING).await?;
            let closed = client.query_one(sql::PING, &[]).await?.get(0);
            client.batch_execute(READ_ONLY).await?;
            Ok(closed)
        };
        let closed = greeted.await.map_err(|error| away(explain(&error)))?;
        Ok(Self { client, closed })
    }

    async fn ask(
        &self,
        sql: &str,
        values: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> Asked<Vec<Row>> {
        match tokio::time::timeout(PATIENCE, self.client.query(sql, values)).await {
            Ok(answer) => answer.map_err(|error| explain(&error)),
            Err(_) => Err("no answer in time".into()),
        }
    }

    async fn one(&self, sql: &str) -> Asked<Row> {
        self.ask(sql, &[]).await?.pop().ok_or_else(|| "no answer".into())
    }

    /// The server itself: version, what its settings lose, connections, the way to it.
    pub async fn server(&self) -> Asked<Vec<Finding>> {
        let row = self.one(SETTINGS).await?;
        let (major, version): (i32, &str) = (row.get(0), row.get(1));
        let mut findings = vec![if major < OLDEST {
            wrong(
                "version",
                format!("PostgreSQL {version} is too old: {OLDEST} or later is needed"),
            )
        } else {
            good("version", format!("PostgreSQL {version}"))
        }];
        findings.push(durability(row.get(2), row.get(3), row.get(4)));
        findings.push(match (row.get(6), self.closed) {
            (true, _) => wrong(
                "role",
                "this is a standby and can only be read: name the primary, or all hosts in the URL",
            ),
            (false, true) => wrong(
                "role",
                "this database is closed for writing (default_transaction_read_only): rooms cannot be \
                 written until it is opened again",
            ),
            (false, false) => good("role", "the primary: it can be written to"),
        });
        let standbys: &str = row.get(5);
        findings.push(if standbys.is_empty() {
            note(
                "replication",
                "no synchronous standby: a fail-over may lose the last rooms, and with them the \
                 promise that nobody holds two seats; without fail-over nothing is lost",
            )
        } else {
            good("replication", format!("commits wait for {standbys}"))
        });
        findings.push(connections(row.get(7), row.get(8), row.get(9)));
        let bytes: i64 = row.get(10);
        findings.push(good("size", format!("{} MiB", bytes / (1 << 20))));
        let mut fastest = f64::INFINITY;
        for _ in 0..TRIPS {
            let watch = Stopwatch::start();
            self.one("SELECT 1").await?;
            fastest = fastest.min(watch.elapsed().as_secs_f64() * 1e3);
        }
        findings.push(latency("PostgreSQL", fastest, SLOW_MS));
        Ok(findings)
    }

    /// What the server's clock is ahead of this machine's, in milliseconds.
    pub async fn ahead(&self) -> Asked<i64> {
        let clock = Clock::start(0);
        let before = clock.now();
        let now: Millis = millis(self.one(NOW).await?.get(0));
        let after = clock.now();
        Ok(now.cast_signed() - (before + (after - before) / 2).cast_signed())
    }

    /// The tables: their version. False when there are none that could be asked further.
    pub async fn schema(&self) -> Asked<(Finding, bool)> {
        let looked = migrations::look(&self.client).await.map_err(|error| explain(&error))?;
        Ok(match looked {
            Ok(None) => {
                (note("schema", "no tables yet: the first server that starts makes them"), false)
            }
            Ok(Some((applied, 0))) => (good("schema", format!("version {applied}")), true),
            Ok(Some((applied, missing))) => {
                let text = format!(
                    "version {applied}: the next server of this program that starts brings it up to \
                     date ({missing} steps)"
                );
                (note("schema", text), true)
            }
            Err(error @ MigrateError::Newer { .. }) => {
                (wrong("schema", format!("{error}; upgrade this program")), false)
            }
            Err(error) => (wrong("schema", error.to_string()), false),
        })
    }

    /// Whether rooms are whole.
    pub async fn rooms(&self) -> Asked<Vec<Finding>> {
        let names = |rows: &[Row]| rows.iter().map(|row| row.get(0)).collect::<Vec<String>>();
        let lonely = names(&self.ask(LONELY, &[&ROOMS]).await?);
        let stray = names(&self.ask(STRAY, &[&ROOMS]).await?);
        let mut findings = Vec::new();
        if !lonely.is_empty() {
            let text = format!(
                "{} live rooms have fewer than two people ({}): somebody changed rows by hand; \
                 `aiseki rooms close` ends them",
                lonely.len(),
                some_of(&lonely)
            );
            findings.push(wrong("rooms", text));
        }
        if !stray.is_empty() {
            let text = format!(
                "{} people hold a seat of a room that is not live ({}), and can sit nowhere else: set \
                 left_at and left_reason ('room_closed') of these rows of participants",
                stray.len(),
                some_of(&stray)
            );
            findings.push(wrong("rooms", text));
        }
        if findings.is_empty() {
            findings.push(good("rooms", "every live room has its people, and every seat its room"));
        }
        Ok(findings)
    }

    /// Live seats in the order of their people, after this person.
    pub async fn seats_after(&self, after: Option<SessionId>) -> Asked<Vec<(SessionId, RoomId)>> {
        let from = match after {
            None => 0,
            Some(session) => match u128::from_be_bytes(session.0).checked_add(1) {
                Some(next) => next,
                None => return Ok(Vec::new()),
            },
        };
        let rows = self.ask(sql::LIVE_SEATS, &[&Uuid::from_u128(from), &PAGE]).await?;
        Ok(rows.iter().map(seat).collect())
    }

    /// Where these people sit.
    pub async fn seats_of(&self, people: &[SessionId]) -> Asked<HashMap<SessionId, RoomId>> {
        let ids: Vec<Uuid> = people.iter().map(|session| uuid(session.0)).collect();
        Ok(self.ask(sql::SEATS_OF, &[&ids]).await?.iter().map(seat).collect())
    }
}

fn seat(row: &Row) -> (SessionId, RoomId) {
    let id = |column| row.get::<_, Uuid>(column).into_bytes();
    (SessionId(id(0)), RoomId(id(1)))
}

fn durability(fsync: bool, synchronous_commit: &str, full_page_writes: bool) -> Finding {
    if !fsync {
        return wrong(
            "durability",
            "fsync is off: a power cut can destroy the database; turn it on",
        );
    }
    if !full_page_writes {
        return wrong(
            "durability",
            "full_page_writes is off: a power cut can destroy the database; turn it on",
        );
    }
    if synchronous_commit == "off" {
        return note(
            "durability",
            "synchronous_commit is off: a crash of the database may take the last rooms, whose people \
             were told of them; set it to on",
        );
    }
    good("durability", format!("fsync is on, synchronous_commit is {synchronous_commit}"))
}

/// A server's pool, and the one that listens.
const OF_A_SERVER: usize = MAX_CONNECTIONS + 1;

fn connections(allowed: i64, used: i64, ours: i64) -> Finding {
    let free = (allowed - used).max(0);
    let text = format!("{used} of {allowed} connections are used, {ours} of them by aiseki");
    if usize::try_from(free).unwrap_or(0) < OF_A_SERVER {
        let means = "one more server, which may want 11, would not get them; raise max_connections";
        return wrong("connections", format!("{text}: {means}"));
    }
    good("connections", format!("{text}; a server uses at most {OF_A_SERVER}"))
}
