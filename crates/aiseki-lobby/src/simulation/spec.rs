//! Who is seated next, said a second time and as plainly as possible.

use super::Strangers;
use crate::ids::{Queue, SessionId, TicketNumber, TopicId};
use crate::policy::{LARGEST_ROOM, Millis, Policy, SMALLEST_ROOM};
use crate::seating::{COMPARISONS, Kind, LOOK_AHEAD};

/// One person's wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) session: SessionId,
    pub(super) ticket: TicketNumber,
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

    fn ripe(&self, policy: &Policy, now: Millis) -> bool {
        self.fallback_at(policy).is_some_and(|at| at <= now)
    }
}

/// The room that has to be formed next on `topic`. `waits` are all people who stand in any queue, in
/// no particular order, and none of their waits is over.
pub(super) fn next_room(
    policy: &Policy,
    strangers: &Strangers,
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
        heads.sort_by_key(|wait| wait.ticket);
        heads.truncate(LOOK_AHEAD);
        heads
    };
    for kind in policy.room_types.iter() {
        if let Some(room) = first_group(strangers, &heads(kind.size), kind.size, |_| true) {
            return Some((Kind::Full, room));
        }
    }
    for kind in policy.room_types.iter() {
        let Some(fallback) = kind.fallback else { continue };
        let opens = |wait: &Wait| wait.ripe(policy, now);
        if let Some(room) = first_group(strangers, &heads(kind.size), fallback, opens) {
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
        people.sort_by_key(|wait| wait.ticket);
        if let Some(room) = first_group(strangers, &people, size, |_| true) {
            return Some((Kind::Merge, room));
        }
    }
    None
}

/// The first group in order of arrival of which everybody may sit with everybody.
fn first_group(
    strangers: &Strangers,
    people: &[Wait],
    size: u8,
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
        if group.iter().all(|other| strangers.may_meet(other.session, person.session)) {
            let mut larger = group;
            larger.push(*person);
            groups.push((larger, next + 1));
        }
    }
    None
}
