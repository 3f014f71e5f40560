//! What a run was like: a table for people, JSON for programs.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aiseki_lobby::Millis;
use serde::Serialize;

use super::history::{How, What};
use super::judge::{Case, Invariant, Kind, Outcome, Violation, kind, times_to_match};
use super::stage::Stage;
use crate::commands::output;

/// Violations of one kind that are printed in full.
const PRINTED: usize = 10;

#[derive(Serialize)]
pub(super) struct Report {
    people: usize,
    topics: usize,
    servers: Vec<String>,
    seed: u64,
    seconds: f64,
    rooms: Vec<RoomsOfKind>,
    time_to_match_ms: Times,
    waits: Waits,
    told: Told,
    network: Network,
    settled_after_ms: u128,
    invariants: Vec<Checked>,
    pub(super) violations: Vec<Broken>,
}

#[derive(Serialize)]
struct RoomsOfKind {
    kind: &'static str,
    size: u8,
    rooms: usize,
    people: usize,
}

#[derive(Serialize)]
struct Times {
    count: usize,
    p50: Millis,
    p90: Millis,
    p99: Millis,
    max: Millis,
}

#[derive(Serialize)]
struct Waits {
    all: usize,
    seated: usize,
    expired: usize,
    dropped: usize,
    cancelled: usize,
    /// Nobody told the person what became of it.
    unknown: usize,
}

#[derive(Serialize)]
struct Told {
    polls: usize,
    long_polls: usize,
    streams: usize,
    sockets: usize,
}

#[derive(Serialize)]
struct Network {
    joins: usize,
    vanished: usize,
    returned: usize,
    moved: usize,
    rate_limited: usize,
    unavailable: usize,
    lost_answers: usize,
    never_admitted: usize,
}

#[derive(Serialize)]
struct Checked {
    name: &'static str,
    sentence: &'static str,
    held: bool,
}

#[derive(Serialize)]
pub(super) struct Broken {
    invariant: &'static str,
    words: String,
}

fn read(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::Relaxed)
}

/// One line while the run goes on.
pub(super) fn line(stage: &Stage) -> String {
    let counts = &stage.counts;
    format!(
        "waiting {:>4}  talking {:>4}  seats given {:>6}  vanished {:>4}  limited {}",
        read(&counts.waiting),
        read(&counts.seated),
        read(&counts.seats),
        read(&counts.vanished),
        read(&counts.limited),
    )
}

impl Report {
    pub(super) fn new(
        case: &Case<'_>,
        stage: &Stage,
        surprises: &[String],
        seed: u64,
        settled_after: Duration,
    ) -> Self {
        let counts = &stage.counts;
        let surprises = surprises
            .iter()
            .map(|words| Violation { invariant: Invariant::Answers, words: words.clone() });
        let violations: Vec<Violation> =
            case.violations().iter().cloned().chain(surprises).collect();
        let held = |invariant| !violations.iter().any(|v| v.invariant == invariant);
        let events = || case.people.iter().flat_map(|person| &person.events);
        let told =
            |by| events().filter(|e| matches!(e.what, What::Told { how, .. } if how == by)).count();
        let outcome = |wanted: fn(&Outcome) -> bool| {
            case.waits.iter().filter(|wait| wanted(&wait.outcome)).count()
        };
        Self {
            people: case.people.len(),
            topics: stage.topics.len(),
            servers: stage.servers.iter().map(ToString::to_string).collect(),
            seed,
            seconds: stage.until.as_secs_f64(),
            rooms: rooms(case),
            time_to_match_ms: times(&times_to_match(case)),
            waits: Waits {
                all: case.waits.len(),
                seated: outcome(|o| matches!(o, Outcome::Seated(_))),
                expired: outcome(
                    |o| matches!(o, Outcome::Ended(reason) if reason == "wait_expired"),
                ),
                dropped: outcome(|o| matches!(o, Outcome::Ended(reason) if reason == "absent")),
                cancelled: outcome(|o| *o == Outcome::Cancelled),
                unknown: outcome(|o| *o == Outcome::Unknown),
            },
            told: Told {
                polls: told(How::Poll),
                long_polls: told(How::LongPoll),
                streams: told(How::Stream),
                sockets: told(How::Socket),
            },
            network: Network {
                joins: read(&counts.joins),
                vanished: read(&counts.vanished),
                returned: read(&counts.returned),
                moved: read(&counts.moved),
                rate_limited: read(&counts.limited),
                unavailable: read(&counts.unavailable),
                lost_answers: read(&counts.lost),
                never_admitted: case.people.iter().filter(|p| p.events.is_empty()).count(),
            },
            settled_after_ms: settled_after.as_millis(),
            invariants: Invariant::ALL
                .into_iter()
                .map(|invariant| Checked {
                    name: invariant.name(),
                    sentence: invariant.sentence(),
                    held: held(invariant),
                })
                .collect(),
            violations: violations
                .iter()
                .map(|v| Broken { invariant: v.invariant.name(), words: v.words.clone() })
                .collect(),
        }
    }

    pub(super) fn as_json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub(super) fn as_text(&self) -> String {
        let Self { people, topics, seed, seconds, .. } = self;
        let mut text = format!(
            "{people} people, {topics} topics, {seconds} s on {} (seed {seed})\n\n",
            self.servers.join(", ")
        );
        let rooms = self.rooms.iter().map(|rooms| {
            let RoomsOfKind { kind, size, rooms, people } = rooms;
            [format!("{kind}, of {size}"), rooms.to_string(), people.to_string()]
        });
        text += &output::table(["ROOMS", "COUNT", "PEOPLE"], rooms);
        let Times { count, p50, p90, p99, max } = self.time_to_match_ms;
        text.push('\n');
        text += &output::table(
            ["TIME TO MATCH", "P50", "P90", "P99", "MAX"],
            [[
                format!("{count} people"),
                format!("{p50} ms"),
                format!("{p90} ms"),
                format!("{p99} ms"),
                format!("{max} ms"),
            ]],
        );
        let Waits { all, seated, expired, dropped, cancelled, unknown } = self.waits;
        let Told { polls, long_polls, streams, sockets } = self.told;
        let _ = writeln!(
            text,
            "\n{all} waits: {seated} seated, {expired} expired, {dropped} dropped as absent, \
             {cancelled} cancelled, {unknown} not known"
        );
        let _ = writeln!(
            text,
            "told by: {polls} polls, {long_polls} long polls, {streams} events of streams, \
             {sockets} frames of sockets"
        );
        let Network { vanished, returned, moved, lost_answers, .. } = self.network;
        let _ = writeln!(
            text,
            "{vanished} vanished, {returned} came back, {moved} moved to another server, \
             {lost_answers} answers lost"
        );
        let Network { rate_limited, unavailable, never_admitted, .. } = self.network;
        if rate_limited + unavailable + never_admitted > 0 {
            let _ = writeln!(
                text,
                "the server held off {rate_limited} times (429) and was away {unavailable} times \
                 (503), which was respected; {never_admitted} people never got in"
            );
        }
        text.push('\n');
        for Checked { name, sentence, held } in &self.invariants {
            let word = if *held { "held  " } else { "BROKEN" };
            let _ = writeln!(text, "{word}  {sentence}");
            let broken = self.violations.iter().filter(|broken| broken.invariant == *name);
            for Broken { words, .. } in broken.clone().take(PRINTED) {
                let _ = writeln!(text, "        {}", output::visible(words));
            }
            let more = broken.count().saturating_sub(PRINTED);
            if more > 0 {
                let _ = writeln!(text, "        and {more} more (all of them with --json)");
            }
        }
        text
    }
}

fn rooms(case: &Case<'_>) -> Vec<RoomsOfKind> {
    let mut all: Vec<RoomsOfKind> = Vec::new();
    for members in case.rooms.values() {
        let size = members[0].seat.size;
        let kind = match kind(members) {
            Kind::Full => "full",
            Kind::Fallback => "fallback",
            Kind::Merge => "merge",
        };
        match all.iter_mut().find(|rooms| (rooms.kind, rooms.size) == (kind, size)) {
            Some(rooms) => {
                rooms.rooms += 1;
                rooms.people += members.len();
            }
            None => all.push(RoomsOfKind { kind, size, rooms: 1, people: members.len() }),
        }
    }
    all.sort_by_key(|rooms| (rooms.kind != "full", rooms.kind, rooms.size));
    all
}

fn times(sorted: &[Millis]) -> Times {
    let at = |percent: usize| {
        let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(rank).copied().unwrap_or(0)
    };
    Times { count: sorted.len(), p50: at(50), p90: at(90), p99: at(99), max: at(100) }
}
