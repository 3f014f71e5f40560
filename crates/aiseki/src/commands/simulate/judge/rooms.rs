//! Rooms: their sizes, and whether their members agree.

use std::collections::HashMap;

use aiseki_lobby::Millis;

use super::{Case, Invariant, Member, Outcome, What};
use crate::commands::simulate::history::RoomView;

/// A room is written within its reservation (30 s), and its row has the time of another store, whose clock may
/// be some seconds away.
const WRITTEN_WITHIN: Millis = 35_000;

/// By which rule a room was formed, as its members can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Kind {
    Full,
    Fallback,
    Merge,
}

/// What the people of a room make of it.
pub(in super::super) fn kind(members: &[Member]) -> Kind {
    let asked_for_more = members.iter().filter(|m| m.seat.requested > m.seat.size).count();
    match asked_for_more {
        0 => Kind::Full,
        all if all == members.len() => Kind::Fallback,
        _ => Kind::Merge,
    }
}

impl Case<'_> {
    pub(super) fn check_rooms(&mut self) {
        let mut missing: HashMap<i64, usize> = HashMap::new();
        let mut found = Vec::new();
        for (room, members) in &self.rooms {
            self.check_agreement(room, members, &mut found);
            self.check_size(room, members, &mut found);
            let size = usize::from(members[0].seat.size);
            if members.len() < size {
                *missing.entry(members[0].seat.topic).or_default() += size - members.len();
            }
        }
        if self.world.closed {
            for (topic, missing) in missing {
                // Somebody who vanished may have had a seat without ever hearing of it.
                let unknown = self
                    .waits
                    .iter()
                    .filter(|wait| wait.queue.0 == topic && wait.outcome == Outcome::Unknown);
                let unknown = unknown.count();
                if missing > unknown {
                    found.push((
                        Invariant::Agreement,
                        format!(
                            "the rooms of topic {topic} have {missing} seats of which nobody knows, \
                             and only {unknown} people do not know what became of their wait"
                        ),
                    ));
                }
            }
        }
        for (person, history) in self.people.iter().enumerate() {
            for event in &history.events {
                let What::NotMyRoom { room } = &event.what else { continue };
                let words = format!("room {room} is unknown to the server for its member {person}");
                found.push((Invariant::Agreement, words));
            }
        }
        for (invariant, words) in found {
            self.broken(invariant, words);
        }
    }

    fn check_agreement(
        &self,
        room: &str,
        members: &[Member],
        found: &mut Vec<(Invariant, String)>,
    ) {
        let first = &members[0];
        let of = |m: &Member| (m.seat.topic, m.seat.size, m.seat.at);
        for other in members.iter().filter(|other| of(other) != of(first)) {
            let words = format!(
                "room {room}: person {} was told topic, size and time {:?}, person {} {:?}",
                first.person,
                of(first),
                other.person,
                of(other)
            );
            found.push((Invariant::Agreement, words));
        }
        if members.len() > usize::from(first.seat.size) {
            let people: Vec<usize> = members.iter().map(|member| member.person).collect();
            let size = first.seat.size;
            let words = format!("room {room} is of {size} and {people:?} sit in it");
            found.push((Invariant::Agreement, words));
        }
        let mut seats: HashMap<u8, usize> = HashMap::new();
        for member in members {
            let Some(view) = self.views(member.person, room).next() else { continue };
            let seen = (view.topic, view.size);
            let (topic, size, at) = of(member);
            let in_time = view.created_at.abs_diff(at) <= WRITTEN_WITHIN;
            if seen != (topic, size) || !in_time || view.here.len() != usize::from(view.size) {
                let words = format!(
                    "person {} was told {:?} of room {room}, and looking at it shows {view:?}",
                    member.person,
                    of(member)
                );
                found.push((Invariant::Agreement, words));
            }
            if let Some(other) = seats.insert(view.me, member.person)
                && other != member.person
            {
                let (person, seat) = (member.person, view.me);
                let words = format!("persons {other} and {person} have seat {seat} of room {room}");
                found.push((Invariant::Agreement, words));
            }
        }
    }

    fn views(&self, person: usize, of: &str) -> impl Iterator<Item = &RoomView> {
        self.people[person].events.iter().filter_map(move |event| match &event.what {
            What::Room(view) if view.room == of => Some(view),
            _ => None,
        })
    }

    /// As many as were asked for; fewer only when the fallback time of whom the rule asks has come.
    fn check_size(&self, room: &str, members: &[Member], found: &mut Vec<(Invariant, String)>) {
        let seat = &members[0].seat;
        let mut wrong = |words: String| found.push((Invariant::Sizes, words));
        if seat.size < 2 {
            wrong(format!("room {room} is of {}", seat.size));
        }
        for member in members.iter().filter(|m| m.seat.requested < m.seat.size) {
            wrong(format!(
                "person {} asked for a room of {} and sits in room {room} of {}",
                member.person, member.seat.requested, seat.size
            ));
        }
        let larger: Vec<&Member> =
            members.iter().filter(|m| m.seat.requested > m.seat.size).collect();
        let early = |member: &Member| {
            let wait = &self.waits[member.wait];
            match (wait.expires_at, wait.fallback_at) {
                (Some(_), Some(at)) => seat.at < at,
                // Never seen waiting: not known, or seated in the moment of joining.
                (None, _) => wait.since == Some(seat.at),
                (Some(_), None) => true,
            }
        };
        let all_known = members.len() == usize::from(seat.size);
        let too_early: Vec<usize> =
            larger.iter().filter(|m| early(m)).map(|member| member.person).collect();
        let broken = match kind(members) {
            Kind::Full => false,
            // The oldest has waited for the fallback time; the others need not.
            Kind::Fallback => all_known && too_early.len() == larger.len(),
            Kind::Merge => !too_early.is_empty(),
        };
        if broken {
            wrong(format!(
                "room {room} is smaller than persons {too_early:?} asked for, before their fallback \
                 time (formed at {} ms)",
                seat.at
            ));
        }
    }
}

/// How long each seated person had waited, in milliseconds.
pub(in super::super) fn times_to_match(case: &Case<'_>) -> Vec<Millis> {
    let seated = case.waits.iter().filter_map(|wait| match wait.outcome {
        Outcome::Seated(at) => Some(at.saturating_sub(wait.since?)),
        _ => None,
    });
    let mut times: Vec<Millis> = seated.collect();
    times.sort_unstable();
    times
}
