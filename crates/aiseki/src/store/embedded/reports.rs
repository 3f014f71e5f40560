//! Reports: the port.

use aiseki_lobby::{Millis, RoomId, SessionId};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use super::EmbeddedStore;
use crate::port::Pending;
use crate::reports::{FLOOD_WINDOW, NewReport, REPORTS_AT_ONCE, Report, ReportStore, TooMany};

const COLUMNS: &str =
    "id, conversation_id, reporter, reported, seat, reason, said, created_at, judged_at, ban";

impl ReportStore for EmbeddedStore {
    fn add_report(&self, report: NewReport) -> Pending<'_, Result<(), TooMany>> {
        self.write(move |transaction, now| add(transaction, &report, now))
    }

    fn reports(&self, before: Option<i64>, limit: usize, open: bool) -> Pending<'_, Vec<Report>> {
        let before = before.unwrap_or(i64::MAX);
        Box::pin(self.readers.read(move |connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM reports
                     WHERE id < ? AND NOT (? AND judged_at IS NOT NULL) ORDER BY id DESC LIMIT ?"
                ))?
                .query_map(params![before, open, limit], read)?
                .collect()
        }))
    }

    fn report(&self, id: i64) -> Pending<'_, Option<Report>> {
        Box::pin(self.readers.read(move |connection| one(connection, id)))
    }

    fn judge_report(&self, id: i64, ban: Option<i64>) -> Pending<'_, Option<Report>> {
        self.write(move |transaction, now| {
            transaction.execute(
                "UPDATE reports SET judged_at = coalesce(judged_at, ?), ban = coalesce(ban, ?)
                 WHERE id = ?",
                params![now, ban, id],
            )?;
            one(transaction, id)
        })
    }
}

fn add(
    transaction: &Transaction<'_>,
    report: &NewReport,
    now: Millis,
) -> rusqlite::Result<Result<(), TooMany>> {
    let NewReport { room, reporter, reported, seat, reason, said } = report;
    let same = transaction.query_row(
        "SELECT EXISTS (SELECT 1 FROM reports
             WHERE reporter = ? AND conversation_id = ? AND seat = ? AND reason = ?)",
        params![reporter.0, room.0, seat, reason],
        |row| row.get(0),
    )?;
    if same {
        return Ok(Ok(()));
    }
    let (lately, oldest): (u32, Millis) = transaction.query_row(
        "SELECT count(*), coalesce(min(created_at), 0) FROM reports
         WHERE reporter = ? AND created_at > ?",
        params![reporter.0, now.saturating_sub(FLOOD_WINDOW)],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if lately >= REPORTS_AT_ONCE {
        let retry_after = oldest.saturating_add(FLOOD_WINDOW).saturating_sub(now);
        return Ok(Err(TooMany { retry_after }));
    }
    let said = serde_json::to_string(said)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    transaction.execute(
        "INSERT INTO reports (conversation_id, reporter, reported, seat, reason, said, created_at)
         VALUES (?, ?, ?, ?, ?, ?, ?)",
        params![room.0, reporter.0, reported.0, seat, reason, said, now],
    )?;
    Ok(Ok(()))
}

fn one(connection: &Connection, id: i64) -> rusqlite::Result<Option<Report>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM reports WHERE id = ?"))?
        .query_row([id], read)
        .optional()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Report> {
    let said: String = row.get(6)?;
    let said = serde_json::from_str(&said).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(6, rusqlite::types::Type::Text, Box::new(error))
    })?;
    Ok(Report {
        id: row.get(0)?,
        about: NewReport {
            room: RoomId(row.get(1)?),
            reporter: SessionId(row.get(2)?),
            reported: SessionId(row.get(3)?),
            seat: row.get(4)?,
            reason: row.get(5)?,
            said,
        },
        created_at: row.get(7)?,
        judged_at: row.get(8)?,
        ban: row.get(9)?,
    })
}
