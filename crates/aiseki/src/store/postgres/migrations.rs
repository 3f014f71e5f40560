//! Brings the tables up to date, once for all servers that start.

use std::fmt::Write as _;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio_postgres::GenericClient;

use super::link::{Cause, Failure, Link, explain};
use crate::port::Unavailable;

/// A migration: its file's name, and what it does.
struct Migration {
    name: &'static str,
    sql: &'static str,
}

/// Each migration in its order. One that has been released is never changed.
const MIGRATIONS: &[Migration] = &[
    Migration { name: "seating", sql: include_str!("migrations/0001_seating.sql") },
    Migration { name: "reports", sql: include_str!("migrations/0002_reports.sql") },
];

/// The oldest major version of PostgreSQL that is tested with.
pub(super) const OLDEST: i32 = 15;

/// "aiseki" in bytes: by this servers that start together wait for each other, and for nobody else.
const LOCK: i64 = 0x6169_7365_6b69;

/// For everything there is to do; a migration of large tables takes its time.
const MIGRATION_DEADLINE: Duration = Duration::from_mins(10);

/// In the transaction of the migrations. Waiting for another server is as long as its work.
const PATIENCE: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0";

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS aiseki_migrations (
        version    integer PRIMARY KEY,
        name       text NOT NULL,
        checksum   text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )";

/// Why the tables are not up to date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrateError {
    /// To be tried again.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The server is older than what aiseki is tested with.
    #[error("this PostgreSQL is {version}; aiseki needs {OLDEST} or later")]
    TooOld {
        /// Its major version.
        version: i32,
    },
    /// A newer program was here first.
    #[error(
        "the database is of a newer aiseki: its schema has version {version}, and this program knows \
         {known}"
    )]
    Newer {
        /// What the database has.
        version: i32,
        /// What this program knows.
        known: i32,
    },
    /// Somebody changed a migration after it was applied.
    #[error(
        "migration {version} ({name}) of the database is not the one of this program: they are not of \
         the same aiseki"
    )]
    Changed {
        /// Its number.
        version: i32,
        /// Its name in the database.
        name: String,
    },
    /// The database does not allow it, or holds something else under our names.
    #[error("the database cannot be brought up to date: {0}")]
    Failed(String),
}

pub(super) async fn migrate(link: &Link) -> Result<(), MigrateError> {
    // Looking first lets a server start that may not change tables when there is nothing to do.
    let found = link.run("looking at the schema", async |client| {
        let exists = "SELECT current_setting('server_version_num')::int / 10000, \
            to_regclass('aiseki_migrations') IS NOT NULL";
        let row = client.query_one(exists, &[]).await?;
        let version: i32 = row.get(0);
        if version < OLDEST {
            return Ok(Err(MigrateError::TooOld { version }));
        }
        match row.get(1) {
            true => Ok(missing(&***client).await?),
            false => Ok(Ok(MIGRATIONS)),
        }
    });
    if found.await.map_err(failed)??.is_empty() {
        return Ok(());
    }
    let migrated = link.run_within(MIGRATION_DEADLINE, "migrating", async |client| {
        let transaction = client.transaction().await?;
        transaction.batch_execute(PATIENCE).await?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        let done = async {
            transaction.batch_execute(TABLE).await?;
            match missing(&*transaction).await? {
                Ok(missing) => apply(&*transaction, missing).await.map(Ok),
                Err(error) => Ok(Err(error)),
            }
        };
        match done.await {
            Ok(Ok(())) => Ok(transaction.commit().await.map(Ok)?),
            Ok(Err(error)) => Ok(Err(error)),
            Err(error) => {
                // Not allowed, names that are taken, or a server that is too old.
                let code = error.code().map_or("", |code| code.code());
                if code.starts_with("42") || code.starts_with("0A") {
                    return Ok(Err(MigrateError::Failed(explain(&error))));
                }
                Err(Cause::Sql(error))
            }
        }
    });
    migrated.await.map_err(failed)?
}

/// How many migrations the database has seen, and how many it lacks; `None` when it has no tables of
/// ours. Changes nothing.
pub(super) async fn look(
    client: &impl GenericClient,
) -> Result<Result<Option<(usize, usize)>, MigrateError>, tokio_postgres::Error> {
    let exists = "SELECT to_regclass('aiseki_migrations') IS NOT NULL";
    if !client.query_one(exists, &[]).await?.get::<_, bool>(0) {
        return Ok(Ok(None));
    }
    let missing = missing(client).await?;
    Ok(missing.map(|missing| Some((MIGRATIONS.len() - missing.len(), missing.len()))))
}

fn failed(failure: Failure) -> MigrateError {
    match failure {
        Failure::Away => Unavailable.into(),
        Failure::Refused(error) => MigrateError::Failed(explain(&error)),
    }
}

/// The migrations that the database has not seen.
async fn missing(
    client: &impl GenericClient,
) -> Result<Result<&'static [Migration], MigrateError>, tokio_postgres::Error> {
    let rows = client
        .query("SELECT version, name, checksum FROM aiseki_migrations ORDER BY version", &[])
        .await?;
    let known = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    if let Some(version) = rows.last().map(|row| row.get::<_, i32>(0))
        && version > known
    {
        return Ok(Err(MigrateError::Newer { version, known }));
    }
    for (row, migration) in rows.iter().zip(MIGRATIONS) {
        if row.get::<_, &str>(2) != checksum(migration) {
            return Ok(Err(MigrateError::Changed { version: row.get(0), name: row.get(1) }));
        }
    }
    Ok(Ok(&MIGRATIONS[rows.len().min(MIGRATIONS.len())..]))
}

async fn apply(
    client: &impl GenericClient,
    missing: &'static [Migration],
) -> Result<(), tokio_postgres::Error> {
    for (i, migration) in MIGRATIONS.iter().enumerate().skip(MIGRATIONS.len() - missing.len()) {
        client.batch_execute(migration.sql).await?;
        let version = i32::try_from(i + 1).unwrap_or(i32::MAX);
        let insert = "INSERT INTO aiseki_migrations (version, name, checksum) VALUES ($1, $2, $3)";
        client.execute(insert, &[&version, &migration.name, &checksum(migration)]).await?;
        tracing::info!(version, name = migration.name, "the database is brought up to date");
    }
    Ok(())
}

fn checksum(migration: &Migration) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(migration.sql) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
