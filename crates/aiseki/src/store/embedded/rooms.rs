//! Rooms: the port, the rows of the file.

use std::sync::Arc;

use aiseki_lobby::{Millis, RoomId};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::EmbeddedStore;
use super::live::LiveRooms;
use crate::port::Pending;
use crate::rooms::{Appended, Attendance, Closing, Line, NotSaid, RoomStore, Said, Signal, View};

impl RoomStore for EmbeddedStore {
    fn view(&self, room: RoomId) -> Pending<'_, Option<View>> {
        let live = self.step(move |engine| engine.live.view(room));
        Box::pin(async move {
            match live.await? {
                Some(view) => Ok(Some(view)),
                None => self.readers.read(move |connection| ended(connection, room)).await,
            }
        })
    }

    fn append(&self, line: Line) -> Pending<'_, Result<Appended, NotSaid>> {
        self.step(move |engine| engine.live.append(line, engine.clock.now()))
    }

    fn read(&self, room: RoomId, after: u64, limit: usize) -> Pending<'_, Vec<Arc<Said>>> {
        Box::pin(self.readers.read(move |connection| messages(connection, room, after, limit)))
    }

    fn attend(&self, connections: Vec<Attendance>) -> Pending<'_, ()> {
        self.step(move |engine| {
            for connection in &connections {
                engine.attend(connection);
            }
        })
    }

    fn depart(&self, connection: Attendance) -> Pending<'_, ()> {
        self.step(move |engine| engine.live.depart(&connection, engine.clock.now()))
    }

    fn typing(&self, room: RoomId, seat: u8) -> Pending<'_, ()> {
        // There is no other server, and nothing to be kept.
        self.hub.tell(room, Signal::Typing(seat));
        Box::pin(std::future::ready(Ok(())))
    }
}

fn ended(connection: &Connection, room: RoomId) -> rusqlite::Result<Option<View>> {
    let reason: Option<Option<String>> = connection
        .prepare_cached(
            "SELECT ended_for FROM conversations WHERE id = ? AND ended_at IS NOT NULL",
        )?
        .query_row([room.0], |row| row.get(0))
        .optional()?;
    // Rooms that ended before reasons were kept were closed somehow.
    let word = |word: Option<String>| word.as_deref().and_then(Closing::from_word);
    Ok(reason.map(|reason| View::Ended(word(reason).unwrap_or(Closing::Closed))))
}

pub(super) fn messages(
    connection: &Connection,
    room: RoomId,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<Arc<Said>>> {
    // SQLite counts to 2^63; no log is longer.
    let after = after.min(i64::MAX.unsigned_abs());
    connection
        .prepare_cached(
            "SELECT seq, seat, client_id, text, at FROM messages
             WHERE conversation_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        )?
        .query_map(params![room.0, after, limit], |row| {
            Ok(Arc::new(Said {
                room,
                seq: row.get(0)?,
                seat: row.get(1)?,
                id: row.get(2)?,
                text: row.get(3)?,
                at: row.get(4)?,
            }))
        })?
        .collect()
}

/// Writes what was said and which rooms ended, within the transaction that is open on `connection`.
pub(super) fn write(
    connection: &Connection,
    live: &LiveRooms,
    now: Millis,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO messages (conversation_id, seq, seat, client_id, text, at)
         VALUES (?, ?, ?, ?, ?, ?)",
    )?;
    // What was said in a room that has ended since is not stored at all.
    for said in live.said.iter().filter(|said| !live.ended.contains_key(&said.room)) {
        let Said { room, seq, seat, id, text, at } = said.as_ref();
        insert.execute(params![room.0, seq, seat, id, text, at])?;
    }
    for (room, why) in &live.ended {
        connection
            .prepare_cached("UPDATE conversations SET ended_for = ?, ended_at = coalesce(ended_at, ?) WHERE id = ?")?
            .execute(params![why.as_str(), now, room.0])?;
        connection
            .prepare_cached("DELETE FROM messages WHERE conversation_id = ?")?
            .execute([room.0])?;
    }
    Ok(())
}
