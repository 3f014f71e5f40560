//! Takes what another store has exported. Everything or nothing: one transaction.

use std::collections::HashMap;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use tokio::sync::mpsc::Receiver;
use tokio_postgres::{Error, Row, Transaction};
use uuid::Uuid;

use super::link::{GREETING, explain, is_taken};
use super::url::Address;
use super::{BadDatabaseUrl, MigrateError, PostgresSettings, PostgresStore, millis, time};
use crate::transfer::{Ban, Block, Conversation, End, Line, Report, SessionKey, Topic};

/// Conversations, or blocks, in one statement.
const AT_ONCE: usize = 500;

/// For the connection of an import, which waits for its lines and for nobody's locks.
const PATIENCE: &str = "
    SET statement_timeout = '5min';
    SET idle_in_transaction_session_timeout = 0;
    SET enable_seqscan = on;
    SET enable_bitmapscan = on";

const SESSION_KEY: &str = "
    INSERT INTO session_keys (number, secret, created_at) VALUES ($1, $2, $3)
    ON CONFLICT (number) DO NOTHING";
const SESSION_KEY_THERE: &str = "SELECT secret = $2 FROM session_keys WHERE number = $1";
const TOPIC: &str = "
    INSERT INTO topics (id, title, active, created_at) VALUES ($1, $2, $3, $4)
    ON CONFLICT (id) DO NOTHING";
const TOPIC_THERE: &str = "SELECT created_at = $2 FROM topics WHERE id = $1";
const BAN: &str = "
    INSERT INTO bans (id, session_id, network, reason, created_at, expires_at)
    VALUES ($1, $2, $3::text::inet, $4, $5, $6)
    ON CONFLICT (id) DO NOTHING";
const BAN_THERE: &str = "
    SELECT created_at = $2 AND session_id IS NOT DISTINCT FROM $3
        AND network IS NOT DISTINCT FROM $4::text::inet
    FROM bans WHERE id = $1";
const CONVERSATIONS: &str = "
    INSERT INTO conversations (id, topic_id, size, created_at, ended_at)
    SELECT * FROM unnest($1::uuid[], $2::int8[], $3::int2[], $4::timestamptz[], $5::timestamptz[])
    ORDER BY 1
    ON CONFLICT (id) DO NOTHING
    RETURNING id";
const PARTICIPANTS: &str = "
    INSERT INTO participants
        (conversation_id, session_id, seat, requested_size, joined_at, left_at, left_reason)
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int2[], $4::int2[], $5::timestamptz[],
        $6::timestamptz[], $7::text[])";
const CONVERSATIONS_THERE: &str = "
    SELECT id, topic_id, size, created_at, seat, session_id, requested_size, joined_at
    FROM conversations LEFT JOIN participants ON conversation_id = id
    WHERE id = ANY ($1::uuid[]) ORDER BY id, seat";
const BLOCKS: &str = "
    INSERT INTO blocks (blocker, blocked, created_at)
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[])
    ON CONFLICT DO NOTHING";
const REPORT: &str = "
    INSERT INTO reports (id, conversation_id, reporter, reported, seat, reason, said, created_at,
        judged_at, ban)
    VALUES ($1, $2, $3, $4, $5, $6, $7::text::json, $8, $9, $10)
    ON CONFLICT (id) DO NOTHING";
const REPORT_THERE: &str = "
    SELECT created_at = $2 AND conversation_id = $3 AND reporter = $4 AND seat = $5
    FROM reports WHERE id = $1";
/// Numbers that were given out once never come back. Reads nothing that the import does not know.
const ADVANCE: &str = "
    SELECT setval(name::regclass, last) FROM (
        SELECT pg_get_serial_sequence($1::text, 'id') AS name, $2::int8 AS last
    ) AS it
    WHERE last > coalesce(pg_sequence_last_value(name::regclass), 0)";

/// Why nothing was imported. Its `Display` is one line for an operator.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The URL is none.
    #[error("the database URL cannot be used: {0}")]
    Url(#[from] BadDatabaseUrl),
    /// The tables cannot be made.
    #[error(transparent)]
    Tables(MigrateError),
    /// The database cannot be asked, or refuses.
    #[error("nothing was imported: the database says: {0}")]
    Database(String),
    /// The lines are not an export.
    #[error("nothing was imported: {0}")]
    Lines(String),
    /// The database holds something else under the same name.
    #[error("nothing was imported: {0}")]
    Clash(String),
}

impl From<Error> for ImportError {
    fn from(error: Error) -> Self {
        if is_taken(&error) {
            return Self::Clash(
                "somebody of a live conversation already holds a seat in this database".into(),
            );
        }
        Self::Database(explain(&error))
    }
}

/// What was new. What was there already, as it was exported, is not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// By kind.
    pub added: End,
    /// All lines of these kinds.
    pub read: End,
}

/// Makes the tables, if need be, and takes the lines, up to and with the last. What is there already
/// under the same number is left as it is, when it is the same thing: it may have changed since.
pub async fn import(
    url: &str,
    mut lines: Receiver<Result<Line, String>>,
) -> Result<Imported, ImportError> {
    let address = Address::parse(url)?;
    // Its own words for why it cannot be reached, before anything else is tried.
    let (mut client, connection) = address.connect().await?;
    let driver = tokio::spawn(connection);
    PostgresStore::open(&PostgresSettings::new(url))?
        .migrate()
        .await
        .map_err(ImportError::Tables)?;
    client.batch_execute(GREETING).await?;
    client.batch_execute(PATIENCE).await?;
    let transaction = client.transaction().await?;
    let mut import = Import { transaction: &transaction, done: Imported::default() };
    import.all(&mut lines).await?;
    let done = import.done;
    transaction.commit().await?;
    drop(client);
    let _ = driver.await;
    Ok(done)
}

struct Import<'a> {
    transaction: &'a Transaction<'a>,
    done: Imported,
}

impl Import<'_> {
    async fn all(&mut self, lines: &mut Receiver<Result<Line, String>>) -> Result<(), ImportError> {
        let mut next = async || lines.recv().await.transpose().map_err(ImportError::Lines);
        if !matches!(next().await?, Some(Line::Aiseki { .. })) {
            return Err(ImportError::Lines("this is no export of aiseki".into()));
        }
        let mut conversations = Vec::with_capacity(AT_ONCE);
        let mut blocks = Vec::new();
        let end = loop {
            let Some(line) = next().await? else {
                return Err(ImportError::Lines("the end of the export is missing".into()));
            };
            if let Line::End(end) = line {
                break end;
            }
            if !self.done.read.count(&line) {
                return Err(ImportError::Lines("a second beginning, in the middle".into()));
            }
            match line {
                Line::SessionKey(key) => self.session_key(key).await?,
                Line::Topic(topic) => self.topic(topic).await?,
                Line::Ban(ban) => self.ban(ban).await?,
                Line::Conversation(conversation) => conversations.push(conversation),
                Line::Block(block) => blocks.push(block),
                Line::Report(report) => self.report(report).await?,
                Line::Aiseki { .. } | Line::End(_) => {}
            }
            if blocks.len() == AT_ONCE {
                self.blocks(std::mem::take(&mut blocks)).await?;
            }
            if conversations.len() == AT_ONCE {
                self.conversations(std::mem::take(&mut conversations)).await?;
            }
        };
        self.conversations(conversations).await?;
        self.blocks(blocks).await?;
        if next().await?.is_some() {
            return Err(ImportError::Lines("something follows the end of the export".into()));
        }
        if !end.counts_as(&self.done.read) {
            return Err(ImportError::Lines("lines are missing from the export".into()));
        }
        for (table, last) in [
            ("topics", end.last_topic_id),
            ("bans", end.last_ban_id),
            ("reports", end.last_report_id),
        ] {
            self.transaction.query(ADVANCE, &[&table, &last]).await?;
        }
        Ok(())
    }

    async fn session_key(&mut self, key: SessionKey) -> Result<(), ImportError> {
        let secret = STANDARD_NO_PAD.decode(&key.secret).unwrap_or_default();
        if secret.len() != 32 {
            return Err(ImportError::Lines(format!("session key {} is none", key.number)));
        }
        let number = i64::from(key.number);
        let added = self
            .transaction
            .execute(SESSION_KEY, &[&number, &secret, &time(key.created_at_ms)])
            .await?;
        self.done.added.session_keys += added;
        let known = self.transaction.query_opt(SESSION_KEY_THERE, &[&number, &secret]).await?;
        same(known.as_ref(), || {
            format!(
                "session key {number} of the database is another one: a server has already started on \
                 it. Import into an empty database, before the first server starts"
            )
        })
    }

    async fn topic(&mut self, topic: Topic) -> Result<(), ImportError> {
        numbered("topic", topic.id)?;
        let created = time(topic.created_at_ms);
        let values = [&topic.id as &(dyn tokio_postgres::types::ToSql + Sync)];
        let all = [values[0], &topic.title, &topic.active, &created];
        self.done.added.topics += self.transaction.execute(TOPIC, &all).await?;
        let known = self.transaction.query_opt(TOPIC_THERE, &[&topic.id, &created]).await?;
        same(known.as_ref(), || {
            format!("topic {} of the database is another one ({:?} here)", topic.id, topic.title)
        })
    }

    async fn ban(&mut self, ban: Ban) -> Result<(), ImportError> {
        numbered("ban", ban.id)?;
        let (created, until) = (time(ban.created_at_ms), ban.expires_at_ms.map(time));
        let added = self
            .transaction
            .execute(BAN, &[&ban.id, &ban.session, &ban.network, &ban.reason, &created, &until])
            .await?;
        self.done.added.bans += added;
        let known = self
            .transaction
            .query_opt(BAN_THERE, &[&ban.id, &created, &ban.session, &ban.network])
            .await?;
        same(known.as_ref(), || format!("ban {} of the database is another one", ban.id))
    }

    async fn conversations(&mut self, given: Vec<Conversation>) -> Result<(), ImportError> {
        if given.is_empty() {
            return Ok(());
        }
        let column = |of: fn(&Conversation) -> i16| given.iter().map(of).collect::<Vec<_>>();
        let ids: Vec<Uuid> = given.iter().map(|it| it.id).collect();
        let topics: Vec<i64> = given.iter().map(|it| it.topic_id).collect();
        let created: Vec<SystemTime> = given.iter().map(|it| time(it.created_at_ms)).collect();
        let ended: Vec<_> = given.iter().map(|it| it.ended_at_ms.map(time)).collect();
        let sizes = column(|it| it.size);
        let new = self
            .transaction
            .query(CONVERSATIONS, &[&ids, &topics, &sizes, &created, &ended])
            .await?;
        let new: std::collections::HashSet<Uuid> = new.iter().map(|row| row.get(0)).collect();
        self.done.added.conversations += new.len() as u64;
        let (new, old): (Vec<_>, Vec<_>) = given.into_iter().partition(|it| new.contains(&it.id));
        self.participants(&new).await?;
        self.compare(&old).await
    }

    async fn participants(&mut self, new: &[Conversation]) -> Result<(), ImportError> {
        let people = || new.iter().flat_map(|it| it.participants.iter().map(move |p| (it, p)));
        let rooms: Vec<Uuid> = people().map(|(it, _)| it.id).collect();
        let sessions: Vec<Uuid> = people().map(|(_, p)| p.session).collect();
        let seats: Vec<i16> = people().map(|(_, p)| p.seat).collect();
        let requested: Vec<i16> = people().map(|(_, p)| p.requested_size).collect();
        let joined: Vec<SystemTime> = people().map(|(_, p)| time(p.joined_at_ms)).collect();
        let left: Vec<_> = people().map(|(_, p)| p.left_at_ms.map(time)).collect();
        // The embedded store does not say who ended a room: whoever was there to the end lost the
        // seat with it.
        let reasons: Vec<Option<&str>> = people()
            .map(|(it, p)| {
                let to_the_end = p.left_at_ms == it.ended_at_ms;
                p.left_at_ms.map(|_| if to_the_end { "room_closed" } else { "left" })
            })
            .collect();
        self.transaction
            .execute(
                PARTICIPANTS,
                &[&rooms, &sessions, &seats, &requested, &joined, &left, &reasons],
            )
            .await?;
        Ok(())
    }

    async fn blocks(&mut self, given: Vec<Block>) -> Result<(), ImportError> {
        let blockers: Vec<Uuid> = given.iter().map(|it| it.blocker).collect();
        let blocked: Vec<Uuid> = given.iter().map(|it| it.blocked).collect();
        let created: Vec<SystemTime> = given.iter().map(|it| time(it.created_at_ms)).collect();
        self.done.added.blocks +=
            self.transaction.execute(BLOCKS, &[&blockers, &blocked, &created]).await?;
        Ok(())
    }

    async fn report(&mut self, report: Report) -> Result<(), ImportError> {
        let Report { id, conversation, reporter, reported, seat, reason, said, .. } = report;
        numbered("report", id)?;
        let (created, judged) = (time(report.created_at_ms), report.judged_at_ms.map(time));
        let (said, ban) = (said.to_string(), report.ban);
        self.done.added.reports += self
            .transaction
            .execute(
                REPORT,
                &[
                    &id,
                    &conversation,
                    &reporter,
                    &reported,
                    &seat,
                    &reason,
                    &said,
                    &created,
                    &judged,
                    &ban,
                ],
            )
            .await?;
        let known = self
            .transaction
            .query_opt(REPORT_THERE, &[&id, &created, &conversation, &reporter, &seat])
            .await?;
        same(known.as_ref(), || format!("report {id} of the database is another one"))
    }

    /// Whether what is there is the same, in all that never changes.
    async fn compare(&mut self, old: &[Conversation]) -> Result<(), ImportError> {
        if old.is_empty() {
            return Ok(());
        }
        let ids: Vec<Uuid> = old.iter().map(|it| it.id).collect();
        let mut there: HashMap<Uuid, Vec<Row>> = HashMap::new();
        for row in self.transaction.query(CONVERSATIONS_THERE, &[&ids]).await? {
            there.entry(row.get(0)).or_default().push(row);
        }
        for it in old {
            let rows = there.get(&it.id).map(Vec::as_slice).unwrap_or_default();
            let head = rows.first().is_some_and(|row| {
                let created = millis(row.get(3));
                (row.get::<_, i64>(1), row.get::<_, i16>(2), created)
                    == (it.topic_id, it.size, it.created_at_ms)
            });
            let known = rows.iter().filter_map(|row| {
                let seat: i16 = row.get::<_, Option<i16>>(4)?;
                Some((seat, row.get::<_, Uuid>(5), row.get::<_, i16>(6), millis(row.get(7))))
            });
            let given = it
                .participants
                .iter()
                .map(|p| (p.seat, p.session, p.requested_size, p.joined_at_ms));
            if !head || !known.eq(given) {
                let text = format!("conversation {} of the database is another one", it.id);
                return Err(ImportError::Clash(text));
            }
        }
        Ok(())
    }
}

/// Numbers are given out from 1.
fn numbered(what: &str, id: i64) -> Result<(), ImportError> {
    if id < 1 {
        return Err(ImportError::Lines(format!(
            "{what} {id} has a number that no {what} can have"
        )));
    }
    Ok(())
}

fn same(known: Option<&Row>, clash: impl FnOnce() -> String) -> Result<(), ImportError> {
    match known.map(|row| row.get(0)) {
        Some(true) => Ok(()),
        _ => Err(ImportError::Clash(clash())),
    }
}
