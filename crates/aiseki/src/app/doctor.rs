//! Looks for what is wrong with the stores of a configuration.

use std::collections::HashMap;

use aiseki_lobby::{RoomId, SessionId};

use crate::config::{Config, Eviction};
use crate::doctor::{Finding, clocks, good, note, some_of, wrong};
use crate::store::postgres::{self, NoExamination};
use crate::store::{embedded, redis};

/// Pages of seats that are compared, on each side; then a note says so.
const PAGES: usize = 1_000;
/// A seat that is on one side only is looked at so often: it may just be taken or given up.
const LOOKS: usize = 4;
const BETWEEN_LOOKS: std::time::Duration = std::time::Duration::from_millis(250);

/// What was found in one place.
pub struct Chapter {
    /// Where.
    pub store: &'static str,
    /// What.
    pub findings: Vec<Finding>,
}

/// Examines the stores of a configuration. Changes nothing, and ends soon, whatever it meets.
pub async fn examine(config: &Config) -> anyhow::Result<Vec<Chapter>> {
    let (Some(redis_url), Some(database_url)) = (&config.redis_url, &config.database_url) else {
        let directory = config.data_dir.clone();
        let findings = tokio::task::spawn_blocking(move || embedded::examine(&directory)).await?;
        return Ok(vec![Chapter { store: "embedded", findings }]);
    };
    let waiting = redis::Examination::new(
        aiseki_mq::Server::new(redis_url.expose())?,
        &config.namespace,
        &config.policy,
        super::stores::room_rules(config),
        super::stores::rematch_after(config),
        config.redis_eviction == Eviction::Accept,
    );
    let mut of_redis = Vec::new();
    let looked = look_at_redis(&waiting, &mut of_redis).await;
    let mut of_postgres = Vec::new();
    let records = look_at_postgres(database_url.expose(), &mut of_postgres).await;
    let mut both = Vec::new();
    if let (Ok(looked), Some((records, ahead, tables))) = (&looked, &records) {
        both.push(clocks(&[("Redis", looked.ahead), ("PostgreSQL", *ahead)]));
        let compared = match (looked.seats_known, tables) {
            (true, true) => compare_seats(&waiting, records, &config.namespace).await,
            _ => Ok(vec![note(
                "seats",
                "not compared: the live seats have not been read into this run of Redis yet",
            )]),
        };
        both.extend(compared.unwrap_or_else(|error| {
            vec![wrong("seats", format!("could not be compared: {error}"))]
        }));
    }
    if let Err(error) = looked {
        of_redis.push(away("Redis", &error));
    }
    Ok(vec![
        Chapter { store: "redis", findings: of_redis },
        Chapter { store: "postgresql", findings: of_postgres },
        Chapter { store: "both", findings: both },
    ])
}

fn away(store: &str, why: &str) -> Finding {
    let text = format!(
        "{store} does not answer as it should ({why}): is it running, and are its address, user and \
         password right?"
    );
    wrong("reachable", text)
}

async fn look_at_redis(
    waiting: &redis::Examination,
    findings: &mut Vec<Finding>,
) -> Result<redis::Looked, String> {
    findings.extend(waiting.server().await?);
    let looked = waiting.namespace().await?;
    findings.extend(looked.findings.iter().cloned());
    findings.extend(waiting.formed_rooms().await?);
    findings.push(waiting.queues().await?);
    Ok(looked)
}

/// The database, what its clock is ahead, and whether it has tables to be asked.
async fn look_at_postgres(
    url: &str,
    findings: &mut Vec<Finding>,
) -> Option<(postgres::Examination, i64, bool)> {
    let records = match postgres::Examination::begin(url).await {
        Ok(records) => records,
        Err(NoExamination::Url(error)) => {
            findings.push(wrong("reachable", format!("the database URL cannot be used: {error}")));
            return None;
        }
        Err(NoExamination::Away(why)) => {
            findings.push(away("PostgreSQL", &why));
            return None;
        }
    };
    let looked = async {
        findings.extend(records.server().await?);
        let ahead = records.ahead().await?;
        let (schema, tables) = records.schema().await?;
        findings.push(schema);
        if tables {
            findings.extend(records.rooms().await?);
        }
        Ok::<_, String>((ahead, tables))
    };
    match looked.await {
        Ok((ahead, tables)) => Some((records, ahead, tables)),
        Err(why) => {
            findings.push(away("PostgreSQL", &why));
            None
        }
    }
}

type Seats = HashMap<SessionId, RoomId>;

/// Seats without rows, rows without seats, and people who wait and stand in no queue.
async fn compare_seats(
    waiting: &redis::Examination,
    records: &postgres::Examination,
    namespace: &str,
) -> Result<Vec<Finding>, String> {
    let (mut without_row, mut astray, mut count) = (Vec::new(), Vec::new(), 0);
    let (mut from, mut pages, mut whole) = (Some(0), 0, true);
    while let Some(cursor) = from {
        let page = waiting.page(cursor).await?;
        let people: Vec<SessionId> = page.seats.iter().map(|(session, _)| *session).collect();
        count += people.len();
        if !people.is_empty() {
            let rows = records.seats_of(&people).await?;
            let lacking =
                page.seats.iter().filter(|(session, room)| rows.get(session) != Some(room));
            without_row.extend(lacking.map(|(session, _)| *session));
        }
        astray.extend(page.astray);
        pages += 1;
        whole &= pages < PAGES || page.next.is_none();
        from = page.next.filter(|_| pages < PAGES);
    }
    let (mut without_seat, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let rows = records.seats_after(after).await?;
        let Some((last, _)) = rows.last() else { break };
        if pages == PAGES {
            whole = false;
            break;
        }
        (after, pages) = (Some(*last), pages + 1);
        let people: Vec<SessionId> = rows.iter().map(|(session, _)| *session).collect();
        let seats = waiting.seats_of(&people).await?;
        let lacking = rows.iter().filter(|(session, room)| seats.get(session) != Some(room));
        without_seat.extend(lacking.map(|(session, _)| *session));
    }
    without_row.sort_unstable();
    without_row.dedup();
    let apart = |seat: Option<&RoomId>, row: Option<&RoomId>| seat.is_some() && seat != row;
    let without_row = look_again(waiting, records, without_row, &apart).await?;
    let without_seat =
        look_again(waiting, records, without_seat, &|seat, row| apart(row, seat)).await?;
    let mut findings = Vec::new();
    if !whole {
        findings.push(note("seats", "there are more seats than were looked at"));
    }
    if !without_row.is_empty() {
        let text = format!(
            "{} people sit in Redis and not in PostgreSQL ({}): rows were changed by hand, or a \
             fail-over lost them; `DEL {{{namespace}}}:matching:room:SESSION` sets a person free",
            without_row.len(),
            some_of(&without_row)
        );
        findings.push(wrong("seats", text));
    }
    if !without_seat.is_empty() {
        let text = format!(
            "{} people sit in PostgreSQL and not in Redis ({}): `DEL {{{namespace}}}:seats` makes a \
             server read them back within a second",
            without_seat.len(),
            some_of(&without_seat)
        );
        findings.push(wrong("seats", text));
    }
    if !astray.is_empty() {
        let text = format!(
            "{} people wait and stand in no queue ({}): nobody would ever sit with them until their \
             wait ends; `DEL {{{namespace}}}:matching:waiting:SESSION` lets a person join anew",
            astray.len(),
            some_of(&astray)
        );
        findings.push(wrong("waits", text));
    }
    if findings.is_empty() {
        let text = format!("{count} seats, each with its row, and no row without its seat");
        findings.push(good("seats", text));
    }
    Ok(findings)
}

/// Of these people those for whom it stays so.
async fn look_again(
    waiting: &redis::Examination,
    records: &postgres::Examination,
    mut suspects: Vec<SessionId>,
    apart: &(dyn Fn(Option<&RoomId>, Option<&RoomId>) -> bool + Sync),
) -> Result<Vec<SessionId>, String> {
    for _ in 0..LOOKS {
        if suspects.is_empty() {
            break;
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
        let mut left = Vec::new();
        for some in suspects.chunks(500) {
            let seats: Seats = waiting.seats_of(some).await?;
            let rows: Seats = records.seats_of(some).await?;
            let still = |session: &&SessionId| apart(seats.get(session), rows.get(session));
            left.extend(some.iter().filter(still));
        }
        suspects = left;
    }
    Ok(suspects)
}
