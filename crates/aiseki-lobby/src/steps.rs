//! The steps that the transitions of the lobby are made of.

use crate::change::{Change, Sign, Undone};
use crate::ids::{Queue, RoomId, SessionId, TicketNumber, TopicId};
use crate::lobby::{Lobby, REASON_KEPT, REFUSALS, SWEEP_LIMIT};
use crate::person::{Hold, IdleReason, Person, Reservation, Reserved, Seat, Sitting, Ticket};
use crate::policy::{Millis, Policy};
use crate::queue::Queues;
use crate::resume::Standing;
use crate::seating::{Candidate, Companions, Heads, Kind, LOOK_AHEAD, SCAN_LIMIT, choose};
use crate::shards::Shards;

/// The shortest and the longest time for which the people of a refused room are not seated again.
const HOLD: (Millis, Millis) = (1_000, 30_000);

impl<C: Companions> Lobby<C> {
    /// Puts somebody who does not wait into a queue.
    pub(crate) fn place(
        &mut self,
        session: SessionId,
        queue: Queue,
        number: TicketNumber,
        standing: Standing,
        now: Millis,
    ) {
        self.place_ticket(
            session,
            Ticket {
                number,
                place: standing.place,
                queue,
                since: standing.since,
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
        self.latest_since = self.latest_since.max(ticket.since);
        self.queues.insert(ticket.queue, ticket.place, session);
        self.stand(session, Person::Waiting(ticket));
        self.alarms.set(ticket.alarm, session);
    }

    /// Takes somebody who waits out of the queue. Where they stand from now on is up to the caller.
    fn dequeue(&mut self, session: SessionId) -> Option<Ticket> {
        let Some(Person::Waiting(ticket)) = self.people.get(&session) else { return None };
        let ticket = *ticket;
        self.queues.remove(ticket.queue, ticket.place);
        self.alarms.clear(ticket.alarm, session);
        Some(ticket)
    }

    /// Ends the wait of somebody who stands in a queue, for `reason` unless it was over before that.
    pub(crate) fn drop(
        &mut self,
        session: SessionId,
        reason: IdleReason,
        now: Millis,
        changes: &mut Vec<Change>,
    ) {
        let Some(ticket) = self.dequeue(session) else { return };
        let reason = ticket.over(&self.policy, now).unwrap_or(reason);
        // In a long queue somebody has come into view who was too far from the head before.
        if self.queues.length(ticket.queue) >= LOOK_AHEAD {
            self.unsettled.insert(ticket.queue.topic);
        }
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

    /// Notes a sign of life of somebody whose wait is not over.
    pub(crate) fn note_sign(&mut self, session: SessionId, sign: Sign, now: Millis) {
        let Some(Person::Waiting(ticket)) = self.people.get_mut(&session) else { return };
        if ticket.over(&self.policy, now).is_some() {
            return;
        }
        let kept_for = match sign {
            Sign::Present => self.policy.presence_timeout,
            Sign::Closed => self.policy.closed_grace.min(self.policy.presence_timeout),
        };
        ticket.present_until = now.saturating_add(kept_for);
        // A later end is noticed when the alarm goes off; only an earlier one has to move it.
        let alarm = ticket.next_alarm(&self.policy, now);
        if alarm < ticket.alarm {
            self.alarms.clear(ticket.alarm, session);
            ticket.alarm = alarm;
            self.alarms.set(alarm, session);
        }
    }

    pub(crate) fn set_idle(&mut self, session: SessionId, reason: IdleReason, now: Millis) {
        let until = now.saturating_add(REASON_KEPT);
        self.stand(session, Person::Idle { reason, until, kept: None });
        self.alarms.set(forgotten_at(until), session);
    }

    /// From now on the person stands here. Somebody who waited has been taken out of the queue before.
    pub(crate) fn stand(&mut self, session: SessionId, person: Person) {
        if let Some(Person::Idle { until, .. }) = self.people.insert(session, person) {
            self.alarms.clear(forgotten_at(until), session);
        }
    }

    pub(crate) fn since(&self, session: SessionId) -> Millis {
        match self.people.get(&session) {
            Some(Person::Waiting(ticket)) => ticket.since,
            _ => 0,
        }
    }

    /// Since when somebody waits who enters a queue now: never before the newest of that queue, also
    /// when the clock has stepped back.
    pub(crate) fn since_for(&self, queue: Queue, now: Millis) -> Millis {
        if now >= self.latest_since {
            return now;
        }
        let newest = self.queues.people(queue).next_back();
        now.max(newest.map_or(0, |(_, session)| self.since(session)))
    }

    /// Does what is due, at most [`SWEEP_LIMIT`] of each kind. What it leaves is noticed by whoever
    /// looks, since every look asks whether a wait is over.
    pub(crate) fn sweep(&mut self, now: Millis, changes: &mut Vec<Change>) {
        for _ in 0..SWEEP_LIMIT {
            let Some(session) = self.alarms.pop_due(now) else { break };
            self.wake(session, now, changes);
        }
        for _ in 0..SWEEP_LIMIT {
            match self.lapses.first() {
                Some((at, room)) if *at <= now => self.undo(*room, Undone::Lapsed, now, changes),
                _ => break,
            }
        }
    }

    /// Looks at somebody whose alarm went off.
    fn wake(&mut self, session: SessionId, now: Millis, changes: &mut Vec<Change>) {
        let Some(person) = self.people.get_mut(&session) else { return };
        match person {
            Person::Waiting(ticket) => {
                // Ripe or free by now; and whatever else changes with time is seen again this often.
                self.unsettled.insert(ticket.queue.topic);
                let over = ticket.over(&self.policy, now).is_some();
                // Somebody who is dropped next has an alarm like everybody who waits.
                ticket.alarm = if over { now } else { ticket.next_alarm(&self.policy, now) };
                self.alarms.set(ticket.alarm, session);
                self.drop_if_over(session, now, changes);
            }
            Person::Idle { .. } => {
                self.people.remove(&session);
            }
            Person::Reserved(_) | Person::Seated(_) => {}
        }
    }

    /// Forms the rooms that are possible on a topic, at most `limit`, and answers how many it formed.
    pub(crate) fn settle(
        &mut self,
        topic: TopicId,
        limit: usize,
        now: Millis,
        changes: &mut Vec<Change>,
    ) -> usize {
        for formed in 0..limit {
            let heads = LobbyHeads {
                policy: &self.policy,
                people: &self.people,
                queues: &self.queues,
                now,
            };
            match choose(&heads, &self.companions, &self.policy, topic, now) {
                Some((kind, group)) => self.reserve(topic, kind, &group, now, changes),
                None => {
                    self.unsettled.remove(&topic);
                    return formed;
                }
            }
        }
        self.unsettled.insert(topic);
        limit
    }

    fn reserve(
        &mut self,
        topic: TopicId,
        kind: Kind,
        group: &[Candidate],
        now: Millis,
        changes: &mut Vec<Change>,
    ) {
        let room = self.room_ids.next(now);
        let mut people = Vec::with_capacity(group.len());
        for Candidate { session, .. } in group {
            let Some(ticket) = self.dequeue(*session) else { continue };
            let hold = Hold { ticket, room, leaving: None };
            self.stand(*session, Person::Reserved(Box::new(hold)));
            people.push(Reserved {
                session: *session,
                ticket: ticket.number,
                requested: ticket.queue.room_type,
                since: ticket.since,
            });
        }
        let reservation = Reservation { room, topic, kind, formed_at: now, people };
        self.lapses.insert((self.lapses_at(&reservation), room));
        self.reservations.insert(room, reservation.clone());
        changes.push(Change::Reserved(reservation));
    }

    fn lapses_at(&self, reservation: &Reservation) -> Millis {
        reservation.formed_at.saturating_add(self.policy.reservation_ttl)
    }

    /// Forgets a reservation; its people are dealt with by the caller.
    pub(crate) fn take_reservation(&mut self, room: RoomId) -> Option<Reservation> {
        let reservation = self.reservations.remove(&room)?;
        self.lapses.remove(&(self.lapses_at(&reservation), room));
        Some(reservation)
    }

    pub(crate) fn undo(
        &mut self,
        room: RoomId,
        undone: Undone,
        now: Millis,
        changes: &mut Vec<Change>,
    ) {
        let Some(reservation) = self.take_reservation(room) else { return };
        for person in &reservation.people {
            self.put_back(person.session, room, undone, now, changes);
        }
    }

    /// Ends the hold of a room on somebody: back in the queue at the old place, or idle when they
    /// wanted to leave, when the wait has ended meanwhile, or when rooms with them were refused too
    /// often. Somebody who is not held by this room stays where they are.
    pub(crate) fn put_back(
        &mut self,
        session: SessionId,
        room: RoomId,
        undone: Undone,
        now: Millis,
        changes: &mut Vec<Change>,
    ) {
        let hold = match self.people.get(&session) {
            Some(Person::Reserved(hold)) if hold.room == room => **hold,
            _ => return,
        };
        let mut ticket = hold.ticket;
        if undone == Undone::Refused {
            ticket.refusals += 1;
            let doubled = HOLD.0 << u32::from(ticket.refusals - 1);
            ticket.held_until = now.saturating_add(doubled.min(HOLD.1));
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
                self.unsettled.insert(ticket.queue.topic);
                changes.push(Change::Returned { session, ticket: ticket.number });
            }
        }
    }

    /// Gives somebody who waits, or is held by the room, a seat in it.
    pub(crate) fn seat(&mut self, person: &Reserved, reservation: &Reservation) {
        let stood = self.standing(person.session);
        self.dequeue(person.session);
        let seat = Seat {
            room: reservation.room,
            topic: reservation.topic,
            size: reservation.size(),
            requested: person.requested,
            matched_at: reservation.formed_at,
        };
        self.stand(person.session, Person::Seated(Sitting { seat, stood, came: false }));
    }

    /// Ends a room; with `offer` its people may take up their places again.
    pub(crate) fn end(
        &mut self,
        room: RoomId,
        offer: bool,
        now: Millis,
        changes: &mut Vec<Change>,
    ) {
        let Some(people) = self.rooms.remove(&room) else { return };
        for (i, session) in people.iter().enumerate() {
            for other in &people[i + 1..] {
                self.companions.parted(*session, *other, now);
            }
            self.room_closed(*session, offer, now);
        }
        changes.push(Change::Ended { room, people });
    }
}

/// When the alarm of somebody idle goes off: on the full second, since nobody waits for it.
fn forgotten_at(until: Millis) -> Millis {
    until.checked_next_multiple_of(1_000).unwrap_or(until)
}

/// The heads of the queues as the choice sees them.
struct LobbyHeads<'a> {
    policy: &'a Policy,
    people: &'a Shards<SessionId, Person>,
    queues: &'a Queues,
    now: Millis,
}

impl Heads for LobbyHeads<'_> {
    fn length(&self, queue: Queue) -> usize {
        self.queues.length(queue)
    }

    fn candidates(&self, queue: Queue) -> Vec<Candidate> {
        let seatable = |session: SessionId| match self.people.get(&session) {
            Some(Person::Waiting(ticket))
                if ticket.held_until <= self.now
                    && ticket.over(self.policy, self.now).is_none() =>
            {
                Some(ticket.candidate(session, self.policy, self.now))
            }
            _ => None,
        };
        let people = self.queues.people(queue).take(SCAN_LIMIT);
        people.filter_map(|(_, session)| seatable(session)).take(LOOK_AHEAD).collect()
    }
}
