//! The file: how it is opened, recognised and brought up to date.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{OpenError, checkpoint};
use crate::config::Durability;

/// Each migration in its order; the number of those applied is the file's `user_version`. One that
/// has been released is never changed.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_seating.sql"),
    include_str!("migrations/0002_rooms.sql"),
    include_str!("migrations/0003_reports.sql"),
    include_str!("migrations/0004_places.sql"),
];

/// "AISK": marks the file as ours in SQLite's header.
const APPLICATION_ID: i32 = 0x4149_534b;

/// Opens the file for writing, makes it when it is not there, and brings it up to date.
pub(super) fn open(path: &Path, durability: Durability) -> Result<Connection, OpenError> {
    let explain = |error| OpenError::sqlite(path, error);
    let mut connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(explain)?;
    recognise(&connection, path)?;
    check_length(&connection, path)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(explain)?;
    // In WAL mode NORMAL loses no commit to a killed process, only the last ones to a power cut.
    let synchronous = match durability {
        Durability::Normal => "NORMAL",
        Durability::Full => "FULL",
    };
    connection.pragma_update(None, "synchronous", synchronous).map_err(explain)?;
    // Checkpoints are made beside the writer, see checkpoint.rs.
    connection.pragma_update(None, "wal_autocheckpoint", 0).map_err(explain)?;
    // What was said is not to be found in the file after its room has ended.
    connection.pragma_update(None, "secure_delete", "ON").map_err(explain)?;
    connection.set_prepared_statement_cache_capacity(64);
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// Opens the file for reading beside the writer.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(connection)
}

/// Opens the file for copying its log.
pub(super) fn open_checkpointer(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

/// Refuses a file that is something else, before anything is written to it.
pub(super) fn recognise(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get(0));
    let explain = |error| OpenError::sqlite(path, error);
    let application_id: i32 = number("application_id").map_err(explain)?;
    let version: i32 = number("user_version").map_err(explain)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(explain)?;
    if application_id != APPLICATION_ID && (application_id != 0 || tables > 0) {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    let known = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    if version > known {
        return Err(OpenError::Newer { path: path.to_owned(), version, known });
    }
    Ok(())
}

/// SQLite finds pages that are missing at the end of the file, and not a last page that was cut. While
/// there is a log the file may be shorter: a checkpoint was interrupted, and is made again.
fn check_length(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let page: u64 = connection
        .pragma_query_value(None, "page_size", |row| row.get(0))
        .map_err(|error| OpenError::sqlite(path, error))?;
    if length(&checkpoint::log_of(path)) == 0 && length(path) % page != 0 {
        return Err(OpenError::Damaged {
            path: path.to_owned(),
            reason: "its end is missing".into(),
        });
    }
    Ok(())
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let explain = |error| OpenError::sqlite(path, error);
    let applied: usize =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(explain)?;
    for (i, migration) in MIGRATIONS.iter().enumerate().skip(applied) {
        let transaction = connection.transaction().map_err(explain)?;
        transaction.execute_batch(migration).map_err(explain)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(explain)?;
        let version = i64::try_from(i + 1).unwrap_or(i64::MAX);
        transaction.pragma_update(None, "user_version", version).map_err(explain)?;
        transaction.commit().map_err(explain)?;
    }
    Ok(())
}

/// Whether the error means that the file itself cannot be trusted.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => {
            matches!(failure.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        }
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..) => true,
        _ => false,
    }
}
