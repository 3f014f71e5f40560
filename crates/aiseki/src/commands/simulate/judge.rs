//! The invariants, judged by what people were told and by nothing else. What was not answered is not
//! known: it excuses what it could explain, and proves nothing.

mod order;
mod rooms;
mod waits;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use aiseki_lobby::Millis;

use super::history::{Event, History, Moment, Queue, Seat, State, What};
pub(super) use rooms::{Kind, kind, times_to_match};
pub(super) use waits::{Outcome, Wait};

/// By so much something may be late before it counts as not having come.
const SLACK: Moment = 2_000_000;

/// What a run has to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Invariant {
    OneRoom,
    Sizes,
    Agreement,
    Order,
    Cancelled,
    NotStuck,
    Answers,
}

impl Invariant {
    pub(super) const ALL: [Self; 7] = [
        Self::OneRoom,
        Self::Sizes,
        Self::Agreement,
        Self::Order,
        Self::Cancelled,
        Self::NotStuck,
        Self::Answers,
    ];

    /// The sentence that the report prints.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::OneRoom => "nobody is in two rooms, or sits and waits, at once",
            Self::Sizes => "rooms have the size that was asked for, or its fallback in its time",
            Self::Agreement => "the members of a room agree about it",
            Self::Order => "first come, first served within a queue",
            Self::Cancelled => "nobody is seated from a wait that they had ended",
            Self::NotStuck => "nobody is stuck at the end",
            Self::Answers => "every answer is one that the interface describes",
        }
    }

    /// A short name for programs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OneRoom => "one_room",
            Self::Sizes => "sizes",
            Self::Agreement => "agreement",
            Self::Order => "order",
            Self::Cancelled => "cancelled",
            Self::NotStuck => "not_stuck",
            Self::Answers => "answers",
        }
    }
}

/// An invariant that did not hold, in plain words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) invariant: Invariant,
    pub(super) words: String,
}

/// What is known about the run beside what people were told.
#[derive(Clone, Copy, Debug)]
pub(super) struct World {
    /// Whether nobody but the simulated people is there.
    pub(super) closed: bool,
    /// When people stopped doing anything but asking.
    pub(super) quiet_from: Moment,
}

/// One person's seat in a room.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) person: usize,
    pub(super) seat: Seat,
    /// The wait that led here: an index into [`Case::waits`].
    pub(super) wait: usize,
}

/// Everything that was told, sorted for judging.
pub(super) struct Case<'a> {
    pub(super) people: &'a [History],
    pub(super) world: World,
    pub(super) waits: Vec<Wait>,
    pub(super) rooms: HashMap<String, Vec<Member>>,
    violations: Vec<Violation>,
}

/// Judges a run.
pub(super) fn judge(people: &[History], world: World) -> Case<'_> {
    let mut case =
        Case { people, world, waits: Vec::new(), rooms: HashMap::new(), violations: Vec::new() };
    for (person, history) in people.iter().enumerate() {
        case.gather_waits(person, history);
    }
    for person in 0..people.len() {
        case.check_one_room(person);
        case.check_cancelled(person);
    }
    case.check_rooms();
    case.check_order();
    case.check_stuck();
    case.violations.sort_by_key(|violation| violation.invariant);
    case
}

impl Case<'_> {
    pub(super) fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn broken(&mut self, invariant: Invariant, words: String) {
        self.violations.push(Violation { invariant, words });
    }

    /// Whether these two shared a room that was formed before `before`: the server may then keep
    /// them apart for a while.
    fn have_met(&self, a: usize, b: usize, before: Millis) -> bool {
        self.rooms.values().any(|members| {
            members.iter().any(|m| m.person == a && m.seat.at < before)
                && members.iter().any(|m| m.person == b)
        })
    }

    /// Nobody sits in a room and at the same time waits, sits elsewhere or is idle.
    fn check_one_room(&mut self, person: usize) {
        let history = &self.people[person];
        let mut found = Vec::new();
        for room in history.rooms() {
            let Some(first) = history.events.iter().position(|e| is_in(e, &room)) else { continue };
            let told = history.events[first].answered;
            // A seat that the person gave up, or may have given up, says nothing any more.
            let later = history.events[first..].iter();
            let later: Vec<&Event> = later.take_while(|event| !gives_up(event, &room)).collect();
            let elsewhere = |event: &&Event| {
                event.asked >= told && event.state().is_some_and(|_| !is_in(event, &room))
            };
            let Some(at) = later.iter().position(elsewhere) else { continue };
            let other = later[at];
            let after = &later[at..];
            let back = after.iter().find(|e| e.asked >= other.answered && is_in(e, &room));
            let live = after.iter().find(|event| match &event.what {
                What::Room(view) => {
                    view.room == room && view.mine_is_live() && event.asked >= other.answered
                }
                _ => false,
            });
            if back.is_some() || live.is_some() {
                found.push(format!(
                    "person {person} sits in room {room} and was told in between: {}",
                    described(other.state())
                ));
                continue;
            }
            let ended = after.iter().find_map(|event| match &event.what {
                What::Room(view) if view.room == room => view.ended_at,
                _ => None,
            });
            let Some(ended) = ended else { continue };
            let overlap =
                later.iter().filter_map(|event| event.state()).find(|state| match state {
                    State::Waiting(waiting) => waiting.since < ended,
                    State::Matched(seat) => seat.room != room && seat.at < ended,
                    State::Idle { .. } => false,
                });
            if let Some(overlap) = overlap {
                found.push(format!(
                    "person {person} sat in room {room} until {ended} (ms) and before that: {}",
                    described(Some(overlap))
                ));
            }
        }
        for (i, left) in history.events.iter().enumerate() {
            let What::Left { room } = &left.what else { continue };
            let still = history.events[i + 1..].iter().find(|event| {
                let sits = match &event.what {
                    What::Room(view) => view.room == *room && view.mine_is_live(),
                    _ => is_in(event, room),
                };
                sits && event.asked >= left.answered
            });
            if still.is_some() {
                found.push(format!("person {person} had left room {room} and still sits in it"));
            }
        }
        for words in found {
            self.broken(Invariant::OneRoom, words);
        }
    }

    /// After a cancellation that was answered, nothing more comes of that wait.
    fn check_cancelled(&mut self, person: usize) {
        let events = &self.people[person].events;
        let mut found = Vec::new();
        for (i, cancelled) in events.iter().enumerate() {
            if !matches!(cancelled.what, What::Cancelled) {
                continue;
            }
            let later = events[i + 1..].iter().take_while(|event| !event.may_begin_a_wait());
            let known: Vec<&str> =
                events[..i].iter().filter_map(Event::seat).map(|seat| seat.room.as_str()).collect();
            for event in later.filter(|event| event.asked >= cancelled.answered) {
                match event.state() {
                    Some(State::Matched(seat)) if !known.contains(&seat.room.as_str()) => {
                        found.push(format!(
                            "person {person} had stopped waiting and was seated in room {}",
                            seat.room
                        ));
                        break;
                    }
                    Some(State::Waiting(_)) => {
                        found.push(format!("person {person} had stopped waiting and still waits"));
                        break;
                    }
                    _ => {}
                }
            }
        }
        for words in found {
            self.broken(Invariant::Cancelled, words);
        }
    }

    /// When all is quiet, nobody waits whose wait is over, nor people who could sit together.
    fn check_stuck(&mut self) {
        let mut still: HashMap<Queue, Vec<usize>> = HashMap::new();
        let mut found = Vec::new();
        for (person, history) in self.people.iter().enumerate() {
            let Some((last, State::Waiting(waiting))) = history.last() else { continue };
            if last.asked < self.world.quiet_from {
                continue;
            }
            let first = history.events.iter().find(|event| {
                event
                    .waiting()
                    .is_some_and(|w| (w.queue, w.since) == (waiting.queue, waiting.since))
            });
            let waited = last.asked.saturating_sub(first.map_or(last.answered, |e| e.answered));
            let micros = |until: Millis| until.saturating_sub(waiting.since).saturating_mul(1_000);
            if waited > micros(waiting.expires_at) + SLACK {
                found.push(format!(
                    "person {person} still waits in {}, {} ms after the wait should have ended",
                    queue_words(waiting.queue),
                    (waited - micros(waiting.expires_at)) / 1_000
                ));
            }
            if waited > SLACK {
                still.entry(waiting.queue).or_default().push(person);
                // A room of two is the only fallback of a room of three.
                let ripe = waiting.fallback_at.is_some_and(|at| waited > micros(at) + SLACK);
                if ripe && waiting.queue.1 == 3 {
                    still.entry((waiting.queue.0, 2)).or_default().push(person);
                }
            }
        }
        for (queue, waiting) in &still {
            let mut group = Vec::new();
            if self.could_sit(waiting, usize::from(queue.1), &mut group) {
                found.push(format!(
                    "people {group:?} all wait for {} and could sit together",
                    queue_words(*queue)
                ));
            }
        }
        for words in found {
            self.broken(Invariant::NotStuck, words);
        }
    }

    /// Whether `size` of these people have not met yet; `group` holds them then.
    fn could_sit(&self, people: &[usize], size: usize, group: &mut Vec<usize>) -> bool {
        if group.len() == size {
            return true;
        }
        for (i, person) in people.iter().enumerate() {
            if group
                .iter()
                .all(|other| other != person && !self.have_met(*other, *person, u64::MAX))
            {
                group.push(*person);
                if self.could_sit(&people[i + 1..], size, group) {
                    return true;
                }
                group.pop();
            }
        }
        false
    }
}

fn is_in(event: &Event, room: &str) -> bool {
    event.seat().is_some_and(|seat| seat.room == room)
}

fn gives_up(event: &Event, of: &str) -> bool {
    matches!(&event.what, What::Left { room } | What::LeaveLost { room } if room == of)
}

fn queue_words((topic, room_type): Queue) -> String {
    format!("topic {topic}, rooms of {room_type}")
}

fn described(state: Option<&State>) -> String {
    match state {
        None => "nothing".into(),
        Some(State::Idle { reason }) => {
            format!("idle ({})", reason.as_deref().unwrap_or("no reason"))
        }
        Some(State::Waiting(waiting)) => {
            format!("waiting for {} since {} (ms)", queue_words(waiting.queue), waiting.since)
        }
        Some(State::Matched(seat)) => format!("seated in room {} at {} (ms)", seat.room, seat.at),
    }
}
