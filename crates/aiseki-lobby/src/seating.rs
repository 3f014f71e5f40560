//! The choice of who is seated next: a pure look at the heads of a topic's queues.

use crate::ids::{Queue, SessionId, TicketNumber, TopicId};
use crate::policy::{Millis, Policy, RoomType};

/// How far from the head of a queue people are looked for who may sit together.
pub const LOOK_AHEAD: usize = 32;

/// Places of a queue looked at in one choice, counting people who cannot be seated now: their wait is
/// over and they will be swept soon, or a room with them was refused lately.
pub(crate) const SCAN_LIMIT: usize = 256;

/// Pairs compared in one choice before it is given up for now. It bounds the search when many
/// people of a queue may not sit together; without such people a choice compares a few pairs.
pub(crate) const COMPARISONS: usize = 4096;

/// Who may sit together. Asked only about people of the same topic.
pub trait Companions {
    /// Whether these two may share a room now. Symmetric in `a` and `b`.
    fn may_sit_together(&self, a: &Candidate, b: &Candidate, now: Millis) -> bool;

    /// The first of these two gave up the seat in a room that they shared. Told by the lobby; whoever
    /// remembers nothing of rooms has nothing to do.
    fn parted(&mut self, _a: SessionId, _b: SessionId, _now: Millis) {}
}

/// Everybody may sit with everybody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anyone;

impl Companions for Anyone {
    fn may_sit_together(&self, _: &Candidate, _: &Candidate, _: Millis) -> bool {
        true
    }
}

/// Somebody near the head of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Who.
    pub session: SessionId,
    /// The wait.
    pub ticket: TicketNumber,
    /// The place in the order of arrival.
    pub place: TicketNumber,
    /// The room type that was asked for.
    pub room_type: u8,
    /// Waiting since.
    pub since: Millis,
    /// Whether the fallback of the room type will do by now.
    pub ripe: bool,
}

/// By which rule a room was formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// As many as the room type asks for.
    Full,
    /// Fewer, because the oldest has waited for the fallback time.
    Fallback,
    /// People past their fallback time together with people who asked for the smaller room, or for
    /// another room that falls back to it.
    Merge,
}

impl Kind {
    /// The word for metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Fallback => "fallback",
            Self::Merge => "merge",
        }
    }
}

/// What the choice needs to know of the queues.
pub(crate) trait Heads {
    /// How many people stand in the queue, some of whom may be gone.
    fn length(&self, queue: Queue) -> usize;
    /// The oldest people of the queue who can be seated now, at most [`LOOK_AHEAD`].
    fn candidates(&self, queue: Queue) -> Vec<Candidate>;
}

/// Chooses the next room of a topic: full rooms, then fallback, then merge.
pub(crate) fn choose(
    heads: &impl Heads,
    companions: &impl Companions,
    policy: &Policy,
    topic: TopicId,
    now: Millis,
) -> Option<(Kind, Vec<Candidate>)> {
    let room_types = &policy.room_types;
    let queue = |room_type: RoomType| Queue { topic, room_type: room_type.size };
    for room_type in room_types.iter() {
        let size = usize::from(room_type.size);
        if heads.length(queue(room_type)) >= size {
            let people = heads.candidates(queue(room_type));
            if let Some(group) = oldest_group(companions, &people, size, now, |_| true) {
                return Some((Kind::Full, group));
            }
        }
    }
    for room_type in room_types.iter() {
        let Some(size) = room_type.fallback.map(usize::from) else { continue };
        if heads.length(queue(room_type)) >= size {
            let people = heads.candidates(queue(room_type));
            if let Some(group) = oldest_group(companions, &people, size, now, |first| first.ripe) {
                return Some((Kind::Fallback, group));
            }
        }
    }
    if !policy.merge_fallback {
        return None;
    }
    for size in 2..=room_types.iter().filter_map(|room_type| room_type.fallback).max()? {
        let mut people = Vec::new();
        for room_type in room_types.iter().filter(|room_type| room_type.fallback == Some(size)) {
            if heads.length(queue(room_type)) > 0 {
                let candidates = heads.candidates(queue(room_type));
                people.extend(candidates.into_iter().filter(|person| person.ripe));
            }
        }
        let smaller = Queue { topic, room_type: size };
        if people.is_empty() || people.len() + heads.length(smaller) < usize::from(size) {
            continue;
        }
        people.extend(heads.candidates(smaller));
        people.sort_by_key(|person| person.place);
        if let Some(group) = oldest_group(companions, &people, usize::from(size), now, |_| true) {
            return Some((Kind::Merge, group));
        }
    }
    None
}

/// The first group of `size` people in order of arrival who may all sit together, its oldest
/// satisfying `may_open`. `people` are ordered oldest first.
fn oldest_group(
    companions: &impl Companions,
    people: &[Candidate],
    size: usize,
    now: Millis,
    may_open: impl Fn(&Candidate) -> bool,
) -> Option<Vec<Candidate>> {
    let mut comparisons = COMPARISONS;
    let mut group = Vec::with_capacity(size);
    (0..people.len()).find_map(|i| {
        if !may_open(&people[i]) {
            return None;
        }
        group.clear();
        group.push(people[i]);
        complete(companions, &people[i + 1..], size, now, &mut group, &mut comparisons)
            .then(|| group.clone())
    })
}

/// Completes `group` from `people`, trying the oldest first and going back where that leads nowhere.
fn complete(
    companions: &impl Companions,
    people: &[Candidate],
    size: usize,
    now: Millis,
    group: &mut Vec<Candidate>,
    comparisons: &mut usize,
) -> bool {
    if group.len() == size {
        return true;
    }
    for (i, person) in people.iter().enumerate() {
        if *comparisons < group.len() {
            return false;
        }
        *comparisons -= group.len();
        if group.iter().all(|other| companions.may_sit_together(other, person, now)) {
            group.push(*person);
            if complete(companions, &people[i + 1..], size, now, group, comparisons) {
                return true;
            }
            group.pop();
        }
    }
    false
}
