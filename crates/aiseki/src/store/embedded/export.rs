//! Everything that moves to another store, as it was at one moment.

use std::path::Path;

use aiseki_lobby::Millis;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::{BackupError, OpenError, open, schema};
use crate::transfer::{
    Ban, Block, Conversation, End, Line, Participant, Report, SessionKey, Topic, VERSION,
};

/// Why there is no export. Its `Display` is one line for an operator.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The store is not there, or cannot be read.
    #[error(transparent)]
    Store(#[from] BackupError),
    /// Whoever took the lines wants no more of them.
    #[error("the export broke off: {0}")]
    Taken(String),
}

/// Hands the lines of the store of a directory to `take`, one after the other: those of one moment,
/// whether or not a server has the store open.
pub fn export(
    data_dir: &Path,
    now: Millis,
    mut take: impl FnMut(Line) -> Result<(), String>,
) -> Result<End, ExportError> {
    let path = data_dir.join(open::FILE);
    if !path.is_file() {
        return Err(BackupError::NoStore(data_dir.to_owned()).into());
    }
    let explain = |error| ExportError::Store(OpenError::sqlite(&path, error).into());
    let mut connection = schema::open_reader(&path).map_err(explain)?;
    schema::recognise(&connection, &path).map_err(BackupError::from)?;
    let transaction = connection.transaction().map_err(explain)?;
    let mut refused = None;
    let mut end = End::default();
    let lines = write(&transaction, now, &mut end, &mut |line| {
        take(line).map_err(|why| {
            refused = Some(why);
            rusqlite::Error::QueryReturnedNoRows
        })
    });
    match (lines, refused) {
        (Ok(()), _) => Ok(end),
        (Err(_), Some(why)) => Err(ExportError::Taken(why)),
        (Err(error), None) => Err(explain(error)),
    }
}

type Take<'a> = &'a mut dyn FnMut(Line) -> rusqlite::Result<()>;

fn write(
    connection: &Connection,
    now: Millis,
    end: &mut End,
    take: Take<'_>,
) -> rusqlite::Result<()> {
    take(Line::Aiseki { version: VERSION, exported_at_ms: now })?;
    let mut say = |line: Line| {
        end.count(&line);
        take(line)
    };
    let mut keys = connection
        .prepare("SELECT number, secret, created_at FROM session_keys ORDER BY number")?;
    let mut rows = keys.query([])?;
    while let Some(row) = rows.next()? {
        say(Line::SessionKey(SessionKey {
            number: row.get(0)?,
            secret: STANDARD_NO_PAD.encode(row.get::<_, [u8; 32]>(1)?),
            created_at_ms: row.get(2)?,
        }))?;
    }
    let mut topics =
        connection.prepare("SELECT id, title, active, created_at FROM topics ORDER BY id")?;
    let mut rows = topics.query([])?;
    while let Some(row) = rows.next()? {
        say(Line::Topic(Topic {
            id: row.get(0)?,
            title: row.get(1)?,
            active: row.get(2)?,
            created_at_ms: row.get(3)?,
        }))?;
    }
    let mut bans = connection.prepare(
        "SELECT id, session, network, reason, created_at, expires_at FROM bans ORDER BY id",
    )?;
    let mut rows = bans.query([])?;
    while let Some(row) = rows.next()? {
        say(Line::Ban(Ban {
            id: row.get(0)?,
            session: row.get::<_, Option<[u8; 16]>>(1)?.map(Uuid::from_bytes),
            network: row.get(2)?,
            reason: row.get(3)?,
            created_at_ms: row.get(4)?,
            expires_at_ms: row.get(5)?,
        }))?;
    }
    let mut people = connection.prepare(
        "SELECT seat, session_id, requested_size, joined_at, left_at FROM participants
         WHERE conversation_id = ? ORDER BY seat",
    )?;
    let mut conversations = connection.prepare(
        "SELECT id, topic_id, size, created_at, ended_at FROM conversations ORDER BY id",
    )?;
    let mut rows = conversations.query([])?;
    while let Some(row) = rows.next()? {
        let id: [u8; 16] = row.get(0)?;
        let participants = people
            .query_map(params![id], |row| {
                Ok(Participant {
                    seat: row.get(0)?,
                    session: Uuid::from_bytes(row.get(1)?),
                    requested_size: row.get(2)?,
                    joined_at_ms: row.get(3)?,
                    left_at_ms: row.get(4)?,
                })
            })?
            .collect::<rusqlite::Result<_>>()?;
        say(Line::Conversation(Conversation {
            id: Uuid::from_bytes(id),
            topic_id: row.get(1)?,
            size: row.get(2)?,
            created_at_ms: row.get(3)?,
            ended_at_ms: row.get(4)?,
            participants,
        }))?;
    }
    // A backup may be older than both.
    let there = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'blocks')";
    if connection.query_row(there, [], |row| row.get(0))? {
        write_blocks(connection, &mut say)?;
        write_reports(connection, &mut say)?;
    }
    let last = |table: &str| {
        let sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?";
        connection.query_row(sql, [table], |row| row.get(0))
    };
    (end.last_topic_id, end.last_ban_id) = (last("topics")?, last("bans")?);
    end.last_report_id = last("reports")?;
    take(Line::End(end.clone()))
}

fn write_blocks(connection: &Connection, say: Take<'_>) -> rusqlite::Result<()> {
    let mut blocks = connection
        .prepare("SELECT blocker, blocked, created_at FROM blocks ORDER BY blocker, blocked")?;
    let mut rows = blocks.query([])?;
    while let Some(row) = rows.next()? {
        say(Line::Block(Block {
            blocker: Uuid::from_bytes(row.get(0)?),
            blocked: Uuid::from_bytes(row.get(1)?),
            created_at_ms: row.get(2)?,
        }))?;
    }
    Ok(())
}

fn write_reports(connection: &Connection, say: Take<'_>) -> rusqlite::Result<()> {
    let mut reports = connection.prepare(
        "SELECT id, conversation_id, reporter, reported, seat, reason, said, created_at, judged_at, ban
         FROM reports ORDER BY id",
    )?;
    let mut rows = reports.query([])?;
    while let Some(row) = rows.next()? {
        let said = serde_json::from_str(&row.get::<_, String>(6)?).map_err(|error| {
            let kind = rusqlite::types::Type::Text;
            rusqlite::Error::FromSqlConversionFailure(6, kind, Box::new(error))
        })?;
        say(Line::Report(Report {
            id: row.get(0)?,
            conversation: Uuid::from_bytes(row.get(1)?),
            reporter: Uuid::from_bytes(row.get(2)?),
            reported: Uuid::from_bytes(row.get(3)?),
            seat: row.get(4)?,
            reason: row.get(5)?,
            said,
            created_at_ms: row.get(7)?,
            judged_at_ms: row.get(8)?,
            ban: row.get(9)?,
        }))?;
    }
    Ok(())
}
