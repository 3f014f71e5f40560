//! What an examination asks of Redis. Nothing here writes: the scripts say so to the server, which
//! would refuse it.

use std::collections::HashMap;

use aiseki_lobby::{Millis, Policy, RoomId, SessionId};
use aiseki_mq::{Link, Lists, ListsOptions, Metrics, Queue as _, QueueName, Server, Stats};
use redis::Value;

use super::check::LAYOUT;
use super::keys::Keys;
use super::words::{self, Words};
use super::{TIMEOUTS, alarm_width, scripts, tick_every, untended};
use crate::clock::{Clock, Stopwatch};
use crate::doctor::{Finding, good, note, wrong};
use crate::duration::Shown;
use crate::rooms::RoomRules;

/// People or keys in one page.
const PAGE: usize = 500;
/// Pages of a queue, of the reservations and of the keys that are looked at; then a note says so.
const PAGES: usize = 400;
/// What is overdue by less than this is on its way.
const LATE: Millis = 10_000;
/// Round trips that are timed.
const TRIPS: usize = 5;
/// Above this a round trip is slow: every join waits for several.
const SLOW_MS: f64 = 10.0;

/// A Redis to be looked at.
pub struct Examination {
    server: Server,
    link: Link,
    keys: Keys,
    policy: Policy,
    policy_text: String,
    eviction_accepted: bool,
}

/// What a look at the namespace as a whole has found.
pub struct Looked {
    /// What is to be said.
    pub findings: Vec<Finding>,
    /// What the server's clock is ahead of this machine's, in milliseconds.
    pub ahead: i64,
    /// Whether all live seats are known to be there.
    pub seats_known: bool,
}

/// A page of seats, and where the next begins; none at the end.
pub struct Page {
    /// Who sits where.
    pub seats: Vec<(SessionId, RoomId)>,
    /// People who wait and stand in no queue.
    pub astray: Vec<SessionId>,
    /// The next page.
    pub next: Option<u64>,
}

/// Why there is no answer, in one clause.
type Asked<T> = Result<T, String>;

impl Examination {
    /// Of the Redis at this place, for a server with this policy.
    pub fn new(
        server: Server,
        namespace: &str,
        policy: &Policy,
        rooms: RoomRules,
        rematch_after: Millis,
        eviction_accepted: bool,
    ) -> Self {
        let server = server.with_timeouts(TIMEOUTS);
        let width = alarm_width(policy, false);
        let untended = untended(policy, tick_every(policy));
        let text = words::policy(policy, width, untended, rooms, rematch_after);
        Self {
            link: Link::new(server.clone(), Metrics::default()),
            server,
            keys: Keys::new(namespace),
            policy: policy.clone(),
            policy_text: text,
            eviction_accepted,
        }
    }

    /// The server itself: version, settings, memory, replication.
    pub async fn server(&self) -> Asked<Vec<Finding>> {
        let mut findings = aiseki_mq::doctor::examine_server(&self.server).await.map_err(said)?;
        for finding in &mut findings {
            if self.eviction_accepted && finding.subject == "eviction" {
                finding.level = finding.level.min(aiseki_mq::doctor::Level::Note);
            }
        }
        if let Some(full) = self.memory().await? {
            findings.retain(|finding| finding.subject != "memory");
            findings.push(full);
        }
        let mut fastest = f64::INFINITY;
        for _ in 0..TRIPS {
            let watch = Stopwatch::start();
            self.link.query(&redis::cmd("PING")).await.map_err(said)?;
            fastest = fastest.min(watch.elapsed().as_secs_f64() * 1e3);
        }
        findings.push(crate::doctor::latency("Redis", fastest, SLOW_MS));
        Ok(findings)
    }

    /// Whether a server has no memory left, which is not seen before somebody joins.
    async fn memory(&self) -> Asked<Option<Finding>> {
        let mut info = redis::cmd("INFO");
        info.arg("memory");
        let answer = self.link.query(&info).await.map_err(said)?;
        // Each node of a cluster has its own.
        let answers = match answer {
            Value::Map(nodes) => nodes.into_iter().map(|(_, answer)| answer).collect(),
            answer => vec![answer],
        };
        for answer in answers {
            let text: String = redis::from_redis_value(answer).map_err(said)?;
            let field = |name: &str| {
                text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            };
            let number = |name| field(name).and_then(|text| text.trim().parse::<u64>().ok());
            let (used, limit) = (number("used_memory"), number("maxmemory").unwrap_or(0));
            let evicts = field("maxmemory_policy").is_some_and(|it| it.trim() != "noeviction");
            if let Some(used) = used.filter(|used| limit > 0 && *used >= limit && !evicts) {
                let text = format!(
                    "{used} bytes used and maxmemory is {limit}: nobody can join and nothing can be \
                     said; raise maxmemory, or free what others keep there"
                );
                return Ok(Some(wrong("memory", text)));
            }
        }
        Ok(None)
    }

    /// The namespace as a whole.
    pub async fn namespace(&self) -> Asked<Looked> {
        let keys = &self.keys;
        let call = scripts::DOCTOR.on(&[
            keys.state().to_owned(),
            keys.queues().to_owned(),
            keys.policy(),
            keys.recorder().to_owned(),
            keys.seats(),
            keys.layout(),
        ]);
        let clock = Clock::start(0);
        let before = clock.now();
        let mut words = self.run(&scripts::DOCTOR, &call).await?;
        let after = clock.now();
        let now: Millis = words.number().map_err(said)?;
        let mut text = || words.text().map_err(said);
        let (run, known, layout, policy, tended) = (text()?, text()?, text()?, text()?, text()?);
        let recorder = text()? == "1";
        let queues = text()?;
        let ahead = now.cast_signed() - (before + (after - before) / 2).cast_signed();
        let mut findings = vec![layout_of(&layout)];
        let ticked = tended.parse::<Millis>().ok().map(|at| now.saturating_sub(at));
        let late = untended(&self.policy, tick_every(&self.policy)).max(LATE);
        findings.push(match ticked {
            None => note("servers", "no server has worked in this namespace yet: start one"),
            Some(ago) if ago > late && queues != "0" => wrong(
                "servers",
                format!("people wait, and no server has worked for {}: start one", Shown(ago)),
            ),
            Some(ago) if ago > late => {
                note("servers", format!("no server has worked for {}: start one", Shown(ago)))
            }
            Some(_) => good("servers", format!("at work; {queues} queues have people")),
        });
        let at_work = ticked.is_some_and(|ago| ago <= late);
        findings.push(match (recorder, at_work) {
            (true, _) => good("recorder", "rooms can be written: they are formed"),
            (false, true) => wrong(
                "recorder",
                "no server can write rooms to PostgreSQL, so none is formed and people go on \
                 waiting: look at the servers' way to the database",
            ),
            (false, false) => note("recorder", "nobody writes rooms while no server works"),
        });
        findings.push(self.policy_of(&policy));
        let seats_known = !run.is_empty() && run == known;
        findings.push(match (seats_known, at_work) {
            (true, _) => good("seats", "the live seats were read into this run of Redis"),
            (false, true) => note(
                "seats",
                "Redis has started anew and a server is reading the live seats back; if this stays \
                 for a minute, look at the servers' logs",
            ),
            (false, false) => {
                note("seats", "the first server that starts will read the live seats back")
            }
        });
        Ok(Looked { findings, ahead, seats_known })
    }

    fn policy_of(&self, theirs: &str) -> Finding {
        if theirs.is_empty() {
            return note("policy", "no server has said yet how it seats people");
        }
        if theirs == self.policy_text {
            return good("policy", "the last server that began seats people by these settings");
        }
        wrong(
            "policy",
            format!(
                "the last server that began seats people otherwise than these settings would ({}): \
                 give all servers the same room types and times",
                words::policies_differ(theirs, &self.policy_text)
            ),
        )
    }

    /// Rooms that were formed and are not written yet.
    pub async fn formed_rooms(&self) -> Asked<Vec<Finding>> {
        let name = QueueName::new(self.keys.rooms()).map_err(said)?;
        let queue = Lists::new(&self.server, name, ListsOptions::default());
        let Stats { ready, delayed, leased, oldest_ms, .. } = queue.stats().await.map_err(said)?;
        let text = format!("{ready} to be written, {leased} being written, {delayed} put off");
        let age = Shown(oldest_ms / 1_000 * 1_000);
        let mut findings = vec![if ready > 0 && oldest_ms > LATE {
            let text = format!(
                "{text}; the oldest since {age}: no server takes them, look at PostgreSQL and at the \
                 servers' logs"
            );
            wrong("formed rooms", text)
        } else {
            good("formed rooms", text)
        }];
        findings.push(self.reservations().await?);
        Ok(findings)
    }

    async fn reservations(&self) -> Asked<Finding> {
        let now = self.time().await?;
        let (mut count, mut overdue, mut strange) = (0_usize, Vec::new(), 0_usize);
        let (mut cursor, mut pages) = (0_u64, 0);
        loop {
            let mut scan = redis::cmd("HSCAN");
            scan.arg(self.keys.reservations()).arg(cursor).arg("COUNT").arg(PAGE);
            let mut answer =
                Words::of(self.link.query(&scan).await.map_err(said)?).map_err(said)?;
            cursor = answer.number().map_err(said)?;
            let mut page = answer.list().map_err(said)?;
            while !page.is_empty() {
                let (room, text) = (page.text().map_err(said)?, page.text().map_err(said)?);
                count += 1;
                match words::reservation(&text) {
                    Ok(found) => {
                        let ends = found.formed_at.saturating_add(self.policy.reservation_ttl);
                        if ends.saturating_add(LATE) < now {
                            overdue.push(room);
                        }
                    }
                    Err(_) => strange += 1,
                }
            }
            pages += 1;
            if cursor == 0 || pages == PAGES {
                break;
            }
        }
        Ok(if strange > 0 {
            let text = format!(
                "{strange} of {count} are not readable here: servers of another version are at work"
            );
            wrong("reservations", text)
        } else if overdue.is_empty() {
            good("reservations", format!("{count}, none older than its time"))
        } else {
            let text = format!(
                "{} of {count} are older than their time ({}): their people are held although no \
                 room comes of it; a running server that reaches PostgreSQL puts them back",
                overdue.len(),
                crate::doctor::some_of(&overdue)
            );
            wrong("reservations", text)
        })
    }

    /// Whether everybody who stands in a queue has a wait.
    pub async fn queues(&self) -> Asked<Finding> {
        let mut call = scripts::QUEUES.on(&[self.keys.queues().to_owned()]);
        call.arg(0);
        let mut words = self.run(&scripts::QUEUES, &call).await?;
        let (mut people, mut without, mut left_out) = (0_usize, Vec::new(), false);
        let mut pages = 0;
        while !words.is_empty() {
            let queue = words.text().map_err(said)?;
            let (_, _) = (words.text().map_err(said)?, words.text().map_err(said)?);
            let mut cursor = 0_u64;
            loop {
                if pages == PAGES {
                    left_out = true;
                    break;
                }
                pages += 1;
                let mut call = scripts::DOCTOR_QUEUE.on(&[self.keys.state().to_owned()]);
                call.arg(&queue).arg(cursor).arg(PAGE);
                let mut page = self.run(&scripts::DOCTOR_QUEUE, &call).await?;
                cursor = page.number().map_err(said)?;
                people += page.number::<usize>().map_err(said)?;
                while !page.is_empty() {
                    without.push(page.text().map_err(said)?);
                }
                if cursor == 0 {
                    break;
                }
            }
        }
        let looked = if left_out { " that were looked at (there are more)" } else { "" };
        Ok(if without.is_empty() {
            good("queues", format!("each of the {people} people{looked} in queues has a wait"))
        } else {
            let text = format!(
                "{} of {people} people{looked} stand in a queue without a wait ({}): somebody removed \
                 keys by hand; restart one server, which looks at everybody anew",
                without.len(),
                crate::doctor::some_of(&without)
            );
            wrong("queues", text)
        })
    }

    /// A page of seats from here on; the first begins at 0.
    pub async fn page(&self, from: u64) -> Asked<Page> {
        let mut call = scripts::DOCTOR_KEYS.on(&[self.keys.state().to_owned()]);
        call.arg(from).arg(PAGE);
        let mut words = self.run(&scripts::DOCTOR_KEYS, &call).await?;
        let next = words.number::<u64>().map_err(said)?;
        let next = (next != 0).then_some(next);
        let mut page = Page { seats: Vec::new(), astray: Vec::new(), next };
        while !words.is_empty() {
            let kind = words.text().map_err(said)?;
            let session = words.session().map_err(said)?;
            let rest = words.text().map_err(said)?;
            match kind.as_str() {
                "seat" => page.seats.push((session, words::room(&rest).map_err(said)?)),
                _ => page.astray.push(session),
            }
        }
        Ok(page)
    }

    /// Where these people sit.
    pub async fn seats_of(&self, people: &[SessionId]) -> Asked<HashMap<SessionId, RoomId>> {
        let mut call = scripts::DOCTOR_SEATS.on(&[self.keys.state().to_owned()]);
        for session in people {
            call.arg(session.to_string());
        }
        let mut words = self.run(&scripts::DOCTOR_SEATS, &call).await?;
        let mut seats = HashMap::new();
        for session in people {
            let room = words.text().map_err(said)?;
            if !room.is_empty() {
                seats.insert(*session, words::room(&room).map_err(said)?);
            }
        }
        Ok(seats)
    }

    async fn time(&self) -> Asked<Millis> {
        let answer = self.link.query(&redis::cmd("TIME")).await.map_err(said)?;
        // Nodes of a cluster are asked together; any of them will do.
        let answer = match answer {
            Value::Map(mut nodes) if !nodes.is_empty() => nodes.swap_remove(0).1,
            answer => answer,
        };
        let mut words = Words::of(answer).map_err(said)?;
        Ok(words.number::<Millis>().map_err(said)? * 1_000)
    }

    async fn run(&self, script: &aiseki_mq::Script, call: &redis::Cmd) -> Asked<Words> {
        Words::of(self.link.run(script, call).await.map_err(said)?).map_err(said)
    }
}

fn layout_of(text: &str) -> Finding {
    match text.parse::<u32>() {
        Err(_) => note("layout", "nothing is here yet"),
        Ok(layout) if layout == LAYOUT => good("layout", format!("version {layout}")),
        Ok(layout) => wrong(
            "layout",
            format!(
                "version {layout}, and this program knows {LAYOUT}: servers of another version have \
                 used this namespace; upgrade, or use another namespace"
            ),
        ),
    }
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}
