//! Who is kept apart: people who blocked each other, and people who have just shared a room.

use std::collections::{HashMap, HashSet};

use crate::ids::SessionId;
use crate::lobby::Lobby;
use crate::policy::Millis;
use crate::seating::{Candidate, Companions};

/// Two people who shared a room may meet again once both have waited for so long.
pub const REMATCH_WAIT: Millis = 30_000;

/// The rule, for every store:
///
/// 1. A block holds for the unordered pair of who blocked and who was blocked, and for ever: these two
///    are never seated together, whatever the rule by which a room is formed.
/// 2. Two people part when the first of them gives up the seat in a room in which both had one; that
///    moment counts, by the store's clock, and a later parting replaces an earlier one.
/// 3. For `rematch_after` from that moment they are kept apart, unless each of them has waited for at
///    least [`REMATCH_WAIT`] (`now - since`): then nobody else came, and they may meet again.
/// 4. At exactly `parted + rematch_after`, and at exactly [`REMATCH_WAIT`], they may.
/// 5. What is over stays over: when the clock steps back, it is no earlier for this rule than the latest
///    parting was.
/// 6. Every pair of a room has to pass; the look-ahead and the order of arrival are those of every
///    choice, so nobody loses the place because of a block.
#[derive(Clone, Debug, Default)]
pub struct Acquaintances {
    rematch_after: Millis,
    blocked: HashSet<(SessionId, SessionId)>,
    parted: HashMap<(SessionId, SessionId), Millis>,
    /// Of everybody who is in a pair, in how many. Nobody else is looked up any further.
    pairs: HashMap<SessionId, u32>,
    /// The partings in the order in which they were told, to be forgotten in it.
    order: std::collections::VecDeque<(Millis, (SessionId, SessionId))>,
    /// The latest moment of any parting that was told.
    latest: Millis,
}

impl Acquaintances {
    /// Nobody knows anybody. With a `rematch_after` of 0 only blocks keep people apart.
    pub fn new(rematch_after: Millis) -> Self {
        Self { rematch_after, ..Self::default() }
    }

    /// These two are never seated together again.
    pub fn block(&mut self, a: SessionId, b: SessionId) {
        if a != b && self.blocked.insert(pair(a, b)) {
            self.count(a, b);
        }
    }

    /// The first of these two gave up the seat in a room that they shared.
    pub fn part(&mut self, a: SessionId, b: SessionId, now: Millis) {
        if a == b || self.rematch_after == 0 {
            return;
        }
        self.latest = self.latest.max(now);
        self.forget();
        if self.parted.insert(pair(a, b), now).is_none() {
            self.count(a, b);
        }
        self.order.push_back((now, pair(a, b)));
    }

    /// Forgets partings that keep nobody apart any more.
    fn forget(&mut self) {
        while let Some((at, known)) = self.order.front().copied() {
            if self.latest < at.saturating_add(self.rematch_after) {
                return;
            }
            self.order.pop_front();
            // A later parting of the same two stands in the order once more.
            if self.parted.get(&known) == Some(&at) {
                self.parted.remove(&known);
                for person in [known.0, known.1] {
                    if let Some(pairs) = self.pairs.get_mut(&person) {
                        *pairs -= 1;
                        if *pairs == 0 {
                            self.pairs.remove(&person);
                        }
                    }
                }
            }
        }
    }

    fn count(&mut self, a: SessionId, b: SessionId) {
        for person in [a, b] {
            *self.pairs.entry(person).or_default() += 1;
        }
    }
}

impl Lobby<Acquaintances> {
    /// These two are never seated together again. Whoever waits goes on waiting; a room that was
    /// formed for both already is not undone.
    pub fn block(&mut self, a: SessionId, b: SessionId) {
        self.companions.block(a, b);
    }
}

impl Companions for Acquaintances {
    fn may_sit_together(&self, a: &Candidate, b: &Candidate, now: Millis) -> bool {
        if self.pairs.is_empty() || !self.pairs.contains_key(&a.session) {
            return true;
        }
        let known = pair(a.session, b.session);
        if self.blocked.contains(&known) {
            return false;
        }
        let apart = |at: &Millis| now.max(self.latest) < at.saturating_add(self.rematch_after);
        let waited = |who: &Candidate| now >= who.since.saturating_add(REMATCH_WAIT);
        !self.parted.get(&known).is_some_and(apart) || (waited(a) && waited(b))
    }

    fn parted(&mut self, a: SessionId, b: SessionId, now: Millis) {
        self.part(a, b, now);
    }
}

fn pair(a: SessionId, b: SessionId) -> (SessionId, SessionId) {
    (a.min(b), a.max(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::ids::{Queue, TicketNumber, TopicId};
    use crate::policy::Policy;

    const MINUTE: Millis = 60_000;

    fn candidate(n: u8, since: Millis) -> Candidate {
        let (session, ticket) = (SessionId([n; 16]), TicketNumber(u64::from(n)));
        Candidate { session, ticket, place: ticket, room_type: 2, since, ripe: false }
    }

    #[test]
    fn a_block_is_for_ever_and_for_both() {
        let mut known = Acquaintances::new(0);
        let (a, b, c) = (candidate(1, 0), candidate(2, 0), candidate(3, 0));
        known.block(b.session, a.session);
        known.block(a.session, b.session);
        known.block(c.session, c.session);
        for now in [0, MINUTE, 365 * 24 * 60 * MINUTE] {
            assert!(!known.may_sit_together(&a, &b, now) && !known.may_sit_together(&b, &a, now));
            assert!(known.may_sit_together(&a, &c, now));
        }
    }

    #[test]
    fn who_parted_meets_again_after_a_while_or_when_nobody_else_came() {
        let mut known = Acquaintances::new(10 * MINUTE);
        let (a, b) = (candidate(1, 0), candidate(2, 5_000));
        known.part(a.session, b.session, 0);
        for (now, may) in [(0, false), (30_000, false), (34_999, false), (35_000, true)] {
            assert_eq!(known.may_sit_together(&a, &b, now), may, "{now}");
        }
        let (a, b) = (candidate(1, 10 * MINUTE - 1), candidate(2, 10 * MINUTE - 1));
        assert!(!known.may_sit_together(&a, &b, 10 * MINUTE - 1));
        assert!(known.may_sit_together(&b, &a, 10 * MINUTE));
    }

    #[test]
    fn what_keeps_nobody_apart_is_forgotten() {
        let mut known = Acquaintances::new(10 * MINUTE);
        let person = |n: u8| SessionId([n; 16]);
        known.part(person(1), person(2), 0);
        known.part(person(2), person(1), MINUTE);
        known.part(person(3), person(4), 10 * MINUTE);
        assert_eq!((known.parted.len(), known.pairs.len(), known.order.len()), (2, 4, 2));
        known.block(person(1), person(9));
        known.part(person(5), person(6), 21 * MINUTE);
        assert_eq!((known.parted.len(), known.pairs.len(), known.order.len()), (1, 4, 1));
    }

    #[test]
    fn what_is_over_stays_over_when_the_clock_steps_back() {
        let mut known = Acquaintances::new(10 * MINUTE);
        let (a, b) = (candidate(1, 0), candidate(2, 0));
        known.part(a.session, b.session, 0);
        known.part(candidate(3, 0).session, candidate(4, 0).session, 10 * MINUTE);
        assert!(known.may_sit_together(&a, &b, 1));
    }

    #[test]
    fn the_lobby_tells_who_parted_and_seats_them_again_when_nobody_else_came() {
        let mut lobby =
            Lobby::with_companions(Policy::default(), Acquaintances::new(10 * MINUTE), 1);
        let queue = Queue { topic: TopicId(1), room_type: 2 };
        let person = |n: u8| SessionId([n; 16]);
        let mut changes = Vec::new();
        let mut seat = |lobby: &mut Lobby<Acquaintances>, people: [u8; 2], now| {
            for n in people {
                lobby.enter(person(n), queue, now, &mut changes).unwrap();
            }
            let Some(Change::Reserved(room)) = changes.pop() else { return None };
            let sessions: Vec<_> = room.people.iter().map(|p| p.session).collect();
            lobby.confirm(&room, &sessions, now, &mut changes);
            Some(room.room)
        };
        let room = seat(&mut lobby, [1, 2], 0).unwrap();
        lobby.vacate(person(1), room, 1_000, &mut Vec::new());
        assert_eq!(seat(&mut lobby, [1, 2], 2_000), None);
        // Presence is looked at when thirty seconds have passed, and with it who may meet again.
        for n in [1, 2] {
            lobby.poll(person(n), 31_999, &mut Vec::new());
            assert!(lobby.waits_in(person(n), queue, 31_999));
        }
        let mut told = Vec::new();
        assert_eq!(lobby.next_due(), Some(32_000));
        lobby.tick(32_000, &mut told);
        assert!(matches!(told[..], [Change::Reserved(_)]), "{told:?}");
    }

    #[test]
    fn everybody_of_a_closed_room_has_parted() {
        let mut lobby =
            Lobby::with_companions(Policy::default(), Acquaintances::new(10 * MINUTE), 1);
        let queue = Queue { topic: TopicId(1), room_type: 3 };
        let mut changes = Vec::new();
        for n in 1..=3 {
            lobby.enter(SessionId([n; 16]), queue, 0, &mut changes).unwrap();
        }
        let Some(Change::Reserved(room)) = changes.pop() else { panic!("a room") };
        let people: Vec<_> = room.people.iter().map(|p| p.session).collect();
        lobby.confirm(&room, &people, 0, &mut changes);
        assert!(lobby.close_room(room.room, 5, &mut changes));
        assert_eq!((lobby.companions.parted.len(), lobby.companions.pairs.len()), (3, 3));
    }
}
