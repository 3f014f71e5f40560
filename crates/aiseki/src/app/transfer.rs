//! Moves what an embedded store holds to the database of many servers.

use std::io::{BufRead, Write};
use std::path::Path;

use anyhow::Context as _;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::store::{embedded, postgres};
use crate::transfer::{self, End, Line};

pub use crate::store::postgres::Imported;

/// Lines that are read ahead of the database.
const AHEAD: usize = 1_024;
/// A line longer than this is none of ours.
const LONGEST_LINE: u64 = 1 << 20;

/// Writes everything that moves of the store of a directory.
pub fn export(data_dir: &Path, out: &mut dyn Write) -> anyhow::Result<End> {
    let end = embedded::export(data_dir, Clock::start(0).now(), |line| {
        let text = serde_json::to_string(&line).map_err(|error| error.to_string())?;
        writeln!(out, "{text}").map_err(|error| error.to_string())
    })?;
    out.flush().context("the export cannot be written")?;
    Ok(end)
}

/// Where an import comes from.
pub enum Origin {
    /// An export.
    Lines(Box<dyn BufRead + Send>),
    /// The store of a directory.
    Store(std::path::PathBuf),
}

/// Brings what is in an origin into a database.
pub async fn import(origin: Origin, database_url: &str) -> anyhow::Result<Imported> {
    let (lines, received) = mpsc::channel(AHEAD);
    let reading = tokio::task::spawn_blocking(move || match origin {
        Origin::Lines(source) => read(source, &lines),
        Origin::Store(directory) => {
            let sent = embedded::export(&directory, Clock::start(0).now(), |line| {
                lines.blocking_send(Ok(line)).map_err(|_| String::new())
            });
            if let Err(error) = sent {
                // Nobody listens when the database has refused, and then it has said why.
                let _ = lines.blocking_send(Err(error.to_string()));
            }
        }
    });
    let imported = postgres::import(database_url, received).await;
    reading.await.context("reading broke off")?;
    Ok(imported?)
}

fn read(mut source: Box<dyn BufRead + Send>, lines: &mpsc::Sender<Result<Line, String>>) {
    let (mut text, mut number) = (String::new(), 0_u64);
    loop {
        text.clear();
        number += 1;
        let read = std::io::Read::take(&mut source, LONGEST_LINE).read_line(&mut text);
        let line = match read {
            Ok(0) => return,
            Ok(_) => transfer::read(&text).map_err(|why| format!("line {number} {why}")),
            Err(error) => Err(format!("line {number} cannot be read ({error})")),
        };
        let failed = line.is_err();
        if lines.blocking_send(line).is_err() || failed {
            return;
        }
    }
}
