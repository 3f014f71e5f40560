//! Whether the indexes of a lobby agree with each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{Queue, RoomId, SessionId, TicketNumber};
use crate::lobby::Lobby;
use crate::person::Person;
use crate::policy::Millis;
use crate::seating::Companions;

/// Every index derived from where people stand has to be the index that the lobby keeps.
pub(super) fn audit<C: Companions>(lobby: &Lobby<C>) -> Result<(), String> {
    let mut order: BTreeMap<(Queue, TicketNumber), SessionId> = BTreeMap::new();
    let mut lengths: BTreeMap<Queue, usize> = BTreeMap::new();
    let mut alarmed: BTreeSet<SessionId> = BTreeSet::new();
    let mut taken: BTreeSet<(RoomId, SessionId)> = BTreeSet::new();
    let mut seated: BTreeSet<(RoomId, SessionId)> = BTreeSet::new();
    for (session, person) in lobby.people.iter() {
        match person {
            Person::Waiting(ticket) => {
                order.insert((ticket.queue, ticket.place), *session);
                *lengths.entry(ticket.queue).or_default() += 1;
                alarmed.insert(*session);
            }
            Person::Idle { .. } => drop(alarmed.insert(*session)),
            Person::Reserved(hold) => drop(taken.insert((hold.room, *session))),
            Person::Seated(sitting) => drop(seated.insert((sitting.seat.room, *session))),
        }
    }
    same("queues", order, lobby.queues.entries().collect())?;
    same("lengths", lengths, lobby.queues.lengths().collect())?;
    let alarms: Vec<(Millis, SessionId)> = lobby.alarms.iter().collect();
    same("number of alarms", alarmed.len(), alarms.len())?;
    same("alarms", alarmed, alarms.iter().map(|(_, session)| *session).collect())?;
    let reserved = lobby.reservations.values();
    let reserved = reserved.flat_map(|it| it.people.iter().map(|who| (it.room, who.session)));
    same("reserved", taken, reserved.collect())?;
    let lapses: BTreeSet<RoomId> = lobby.lapses.iter().map(|(_, room)| *room).collect();
    same("lapses", lapses, lobby.reservations.keys().copied().collect())?;
    let rooms = lobby.rooms.iter();
    let rooms = rooms.flat_map(|(room, people)| people.iter().map(|session| (*room, *session)));
    same("seats", seated, rooms.collect())?;
    match lobby.rooms.iter().find(|(_, people)| people.len() < 2) {
        Some(lone) => Err(format!("fewer than two sit in {lone:?}")),
        None => Ok(()),
    }
}

/// Whether everybody is forgotten: no index keeps anything.
pub(super) fn is_empty<C>(lobby: &Lobby<C>) -> bool {
    lobby.people.len() == 0
        && lobby.queues.entries().next().is_none()
        && lobby.queues.lengths().next().is_none()
        && lobby.alarms.next().is_none()
        && lobby.reservations.is_empty()
        && lobby.lapses.is_empty()
        && lobby.rooms.len() == 0
        && lobby.unsettled.is_empty()
}

#[allow(clippy::needless_pass_by_value, reason = "both are made for this comparison alone")]
fn same<T: PartialEq + std::fmt::Debug>(what: &str, people: T, index: T) -> Result<(), String> {
    if people == index {
        return Ok(());
    }
    Err(format!("{what}: people say {people:?}\n  the index says {index:?}"))
}
