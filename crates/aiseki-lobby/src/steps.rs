//! The steps that the transitions of the lobby are made of.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::change::{Change, Undone};
use crate::ids::{Queue, RoomId, SessionId, TicketNumber, TopicId};
use crate::lobby::{Lobby, REASON_KEPT, REFUSALS, ROOMS_PER_STEP, SWEEP_LIMIT};
use crate::person::{Hold, IdleReason, Person, Reservation, Reserved, Ticket};
use crate::policy::{Millis, Policy};
use crate::queue::Queues;
use crate::seating::{Candidate, Companions, Heads, Kind, LOOK_AHEAD, choose};

/// The shortest and the longest time for which the people of a refused room are not seated again.
const HOLD: (Millis, Millis) = (1_000, 30_000);

impl<C: Companions> Lobby<C> {
    /// Puts somebody who does not wait into a queue.
    pub(crate) fn place(
        &mut self,
        session: SessionId,
        queue: Queue,
        number: TicketNumber,
        since: Millis,
        now: Millis,
    ) {
        self.place_ticket(
            session,
            Ticket {
                number,
                queue,
                since,
                present_until: now.saturating_add(self.policy.presence_timeout),
                alarm: 0,
                held_until: 0,
                refusals: 0,
            },
            now,
        );
    }

    pub(crate) fn place_ticket(&mut self, session: SessionId, mut ticket: Ticket, now: Millis) {
        ticket.alarm = ticket.next_alarm(&self.policy, now);
        self.queues.insert(ticket.queue, ticket.number, session);
        self.alarms.set(ticket.alarm, ticket.number, session);
        self.people.insert(session, Person::Waiting(ticket));
    }

    /// Ends the wait of somebody who stands in a queue.
    pub(crate) fn drop(
        &mut self,
        session: SessionId,
        reason: IdleReason,
        now: Millis,
        changes: &mut Vec<Change>,
    ) {
        let Some(Person::Waiting(ticket)) = self.people.get(&session) else { return };
        let ticket = *ticket;
        self.queues.remove(ticket.queue, ticket.number);
        self.alarms.clear(ticket.alarm, ticket.number, session);
        self.unsettled.insert(ticket.queue.topic);
        self.set_idle(session, reason, now);
        changes.push(Change::Dropped { session, ticket: ticket.number, reason });
    }

    pub(crate) fn drop_if_over(
        &mut self,
        session: SessionId,
        now: Millis,
        changes: &mut Vec<Change>,
    ) {
        if let Some(Person::Waiting(ticket)) = self.people.get(&session)
            && let Some(reason) = ticket.over(&self.policy, now)
        {
            self.drop(session, reason, now, changes);
        }
    }

    pub(crate) fn set_idle(&mut self, session: SessionId, reason: IdleReason, now: Millis) {
        let until = now.saturating_add(REASON_KEPT);
        self.people.insert(session, Person::Idle { reason, until });
        self.memories.push_back((until, session));
    }

    pub(crate) fn since(&self, session: SessionId) -> Millis {
        match self.people.get(&session) {
            Some(Person::Waiting(ticket)) => ticket.since,
            _ => 0,
        }
    }

    pub(crate) fn highest_since(&self, queue: Queue) -> Millis {
        self.queues.people(queue).next_back().map_or(0, |(_, session)| self.since(session))
    }

    /// Does what is due, at most [`SWEEP_LIMIT`] of each kind. What it leaves is found again by
    /// whoever looks, since every look asks whether a wait is over.
    pub(crate) fn sweep(&mut self, now: Millis, changes: &mut Vec<Change>) {
        for _ in 0..SWEEP_LIMIT {
            let Some(session) = self.alarms.pop_due(now) else { break };
            let Some(Person::Waiting(ticket)) = self.people.get_mut(&session) else { continue };
            let over = ticket.over(&self.policy, now);
            // The alarm is set again even for somebody who is dropped next, so that `drop` finds it.
            ticket.alarm = if over.is_some() { now } else { ticket.next_alarm(&self.policy, now) };
            self.alarms.set(ticket.alarm, ticket.number, session);
            self.unsettled.insert(ticket.queue.topic);
            if let Some(reason) = over {
                self.drop(session, reason, now, changes);
            }
        }
        for _ in 0..SWEEP_LIMIT {
            match self.lapses.front() {
                Some((at, room)) if *at <= now => {
                    let room = *room;
                    self.lapses.pop_front();
                    self.undo(room, Undone::Lapsed, now, changes);
                }
                _ => break,
            }
        }
        for _ in 0..SWEEP_LIMIT {
            match self.memories.front() {
                Some((at, session)) if *at <= now => {
                    if let Entry::Occupied(person) = self.people.entry(*session)
                        && matches!(person.get(), Person::Idle { until, .. } if *until <= now)
                    {
                        person.remove();
                    }
                    self.memories.pop_front();
                }
                _ => break,
            }
        }
        self.give_back_memory();
    }

    /// Returns memory after a great many people have gone.
    pub(crate) fn give_back_memory(&mut self) {
        if self.people.capacity() > 4096 && self.people.len() < self.people.capacity() / 8 {
            self.people.shrink_to(self.people.len() * 2);
        }
        if self.memories.capacity() > 4096 && self.memories.len() < self.memories.capacity() / 8 {
            self.memories.shrink_to(self.memories.len() * 2);
        }
    }

    /// Forms the rooms that are possible on a topic, at most [`ROOMS_PER_STEP`].
    pub(crate) fn settle(&mut self, topic: TopicId, now: Millis, changes: &mut Vec<Change>) {
        for _ in 0..ROOMS_PER_STEP {
            let mut heads = LobbyHeads {
                policy: &self.policy,
                people: &self.people,
                queues: &self.queues,
                now,
                over: Vec::new(),
            };
            let chosen = choose(
                &mut heads,
                &self.companions,
                &self.policy.room_types,
                self.policy.merge_fallback,
                topic,
                now,
            );
            let over = heads.over;
            let nobody_over = over.is_empty();
            for (session, reason) in over {
                self.drop(session, reason, now, changes);
            }
            match chosen {
                Some((kind, group)) => self.reserve(topic, kind, &group, now, changes),
                // Those who were dropped may have hidden others who can be seated.
                None if !nobody_over => {}
                None => {
                    self.unsettled.remove(&topic);
                    return;
                }
            }
        }
        self.unsettled.insert(topic);
    }

    pub(crate) fn reserve(
        &mut self,
        topic: TopicId,
        kind: Kind,
        group: &[Candidate],
        now: Millis,
        changes: &mut Vec<Change>,
    ) {
        let room = self.room_ids.next(now);
        let mut people = Vec::with_capacity(group.len());
        for candidate in group {
            let session = candidate.session;
            let Some(Person::Waiting(ticket)) = self.people.get(&session) else { continue };
            let ticket = *ticket;
            self.queues.remove(ticket.queue, ticket.number);
            self.alarms.clear(ticket.alarm, ticket.number, session);
            let hold = Hold { ticket, room, leaving: None };
            self.people.insert(session, Person::Reserved(Box::new(hold)));
            people.push(Reserved {
                session,
                ticket: ticket.number,
                requested: ticket.queue.room_type,
                since: ticket.since,
            });
        }
        let reservation = Reservation { room, topic, kind, formed_at: now, people };
        self.lapses.push_back((now.saturating_add(self.policy.reservation_ttl), room));
        self.reservations.insert(room, reservation.clone());
        changes.push(Change::Reserved(reservation));
    }

    pub(crate) fn undo(
        &mut self,
        room: RoomId,
        undone: Undone,
        now: Millis,
        changes: &mut Vec<Change>,
    ) {
        let Some(reservation) = self.reservations.remove(&room) else { return };
        for person in &reservation.people {
            let held = matches!(
                self.people.get(&person.session),
                Some(Person::Reserved(hold)) if hold.room == room
            );
            if held {
                self.put_back(person.session, Some(undone), now, changes);
            }
        }
    }

    /// Ends the hold on somebody: back in the queue at the old place, or idle when they wanted to
    /// leave, when the wait has ended meanwhile, or when rooms with them were refused too often.
    pub(crate) fn put_back(
        &mut self,
        session: SessionId,
        undone: Option<Undone>,
        now: Millis,
        changes: &mut Vec<Change>,
    ) {
        let Some(Person::Reserved(hold)) = self.people.remove(&session) else { return };
        let mut ticket = hold.ticket;
        if undone == Some(Undone::Refused) {
            ticket.refusals += 1;
            let hold = HOLD.0 << u32::from(ticket.refusals - 1).min(8);
            ticket.held_until = now.saturating_add(hold.min(HOLD.1));
        }
        let failed = Some(IdleReason::Failed).filter(|_| ticket.refusals >= REFUSALS);
        // Nobody could show a sign of life that counted while the room was being written.
        ticket.present_until = now.saturating_add(self.policy.presence_timeout);
        match hold.leaving.or(failed).or(ticket.over(&self.policy, now)) {
            Some(reason) => {
                self.set_idle(session, reason, now);
                changes.push(Change::Dropped { session, ticket: ticket.number, reason });
            }
            None => {
                self.place_ticket(session, ticket, now);
                changes.push(Change::Returned { session, ticket: ticket.number });
            }
        }
        self.unsettled.insert(ticket.queue.topic);
    }

    pub(crate) fn end(&mut self, room: RoomId, now: Millis, changes: &mut Vec<Change>) {
        let Some(people) = self.rooms.remove(&room) else { return };
        for session in &people {
            self.set_idle(*session, IdleReason::RoomClosed, now);
        }
        changes.push(Change::Ended { room, people });
    }
}

/// The heads of the queues as the choice sees them, and who was found to be gone on the way (the
/// same person possibly more than once).
struct LobbyHeads<'a> {
    policy: &'a Policy,
    people: &'a HashMap<SessionId, Person>,
    queues: &'a Queues,
    now: Millis,
    over: Vec<(SessionId, IdleReason)>,
}

impl Heads for LobbyHeads<'_> {
    fn length(&self, queue: Queue) -> usize {
        self.queues.length(queue)
    }

    fn candidates(&mut self, queue: Queue) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for (_, session) in self.queues.people(queue) {
            let Some(Person::Waiting(ticket)) = self.people.get(&session) else { continue };
            if let Some(reason) = ticket.over(self.policy, self.now) {
                self.over.push((session, reason));
                if self.over.len() >= SWEEP_LIMIT {
                    break;
                }
            } else if ticket.held_until <= self.now {
                candidates.push(ticket.candidate(session, self.policy, self.now));
                if candidates.len() >= LOOK_AHEAD {
                    break;
                }
            }
        }
        candidates
    }
}
