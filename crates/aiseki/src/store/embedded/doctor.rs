//! What an examination asks of the embedded store, beside a server that may have it open.

use std::path::Path;

use rusqlite::Connection;

use super::{checkpoint, open, schema};
use crate::doctor::{Finding, good, note, some_of, wrong};

/// Faults that are named.
const FAULTS: usize = 20;
/// A store with less room than this, or than the file would need once more, is soon full.
const LITTLE: u64 = 100 << 20;
/// A log longer than this is copied too seldom: somebody reads for very long.
const LONG_LOG: u64 = 1 << 30;

/// Looks at the store of a directory.
pub fn examine(data_dir: &Path) -> Vec<Finding> {
    let path = data_dir.join(open::FILE);
    if !path.is_file() {
        let text = format!(
            "{} has no store yet: the first start of the server makes it, or name another --data-dir",
            data_dir.display()
        );
        return vec![note("store", text)];
    }
    let mut findings = vec![space(data_dir, &path)];
    let connection = match schema::open_reader(&path) {
        Ok(connection) => connection,
        Err(error) => {
            let text =
                format!("{} cannot be opened ({error}): mend its permissions", path.display());
            findings.push(wrong("store", text));
            return findings;
        }
    };
    if let Err(error) = schema::recognise(&connection, &path) {
        findings.push(wrong("store", error.to_string()));
        return findings;
    }
    match faults(&connection) {
        Ok(faults) if faults.is_empty() => {
            findings.push(good("integrity", "every page and index of the file is whole"));
        }
        Ok(faults) => {
            let text =
                format!("the file is damaged ({}): put a backup in its place", some_of(&faults));
            findings.push(wrong("integrity", text));
        }
        Err(error) => {
            let text = format!("the file cannot be read ({error}): put a backup in its place");
            findings.push(wrong("integrity", text));
        }
    }
    match contents(&connection) {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(wrong("rooms", format!("cannot be read: {error}"))),
    }
    findings
}

fn space(data_dir: &Path, path: &Path) -> Finding {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let (file, log) = (length(path), length(&checkpoint::log_of(path)));
    let mib = |bytes: u64| bytes >> 20;
    let free = rustix::fs::statvfs(data_dir).map(|disk| disk.f_bavail * disk.f_frsize);
    let sizes = format!("the file has {} MiB, its log {} MiB", mib(file), mib(log));
    match free {
        Ok(free) if free < LITTLE.max(log) => {
            let text = format!(
                "{sizes}, and {} MiB of the disk are free: make room, people are refused when it is full",
                mib(free)
            );
            wrong("disk", text)
        }
        Ok(_) if log > LONG_LOG => note(
            "disk",
            format!("{sizes}: the log is long; does something read the file for hours?"),
        ),
        Ok(free) => good("disk", format!("{sizes}, {} MiB are free", mib(free))),
        Err(error) => note("disk", format!("{sizes}; what is free is not known ({error})")),
    }
}

fn faults(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = connection.prepare(&format!("PRAGMA integrity_check({FAULTS})"))?;
    let lines = check.query_map([], |row| row.get::<_, String>(0))?;
    let lines: Vec<String> = lines.collect::<rusqlite::Result<_>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

fn contents(connection: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let live = number("SELECT count(*) FROM conversations WHERE ended_at IS NULL")?;
    let waiting = number("SELECT count(*) FROM tickets")?;
    let lonely = number(
        "SELECT count(*) FROM conversations AS c WHERE ended_at IS NULL AND 2 > (
             SELECT count(*) FROM participants WHERE conversation_id = c.id AND left_at IS NULL)",
    )?;
    let twice = number(
        "SELECT count(*) FROM (
             SELECT session_id FROM conversations AS c JOIN participants AS p
             ON p.conversation_id = c.id
             WHERE c.ended_at IS NULL AND p.left_at IS NULL
             GROUP BY session_id HAVING count(*) > 1)",
    )?;
    let keys = number("SELECT count(*) FROM session_keys")?;
    let mut findings = vec![good("people", format!("{waiting} wait, {live} rooms are live"))];
    if lonely > 0 {
        let text = format!(
            "{lonely} live rooms have fewer than two people: `aiseki rooms close` ends them"
        );
        findings.push(wrong("rooms", text));
    }
    if twice > 0 {
        let text =
            format!("{twice} people sit in two rooms: `aiseki rooms close` ends one of them");
        findings.push(wrong("rooms", text));
    }
    if keys == 0 {
        let text =
            "there is none: the next start makes a new one, and nobody's token counts any more";
        findings.push(wrong("session keys", text));
    }
    Ok(findings)
}
