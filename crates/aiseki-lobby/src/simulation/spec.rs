//! Who is seated next, said a second time and as plainly as possible.

use super::Strangers;
use crate::acquaintances::REMATCH_WAIT;
use crate::ids::{Queue, SessionId, TicketNumber, TopicId};
use crate::policy::{LARGEST_ROOM, Millis, Policy, SMALLEST_ROOM};
use crate::resume::Standing;
use crate::seating::{COMPARISONS, Kind, LOOK_AHEAD};

/// One person's wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) session: SessionId,
    pub(super) ticket: TicketNumber,
    /// The number that counts in the order of arrival.
    pub(super) place: TicketNumber,
    pub(super) queue: Queue,
    pub(super) since: Millis,
    pub(super) present_until: Millis,
    pub(super) held_until: Millis,
    pub(super) refusals: u8,
}

impl Wait {
    pub(super) fn fallback_at(&self, policy: &Policy) -> Option<Millis> {
        let fallback = policy.room_types.get(self.queue.room_type).and_then(|kind| kind.fallback);
        fallback.map(|_| self.since + policy.fallback_after)
    }

    pub(super) fn standing(&self) -> Standing {
        Standing { since: self.since, place: self.place }
    }

    fn ripe(&self, policy: &Policy, now: Millis) -> bool {
        self.fallback_at(policy).is_some_and(|at| at <= now)
    }
}

/// Who is kept apart: strangers for ever, and who has parted for a while.
pub(super) struct Known {
    strangers: Strangers,
    rematch_after: Millis,
    /// Who parted from whom, and when.
    partings: Vec<(SessionId, SessionId, Millis)>,
    /// When the latest of all partings was, by a clock that may step back.
    latest: Millis,
}

impl Known {
    pub(super) fn new(strangers: Strangers, rematch_after: Millis) -> Self {
        Self { strangers, rematch_after, partings: Vec::new(), latest: 0 }
    }

    /// These two gave up sharing a room; what was between them before counts no more.
    pub(super) fn part(&mut self, a: SessionId, b: SessionId, now: Millis) {
        if self.rematch_after == 0 {
            return;
        }
        self.latest = self.latest.max(now);
        let (latest, rematch_after) = (self.latest, self.rematch_after);
        self.partings.retain(|(c, d, at)| {
            (*c, *d) != (a, b) && (*c, *d) != (b, a) && latest < at + rematch_after
        });
        self.partings.push((a, b, now));
    }

    /// All that a store keeps of partings: it is loaded from that, and so is this.
    pub(super) fn restart(&mut self) -> Vec<(SessionId, SessionId, Millis)> {
        self.latest = self.partings.iter().map(|(_, _, at)| *at).max().unwrap_or(0);
        self.partings.clone()
    }

    fn may_meet(&self, a: &Wait, b: &Wait, now: Millis) -> bool {
        if !self.strangers.may_meet(a.session, b.session) {
            return false;
        }
        let both = |c, d| [(a.session, b.session), (b.session, a.session)].contains(&(c, d));
        let met = self.partings.iter().find(|(c, d, _)| both(*c, *d));
        let waited = now >= a.since.max(b.since) + REMATCH_WAIT;
        waited || met.is_none_or(|(_, _, at)| now.max(self.latest) >= at + self.rematch_after)
    }
}

/// The room that has to be formed next on `topic`. `waits` are all people who stand in any queue, in
/// no particular order, and none of their waits is over.
pub(super) fn next_room(
    policy: &Policy,
    known: &Known,
    waits: &[Wait],
    topic: TopicId,
    now: Millis,
) -> Option<(Kind, Vec<Wait>)> {
    let heads = |room_type: u8| {
        let mut heads: Vec<Wait> = waits
            .iter()
            .copied()
            .filter(|wait| wait.queue == Queue { topic, room_type } && wait.held_until <= now)
            .collect();
        heads.sort_by_key(|wait| wait.place);
        heads.truncate(LOOK_AHEAD);
        heads
    };
    for kind in policy.room_types.iter() {
        if let Some(room) = first_group(known, &heads(kind.size), kind.size, now, |_| true) {
            return Some((Kind::Full, room));
        }
    }
    for kind in policy.room_types.iter() {
        let Some(fallback) = kind.fallback else { continue };
        let opens = |wait: &Wait| wait.ripe(policy, now);
        if let Some(room) = first_group(known, &heads(kind.size), fallback, now, opens) {
            return Some((Kind::Fallback, room));
        }
    }
    if !policy.merge_fallback {
        return None;
    }
    for size in SMALLEST_ROOM..=LARGEST_ROOM {
        let falls_back = policy.room_types.iter().filter(|kind| kind.fallback == Some(size));
        let mut people: Vec<Wait> = falls_back.flat_map(|kind| heads(kind.size)).collect();
        people.retain(|wait| wait.ripe(policy, now));
        if people.is_empty() {
            continue;
        }
        people.extend(heads(size));
        people.sort_by_key(|wait| wait.place);
        if let Some(room) = first_group(known, &people, size, now, |_| true) {
            return Some((Kind::Merge, room));
        }
    }
    None
}

/// The first group in order of arrival of which everybody may sit with everybody.
fn first_group(
    known: &Known,
    people: &[Wait],
    size: u8,
    now: Millis,
    opens: impl Fn(&Wait) -> bool,
) -> Option<Vec<Wait>> {
    // Groups that may grow, the one to be tried next last: each with where its next member is sought.
    let mut groups: Vec<(Vec<Wait>, usize)> = (0..people.len())
        .rev()
        .filter(|i| opens(&people[*i]))
        .map(|i| (vec![people[i]], i + 1))
        .collect();
    let mut compared = 0;
    while let Some((group, next)) = groups.pop() {
        if group.len() == usize::from(size) {
            return Some(group);
        }
        let Some(person) = people.get(next) else { continue };
        compared += group.len();
        if compared > COMPARISONS {
            return None;
        }
        groups.push((group.clone(), next + 1));
        if group.iter().all(|other| known.may_meet(other, person, now)) {
            let mut larger = group;
            larger.push(*person);
            groups.push((larger, next + 1));
        }
    }
    None
}
