//! What happened, as rows of the file.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

use aiseki_lobby::{
    Change, IdleReason, KeptPlace, Millis, REASON_KEPT, Reservation, RoomId, SessionId,
    TicketNumber,
};
use rusqlite::{Connection, params};

use super::engine::Engine;

/// Rows of old departures removed in one commit, at most.
const DEPARTURES_PRUNED: u32 = 1000;

/// Writes the effects of the changes within the transaction that is open on `connection`.
pub(super) fn write(
    connection: &Connection,
    engine: &Engine,
    next_ticket: TicketNumber,
    now: Millis,
) -> rusqlite::Result<()> {
    let Engine { changes, entered_from, dismissed, .. } = engine;
    let gone = tickets_gone(changes);
    let mut entered = HashSet::new();
    let mut insert = connection.prepare_cached(
        "INSERT INTO tickets (number, session, topic_id, room_type, since, address, place)
         VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?;
    for change in changes {
        let Change::Entered { session, ticket, queue, since } = change else { continue };
        entered.insert(*ticket);
        // Somebody who is seated or gone in the same commit never had a row.
        if !gone.contains(ticket) {
            let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            let address = entered_from.get(session).unwrap_or(&unknown).to_string();
            insert.execute(params![
                ticket.0,
                session.0,
                queue.topic.0,
                queue.room_type,
                since,
                address,
                engine
                    .lobby
                    .standing(*session)
                    .map(|it| it.place)
                    .filter(|it| it != ticket)
                    .map(|it| it.0),
            ])?;
        }
    }
    if !entered.is_empty() {
        connection
            .prepare_cached("UPDATE meta SET value = ? WHERE key = 'next_ticket'")?
            .execute([next_ticket.0])?;
    }
    let mut delete = connection.prepare_cached("DELETE FROM tickets WHERE number = ?")?;
    for ticket in gone.difference(&entered) {
        delete.execute([ticket.0])?;
    }
    for change in changes {
        match change {
            Change::Entered { .. } | Change::Returned { .. } | Change::Seated { .. } => {}
            Change::Reserved(reservation) => {
                write_conversation(connection, engine, reservation)?;
            }
            Change::Dropped { session, reason, .. } => {
                write_departure(connection, *session, *reason, None, now)?;
            }
            Change::Vacated { room, session } => {
                vacate(connection, *room, *session, now)?;
                let reason = dismissed.get(session).copied().unwrap_or(IdleReason::Left);
                write_departure(connection, *session, reason, None, now)?;
            }
            Change::Ended { room, people } => {
                connection
                    .prepare_cached("UPDATE conversations SET ended_at = ? WHERE id = ?")?
                    .execute(params![now, room.0])?;
                for session in people {
                    vacate(connection, *room, *session, now)?;
                    // Whoever has taken it up in the same commit has none any more.
                    let kept = engine.lobby.kept_place(*session).filter(|it| it.room == *room);
                    write_departure(connection, *session, IdleReason::RoomClosed, kept, now)?;
                }
            }
        }
    }
    for (room, session) in &engine.came {
        connection
            .prepare_cached(
                "UPDATE participants SET came = 1 WHERE conversation_id = ? AND session_id = ?",
            )?
            .execute(params![room.0, session.0])?;
    }
    for (by, whom) in &engine.blocked {
        connection
            .prepare_cached(
                "INSERT OR IGNORE INTO blocks (blocker, blocked, created_at) VALUES (?, ?, ?)",
            )?
            .execute(params![by.0, whom.0, now])?;
    }
    Ok(())
}

fn tickets_gone(changes: &[Change]) -> HashSet<TicketNumber> {
    let mut gone = HashSet::new();
    for change in changes {
        match change {
            Change::Dropped { ticket, .. } => {
                gone.insert(*ticket);
            }
            Change::Reserved(reservation) => {
                gone.extend(reservation.people.iter().map(|person| person.ticket));
            }
            _ => {}
        }
    }
    gone
}

fn write_conversation(
    connection: &Connection,
    engine: &Engine,
    reservation: &Reservation,
) -> rusqlite::Result<()> {
    let Reservation { room, topic, formed_at, .. } = reservation;
    connection
        .prepare_cached(
            "INSERT INTO conversations (id, topic_id, size, created_at) VALUES (?, ?, ?, ?)",
        )?
        .execute(params![room.0, topic.0, reservation.size(), formed_at])?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO participants
             (conversation_id, seat, session_id, requested_size, joined_at, waiting_since, place, came)
         VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
    )?;
    for (seat, person) in (1_u8..).zip(&reservation.people) {
        // Somebody who has left in the same commit has no use for the place.
        let stood = engine.lobby.standing(person.session);
        let place = stood.map_or(person.ticket, |stood| stood.place).0;
        let (session, requested) = (person.session.0, person.requested);
        insert.execute(params![
            room.0,
            seat,
            session,
            requested,
            formed_at,
            person.since,
            place
        ])?;
    }
    Ok(())
}

fn vacate(
    connection: &Connection,
    room: RoomId,
    session: SessionId,
    now: Millis,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE participants SET left_at = ?
             WHERE conversation_id = ? AND session_id = ? AND left_at IS NULL",
        )?
        .execute(params![now, room.0, session.0])?;
    Ok(())
}

fn write_departure(
    connection: &Connection,
    session: SessionId,
    reason: IdleReason,
    kept: Option<KeptPlace>,
    now: Millis,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO departures
                 (session, reason, at, offered_room, topic_id, room_type, waited, place)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            session.0,
            reason.as_str(),
            now,
            kept.map(|kept| kept.room.0),
            kept.map(|kept| kept.queue.topic.0),
            kept.map(|kept| kept.queue.room_type),
            kept.map(|kept| kept.waited),
            kept.map(|kept| kept.place.0),
        ])?;
    Ok(())
}

/// Removes departures that are no longer told, a bounded number at a time.
pub(super) fn prune_departures(connection: &Connection, now: Millis) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM departures WHERE number IN (
                 SELECT number FROM departures ORDER BY number LIMIT ?
             ) AND at <= ?",
        )?
        .execute(params![DEPARTURES_PRUNED, now.saturating_sub(REASON_KEPT)])?;
    Ok(())
}
