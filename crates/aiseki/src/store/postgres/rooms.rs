//! Writing rooms, and burying those that are given up.
//!
//! The usual batch is one statement. What it leaves out is looked at by a second one, because a
//! statement does not see what others commit while it runs. What cannot be written together is
//! written in halves, and in the end room by room.

use std::collections::{HashMap, HashSet};

use aiseki_lobby::{Reservation, RoomId, Seat, SessionId};
use deadpool_postgres::Object;
use uuid::Uuid;

use super::link::{Cause, Failure, Link, explain, is_taken};
use super::{seats, sql, uuid};
use crate::port::Unavailable;
use crate::records::Written;

/// Between a refusal and the look at who is in the way, that person may have left, and somebody else
/// may come. So often is that tried again.
const ATTEMPTS: usize = 5;

/// What is there of a room.
enum Found {
    Live(Vec<SessionId>),
    Ended,
    Tombstone,
}

pub(super) async fn write(link: &Link, rooms: &[Reservation]) -> Result<Vec<Written>, Unavailable> {
    if rooms.is_empty() {
        return Ok(Vec::new());
    }
    link.within("writing rooms", write_all(link, rooms)).await
}

async fn write_all(link: &Link, rooms: &[Reservation]) -> Result<Vec<Written>, Unavailable> {
    let together = together(rooms);
    let mut answers: Vec<Option<Written>> = rooms.iter().map(|_| None).collect();
    let mut batches = vec![together];
    while let Some(batch) = batches.pop() {
        let chosen: Vec<&Reservation> = batch.iter().map(|i| &rooms[*i]).collect();
        match link.run("writing rooms", async |client| attempt(client, &chosen).await).await {
            Ok(written) => {
                for (i, answer) in batch.iter().zip(written) {
                    answers[*i] = answer;
                }
            }
            Err(Failure::Away) => return Err(Unavailable),
            // Another server was faster with one of them, or one of them is impossible. Halving finds
            // it with few statements, and the others are written many at once.
            Err(Failure::Refused(_)) if batch.len() > 1 => {
                let (first, second) = batch.split_at(batch.len() / 2);
                batches.extend([second.to_vec(), first.to_vec()]);
            }
            // It gets its answer on its own.
            Err(Failure::Refused(_)) => {}
        }
    }
    // In the order of the batch, so that of two rooms with one person the first is written.
    for (i, room) in rooms.iter().enumerate() {
        if answers[i].is_none() {
            answers[i] = Some(write_one(link, room).await?);
        }
    }
    Ok(answers.into_iter().flatten().collect())
}

/// Which rooms can be written by one statement: those that name no person and no room of one that
/// stands before them. Every person is noted, also of a room that is put aside: the third waits for
/// the second.
fn together(rooms: &[Reservation]) -> Vec<usize> {
    let (mut people, mut ids) = (HashSet::new(), HashSet::new());
    let mut fresh = |i: &usize| {
        let room = &rooms[*i];
        let first = ids.insert(room.room);
        room.people.iter().fold(first, |first, person| people.insert(person.session) && first)
    };
    (0..rooms.len()).filter(|i| fresh(i)).collect()
}

/// Writes these rooms with one statement, and answers for those for which that settles it.
async fn attempt(
    client: &mut Object,
    rooms: &[&Reservation],
) -> Result<Vec<Option<Written>>, Cause> {
    let written = insert(client, rooms).await?;
    let left: Vec<&Reservation> =
        rooms.iter().filter(|room| !written.contains(&room.room)).copied().collect();
    let found = find(client, &left).await?;
    let absent: Vec<SessionId> = left
        .iter()
        .filter(|room| !found.contains_key(&room.room))
        .flat_map(|room| room.people.iter().map(|person| person.session))
        .collect();
    let held: HashMap<SessionId, Seat> = seats::read(client, &absent).await?.into_iter().collect();
    let answer = |room: &&Reservation| {
        if written.contains(&room.room) {
            return Some(Written::Live(room.people.iter().map(|person| person.session).collect()));
        }
        if let Some(found) = found.get(&room.room) {
            return Some(found.answer());
        }
        let sessions = room.people.iter().map(|person| person.session);
        let held: Vec<(SessionId, Seat)> =
            sessions.filter_map(|session| Some((session, *held.get(&session)?))).collect();
        // Nobody is in the way any more: it is tried once more on its own.
        (!held.is_empty()).then_some(Written::Occupied(held))
    };
    Ok(rooms.iter().map(answer).collect())
}

async fn write_one(link: &Link, room: &Reservation) -> Result<Written, Unavailable> {
    for _ in 0..ATTEMPTS {
        let attempted =
            link.run("writing a room", async |client| attempt(client, &[room]).await).await;
        match attempted {
            Ok(answers) => {
                if let Some(answer) = answers.into_iter().flatten().next() {
                    return Ok(answer);
                }
            }
            Err(Failure::Away) => return Err(Unavailable),
            Err(Failure::Refused(error)) if is_taken(&error) && !repeats(room) => {}
            Err(Failure::Refused(error)) => return Ok(refused(room, &error)),
        }
    }
    tracing::warn!(room = %room.room, "its people's seats change too fast for a room to be written");
    Err(Unavailable)
}

/// Whether a room names a person twice, which no retry makes possible.
fn repeats(room: &Reservation) -> bool {
    let mut people = HashSet::new();
    !room.people.iter().all(|person| people.insert(person.session))
}

fn refused(room: &Reservation, error: &tokio_postgres::Error) -> Written {
    let cause = explain(error);
    tracing::error!(room = %room.room, cause, "the database refused to write a room");
    Written::Refused
}

pub(super) async fn bury(link: &Link, rooms: &[Reservation]) -> Result<Vec<Written>, Unavailable> {
    link.within("burying rooms", bury_each(link, rooms)).await
}

async fn bury_each(link: &Link, rooms: &[Reservation]) -> Result<Vec<Written>, Unavailable> {
    let all: Vec<&Reservation> = rooms.iter().collect();
    match link.run("burying rooms", async |client| bury_all(client, &all).await).await {
        Ok(answers) => return Ok(answers),
        Err(Failure::Away) => return Err(Unavailable),
        Err(Failure::Refused(_)) => {}
    }
    let mut answers = Vec::new();
    for room in rooms {
        answers.push(
            match link.run("burying a room", async |client| bury_all(client, &[room]).await).await {
                Ok(mut one) => one.pop().unwrap_or(Written::Refused),
                Err(Failure::Away) => return Err(Unavailable),
                Err(Failure::Refused(error)) => refused(room, &error),
            },
        );
    }
    Ok(answers)
}

async fn bury_all(client: &mut Object, rooms: &[&Reservation]) -> Result<Vec<Written>, Cause> {
    let (ids, topics, sizes) = columns(rooms);
    let statement = client.prepare_cached(sql::BURY_ROOMS).await?;
    client.query(&statement, &[&ids, &topics, &sizes]).await?;
    // A new statement sees what was there, whoever wrote it and when.
    let found = find(client, rooms).await?;
    let answer = |room: &&Reservation| found.get(&room.room).map_or(Written::Buried, Found::answer);
    Ok(rooms.iter().map(answer).collect())
}

async fn insert(client: &mut Object, rooms: &[&Reservation]) -> Result<HashSet<RoomId>, Cause> {
    let (ids, topics, sizes) = columns(rooms);
    let count = rooms.iter().map(|room| room.people.len()).sum();
    let mut people_rooms: Vec<Uuid> = Vec::with_capacity(count);
    let mut sessions: Vec<Uuid> = Vec::with_capacity(count);
    let mut seats: Vec<i16> = Vec::with_capacity(count);
    let mut requested: Vec<i16> = Vec::with_capacity(count);
    for room in rooms {
        for (seat, person) in (1..).zip(&room.people) {
            people_rooms.push(uuid(room.room.0));
            sessions.push(uuid(person.session.0));
            seats.push(seat);
            requested.push(person.requested.into());
        }
    }
    let statement = client.prepare_cached(sql::WRITE_ROOMS).await?;
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
        [&ids, &topics, &sizes, &people_rooms, &sessions, &seats, &requested];
    let rows = client.query(&statement, &parameters).await?;
    Ok(rows.iter().map(|row| RoomId(row.get::<_, Uuid>(0).into_bytes())).collect())
}

fn columns(rooms: &[&Reservation]) -> (Vec<Uuid>, Vec<i64>, Vec<i16>) {
    let ids = rooms.iter().map(|room| uuid(room.room.0)).collect();
    let topics = rooms.iter().map(|room| room.topic.0).collect();
    let sizes = rooms.iter().map(|room| room.size().into()).collect();
    (ids, topics, sizes)
}

async fn find(
    client: &mut Object,
    rooms: &[&Reservation],
) -> Result<HashMap<RoomId, Found>, Cause> {
    if rooms.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<Uuid> = rooms.iter().map(|room| uuid(room.room.0)).collect();
    let statement = client.prepare_cached(sql::ROOMS).await?;
    let rows = client.query(&statement, &[&ids]).await?;
    let found = rows.iter().map(|row| {
        let people = row.get::<_, Vec<Uuid>>(3);
        let found = match (row.get(1), row.get(2)) {
            (true, false) => Found::Tombstone,
            (true, true) => Found::Ended,
            (false, _) => {
                Found::Live(people.into_iter().map(|id| SessionId(id.into_bytes())).collect())
            }
        };
        (RoomId(row.get::<_, Uuid>(0).into_bytes()), found)
    });
    Ok(found.collect())
}

impl Found {
    fn answer(&self) -> Written {
        match self {
            Self::Live(people) => Written::Live(people.clone()),
            Self::Ended => Written::Ended,
            Self::Tombstone => Written::Buried,
        }
    }
}
