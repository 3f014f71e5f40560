//! Who sits where, and how seats are given up.

use aiseki_lobby::{Millis, RoomId, Seat, SessionId, TopicId, Vacate};
use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;
use uuid::Uuid;

use super::link::{Cause, Link};
use super::{millis, rows, small, sql, uuid};
use crate::port::Unavailable;
use crate::records::{Departure, EndedRoom, Sitters};

/// A room needs so many people to go on.
const PEOPLE: i64 = 2;
/// Rooms that ended lately, at most: whoever missed more than these has missed more than an announcement.
const LATELY_ENDED: i64 = 50_000;

pub(super) async fn seats_of(
    link: &Link,
    sessions: &[SessionId],
) -> Result<Vec<(SessionId, Seat)>, Unavailable> {
    link.ask("reading seats", async |client| read(client, sessions).await).await
}

pub(super) async fn read(
    client: &mut Object,
    sessions: &[SessionId],
) -> Result<Vec<(SessionId, Seat)>, Cause> {
    if sessions.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = sessions.iter().map(|session| uuid(session.0)).collect();
    let statement = client.prepare_cached(sql::SEATS_OF).await?;
    Ok(client.query(&statement, &[&ids]).await?.iter().map(seat).collect())
}

pub(super) async fn live_seats(
    link: &Link,
    after: Option<SessionId>,
    limit: usize,
) -> Result<Vec<(SessionId, Seat)>, Unavailable> {
    let from = match after {
        None => 0,
        Some(session) => match u128::from_be_bytes(session.0).checked_add(1) {
            Some(next) => next,
            None => return Ok(Vec::new()),
        },
    };
    link.ask("reading all seats", async |client| {
        let statement = client.prepare_cached(sql::LIVE_SEATS).await?;
        let found = client.query(&statement, &[&Uuid::from_u128(from), &rows(limit)]).await?;
        Ok(found.iter().map(seat).collect())
    })
    .await
}

pub(super) async fn give_up(
    link: &Link,
    session: SessionId,
    room: RoomId,
) -> Result<Departure, Unavailable> {
    link.ask("giving up a seat", async |client| {
        let transaction = client.transaction().await?;
        // In a room that has ended nobody holds a seat, and its people are read all the same.
        lock(&transaction, room).await?;
        let statement = transaction.prepare_cached(sql::GIVE_UP_SEAT).await?;
        let row = transaction.query_one(&statement, &[&uuid(room.0), &uuid(session.0)]).await?;
        let everybody = row.get::<_, Vec<Uuid>>(2);
        let mut departure = Departure {
            vacate: if row.get(0) { Vacate::Left } else { Vacate::NotSeated },
            ended_for: Vec::new(),
            everybody: everybody.into_iter().map(|id| SessionId(id.into_bytes())).collect(),
        };
        if departure.vacate == Vacate::Left && row.get::<_, i64>(1) < PEOPLE {
            departure.ended_for = end(&transaction, room).await?;
        }
        transaction.commit().await?;
        Ok(departure)
    })
    .await
}

pub(super) async fn end_room(
    link: &Link,
    room: RoomId,
) -> Result<Option<Vec<SessionId>>, Unavailable> {
    link.ask("ending a room", async |client| {
        let transaction = client.transaction().await?;
        let people = match lock(&transaction, room).await? {
            true => Some(end(&transaction, room).await?),
            false => None,
        };
        transaction.commit().await?;
        Ok(people)
    })
    .await
}

/// Takes the room for this transaction; whether it is live.
async fn lock(transaction: &Transaction<'_>, room: RoomId) -> Result<bool, Cause> {
    let statement = transaction.prepare_cached(sql::LOCK_ROOM).await?;
    let row = transaction.query_opt(&statement, &[&uuid(room.0)]).await?;
    Ok(row.is_some_and(|row| !row.get::<_, bool>(0)))
}

async fn end(transaction: &Transaction<'_>, room: RoomId) -> Result<Vec<SessionId>, Cause> {
    let statement = transaction.prepare_cached(sql::END_ROOM).await?;
    let rows = transaction.query(&statement, &[&uuid(room.0)]).await?;
    Ok(rows.iter().map(|row| session(row, 0)).collect())
}

pub(super) async fn lately_ended(
    link: &Link,
    within: Millis,
) -> Result<Vec<EndedRoom>, Unavailable> {
    // Beyond a year it is all the same, and PostgreSQL's intervals have an end.
    let within = i64::try_from(within.min(365 * 24 * 3_600_000)).unwrap_or(i64::MAX);
    link.ask("reading the rooms that ended lately", async |client| {
        let statement = client.prepare_cached(sql::LATELY_ENDED).await?;
        let rows = client.query(&statement, &[&within, &LATELY_ENDED]).await?;
        Ok(by_room(&rows, |row| row.get(2)))
    })
    .await
}

pub(super) async fn people_of(link: &Link, rooms: &[RoomId]) -> Result<Vec<Sitters>, Unavailable> {
    if rooms.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = rooms.iter().map(|room| uuid(room.0)).collect();
    link.ask("reading the people of rooms", async |client| {
        let statement = client.prepare_cached(sql::PEOPLE_OF).await?;
        let rows = client.query(&statement, &[&ids]).await?;
        Ok(by_room(&rows, |row| row.get::<_, bool>(2).then(|| row.get(3))))
    })
    .await
}

/// Rows of a room and a session each, which are in the order of rooms, with what is to be known of each.
fn by_room<T>(rows: &[Row], of: impl Fn(&Row) -> T) -> Vec<(RoomId, Vec<(SessionId, T)>)> {
    let mut rooms: Vec<(RoomId, Vec<(SessionId, T)>)> = Vec::new();
    for row in rows {
        let room = RoomId(row.get::<_, Uuid>(0).into_bytes());
        let person = (session(row, 1), of(row));
        match rooms.last_mut().filter(|(last, _)| *last == room) {
            Some((_, people)) => people.push(person),
            None => rooms.push((room, vec![person])),
        }
    }
    rooms
}

pub(super) async fn ping(link: &Link) -> Result<(), Unavailable> {
    link.ask("asking whether it answers", async |client| {
        let statement = client.prepare_cached(sql::PING).await?;
        match client.query_one(&statement, &[]).await?.get(0) {
            true => Err(Cause::ReadOnly),
            false => Ok(()),
        }
    })
    .await
}

fn seat(row: &Row) -> (SessionId, Seat) {
    let seat = Seat {
        room: RoomId(row.get::<_, Uuid>(1).into_bytes()),
        topic: TopicId(row.get(2)),
        size: small(row.get(3)),
        requested: small(row.get(4)),
        matched_at: millis(row.get(5)),
    };
    (session(row, 0), seat)
}

fn session(row: &Row, column: usize) -> SessionId {
    SessionId(row.get::<_, Uuid>(column).into_bytes())
}

pub(super) async fn add_block(
    link: &Link,
    by: SessionId,
    whom: SessionId,
) -> Result<(), Unavailable> {
    link.ask("adding a block", async move |client| {
        let statement = client.prepare_cached(sql::ADD_BLOCK).await?;
        client.execute(&statement, &[&uuid(by.0), &uuid(whom.0)]).await?;
        Ok(())
    })
    .await
}

pub(super) async fn blocks(
    link: &Link,
    after: Option<(SessionId, SessionId)>,
    limit: usize,
) -> Result<Vec<(SessionId, SessionId)>, Unavailable> {
    // Nobody is blocked by themselves, so no pair stands before this one.
    let (by, whom) =
        after.map_or((Uuid::nil(), Uuid::nil()), |(by, whom)| (uuid(by.0), uuid(whom.0)));
    link.ask("reading blocks", async move |client| {
        let statement = client.prepare_cached(sql::BLOCKS).await?;
        let found = client.query(&statement, &[&by, &whom, &rows(limit)]).await?;
        let session = |row: &Row, column| SessionId(row.get::<_, Uuid>(column).into_bytes());
        Ok(found.iter().map(|row| (session(row, 0), session(row, 1))).collect())
    })
    .await
}
