//! Copies the write-ahead log into the file, beside the writer.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use rusqlite::Connection;

use super::writer::Command;

const EVERY: Duration = Duration::from_secs(1);
/// A log shorter than this is left alone.
const WORTHWHILE: u64 = 4 << 20;
/// While somebody always writes, a log is never copied to its end and so never starts anew. Beyond
/// this length the writer copies the rest, which stops it for some milliseconds.
const TOO_LONG: u64 = 128 << 20;

/// Works until `stopped` is dropped.
pub(super) fn run(
    connection: &Connection,
    log: &Path,
    writer: &SyncSender<Command>,
    stopped: &Receiver<()>,
) {
    while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        let length = std::fs::metadata(log).map_or(0, |metadata| metadata.len());
        if length < WORTHWHILE {
            continue;
        }
        let result = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        match result {
            Ok((frames, copied)) if copied < frames && length > TOO_LONG => {
                // A full channel means that the writer is busy; the next round asks again.
                let _ = writer.try_send(Command::Checkpoint);
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the log of the store could not be copied"),
        }
    }
}

/// Where SQLite keeps the write-ahead log of a file.
pub(super) fn log_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}
