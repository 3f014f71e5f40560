//! The state machine over all queues: every transition, and what each of them says happened.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::{Change, Refused, Sign, Undone, Vacate};
use crate::ids::{Queue, RoomId, RoomIds, SessionId, TicketNumber, TopicId};
use crate::person::{IdleReason, Person, Reservation, Reserved, State};
use crate::policy::{Millis, Policy};
use crate::queue::{Alarms, Queues};
use crate::resume::{KeptPlace, Offer, Standing};
use crate::seating::{Anyone, Companions};
use crate::shards::Shards;

/// Rooms formed in one step, at most. What is left is formed by the next.
pub const ROOMS_PER_STEP: usize = 32;
/// Alarms heard, reservations undone and people of a closed topic dropped in one step, at most.
pub const SWEEP_LIMIT: usize = 1000;
/// Topics settled in one [`Lobby::tick`], at most.
pub const TOPICS_PER_TICK: usize = 256;
/// People ahead are counted up to this number, so that a poll costs the same in any queue.
pub const AHEAD_LIMIT: usize = 1000;
/// For how long the lobby remembers why somebody is idle: ten minutes.
pub const REASON_KEPT: Millis = 600_000;
/// After this many refusals of rooms with the same person, that person's wait has failed.
pub const REFUSALS: u8 = 5;

/// All people and all queues. A value: it reads no clock and does no I/O, so every transition takes
/// `now` and says in `changes` what happened, for an adapter to store and to announce.
pub struct Lobby<C = Anyone> {
    pub(crate) policy: Policy,
    pub(crate) companions: C,
    pub(crate) people: Shards<SessionId, Person>,
    pub(crate) queues: Queues,
    pub(crate) alarms: Alarms,
    pub(crate) reservations: BTreeMap<RoomId, Reservation>,
    /// The reservations in the order in which they lapse.
    pub(crate) lapses: BTreeSet<(Millis, RoomId)>,
    /// Who holds a seat in which live room.
    pub(crate) rooms: Shards<RoomId, Vec<SessionId>>,
    /// Topics on which a room may be possible that has not been looked for.
    pub(crate) unsettled: BTreeSet<TopicId>,
    pub(crate) next_ticket: TicketNumber,
    /// The highest `since` that any wait has had.
    pub(crate) latest_since: Millis,
    pub(crate) room_ids: RoomIds,
}

impl Lobby<Anyone> {
    /// An empty lobby in which everybody may sit with everybody. `entropy` makes its room ids differ
    /// from those of other lobbies: take random bits, or a seed in a test.
    pub fn new(policy: Policy, entropy: u64) -> Self {
        Self::with_companions(policy, Anyone, entropy)
    }
}

impl<C: Companions> Lobby<C> {
    /// An empty lobby in which `companions` says who may sit together.
    pub fn with_companions(policy: Policy, companions: C, entropy: u64) -> Self {
        Self {
            policy,
            companions,
            people: Shards::new(entropy),
            queues: Queues::new(entropy),
            alarms: Alarms::default(),
            reservations: BTreeMap::new(),
            lapses: BTreeSet::new(),
            rooms: Shards::new(entropy),
            unsettled: BTreeSet::new(),
            next_ticket: TicketNumber(1),
            latest_since: 0,
            room_ids: RoomIds::new(entropy),
        }
    }

    /// Begins to wait, and forms what rooms that makes possible. Somebody who waits in exactly this
    /// queue keeps the place.
    pub fn enter(
        &mut self,
        session: SessionId,
        queue: Queue,
        now: Millis,
        changes: &mut Vec<Change>,
    ) -> Result<State, Refused> {
        self.resume(session, queue, None, now, changes)
    }

    /// Begins to wait like [`Lobby::enter`], at the old place when one is offered for this room and in
    /// exactly this queue.
    pub fn resume(
        &mut self,
        session: SessionId,
        queue: Queue,
        room: Option<RoomId>,
        now: Millis,
        changes: &mut Vec<Change>,
    ) -> Result<State, Refused> {
        self.sweep(now, changes);
        if self.policy.room_types.get(queue.room_type).is_none() {
            return Err(Refused::InvalidRoomType);
        }
        self.drop_if_over(session, now, changes);
        match self.people.get_mut(&session) {
            Some(Person::Waiting(ticket)) if ticket.queue == queue => {
                self.note_sign(session, Sign::Present, now);
                self.settle(queue.topic, ROOMS_PER_STEP, now, changes);
                return Ok(self.state(session, now));
            }
            Some(Person::Reserved(hold)) if hold.ticket.queue == queue => {
                // Waiting again takes back a cancel, but neither a ban nor the end of the topic.
                hold.leaving = hold.leaving.filter(|reason| *reason != IdleReason::Left);
                return Ok(self.state(session, now));
            }
            Some(Person::Waiting(_) | Person::Reserved(_)) => {
                return Err(Refused::AlreadyWaiting(self.state(session, now)));
            }
            Some(Person::Seated(_)) => {
                return Err(Refused::AlreadyMatched(self.state(session, now)));
            }
            Some(Person::Idle { .. }) | None => {}
        }
        let number = self.next_ticket;
        self.next_ticket.0 += 1;
        let standing = room.and_then(|room| self.offered(session, room, queue, now));
        let standing = standing
            .unwrap_or_else(|| Standing { since: self.since_for(queue, now), place: number });
        let since = standing.since;
        self.place(session, queue, number, standing, now);
        changes.push(Change::Entered { session, ticket: number, queue, since });
        self.settle(queue.topic, ROOMS_PER_STEP, now, changes);
        Ok(self.state(session, now))
    }

    /// Stops waiting. Idempotent; the error is the state of somebody for whom a room was formed
    /// first. Should that room be undone, the person is idle.
    pub fn cancel(
        &mut self,
        session: SessionId,
        now: Millis,
        changes: &mut Vec<Change>,
    ) -> Result<(), State> {
        self.sweep(now, changes);
        self.drop_if_over(session, now, changes);
        match self.people.get_mut(&session) {
            Some(Person::Waiting(_)) => {
                self.drop(session, IdleReason::Left, now, changes);
                Ok(())
            }
            Some(Person::Reserved(hold)) => {
                hold.leaving.get_or_insert(IdleReason::Left);
                Err(self.state(session, now))
            }
            Some(Person::Seated(_)) => Err(self.state(session, now)),
            Some(Person::Idle { .. }) | None => Ok(()),
        }
    }

    /// The person's state, which is a sign of life; forms what rooms are possible on their topic.
    pub fn poll(&mut self, session: SessionId, now: Millis, changes: &mut Vec<Change>) -> State {
        self.sweep(now, changes);
        self.drop_if_over(session, now, changes);
        if let Some(Person::Waiting(ticket)) = self.people.get(&session) {
            let topic = ticket.queue.topic;
            self.note_sign(session, Sign::Present, now);
            self.settle(topic, ROOMS_PER_STEP, now, changes);
        }
        self.state(session, now)
    }

    /// Signs of life of many people at once. Somebody whose time is already over is not revived.
    pub fn touch(&mut self, sessions: &[SessionId], sign: Sign, now: Millis) {
        for session in sessions {
            self.note_sign(*session, sign, now);
        }
    }

    /// Does what is due at `now` with nobody asking: ended waits, absent people, lapsed reservations,
    /// rooms that became possible. Bounded; [`Lobby::next_due`] tells when to come again.
    pub fn tick(&mut self, now: Millis, changes: &mut Vec<Change>) {
        self.sweep(now, changes);
        let mut rooms = 0;
        for _ in 0..TOPICS_PER_TICK {
            let Some(topic) = self.unsettled.first().copied() else { break };
            rooms += self.settle(topic, ROOMS_PER_STEP - rooms, now, changes);
            if rooms == ROOMS_PER_STEP {
                break;
            }
        }
    }

    /// When [`Lobby::tick`] has something to do next; a time that has passed means at once.
    pub fn next_due(&self) -> Option<Millis> {
        if !self.unsettled.is_empty() {
            return Some(0);
        }
        let lapse = self.lapses.first().map(|(at, _)| *at);
        [self.alarms.next(), lapse].into_iter().flatten().min()
    }

    /// The room was written and `seated` are those of its people who hold a seat in it: they are
    /// matched, the others of the reservation return to their place. Somebody is seated only when
    /// reserved by this room, or back in the queue with the same ticket, and nobody is seated alone.
    /// Answers who of `seated` does not sit there: these seats have to be given up. May be repeated.
    pub fn confirm(
        &mut self,
        reservation: &Reservation,
        seated: &[SessionId],
        now: Millis,
        changes: &mut Vec<Change>,
    ) -> Vec<SessionId> {
        self.sweep(now, changes);
        let room = reservation.room;
        self.take_reservation(room);
        let can_sit = |person: &&Reserved| match self.people.get(&person.session) {
            Some(Person::Reserved(hold)) => hold.room == room,
            Some(Person::Waiting(ticket)) => ticket.number == person.ticket,
            _ => false,
        };
        let named = reservation.people.iter().filter(|person| seated.contains(&person.session));
        let newcomers: Vec<Reserved> = named.filter(can_sit).copied().collect();
        let sitting = self.rooms.get(&room).map_or(0, Vec::len);
        if !newcomers.is_empty() && sitting + newcomers.len() >= 2 {
            for person in &newcomers {
                self.seat(person, reservation);
            }
            let people: Vec<SessionId> = newcomers.iter().map(|person| person.session).collect();
            self.rooms.get_or_default(room).extend(&people);
            changes.push(Change::Seated { room, people });
        }
        for person in &reservation.people {
            self.put_back(person.session, room, Undone::Lapsed, now, changes);
        }
        let sits = |session: &SessionId| match self.people.get(session) {
            Some(Person::Seated(sitting)) => sitting.seat.room == room,
            _ => false,
        };
        seated.iter().copied().filter(|session| !sits(session)).collect()
    }

    /// Undoes a reservation: its people return to their places. Unknown rooms change nothing.
    pub fn release(
        &mut self,
        room: RoomId,
        undone: Undone,
        now: Millis,
        changes: &mut Vec<Change>,
    ) {
        self.sweep(now, changes);
        self.undo(room, undone, now, changes);
    }

    /// Gives up a seat. With fewer than two seats left the room ends.
    pub fn vacate(
        &mut self,
        session: SessionId,
        room: RoomId,
        now: Millis,
        changes: &mut Vec<Change>,
    ) -> Vacate {
        self.dismiss(session, room, IdleReason::Left, now, changes)
    }

    /// Ends somebody's hold of a seat for `reason`, such as a ban; otherwise like [`Lobby::vacate`]. Should
    /// the room end with somebody absent who never came, those who did are offered their places.
    pub fn dismiss(
        &mut self,
        session: SessionId,
        room: RoomId,
        reason: IdleReason,
        now: Millis,
        changes: &mut Vec<Change>,
    ) -> Vacate {
        self.sweep(now, changes);
        match self.people.get(&session) {
            Some(Person::Seated(sitting)) if sitting.seat.room == room => {}
            _ => return Vacate::NotSeated,
        }
        let offer = reason == IdleReason::Absent && self.never_came(session);
        self.set_idle(session, reason, now);
        changes.push(Change::Vacated { room, session });
        if let Some(people) = self.rooms.get_mut(&room) {
            people.retain(|other| *other != session);
            for other in &*people {
                self.companions.parted(session, *other, now);
            }
            if people.len() < 2 {
                self.end(room, offer, now, changes);
            }
        }
        Vacate::Left
    }

    /// Ends a room, whoever sits in it. Answers whether it was live.
    pub fn close_room(&mut self, room: RoomId, now: Millis, changes: &mut Vec<Change>) -> bool {
        self.sweep(now, changes);
        let live = self.rooms.get(&room).is_some();
        if live {
            self.end(room, false, now, changes);
        }
        live
    }

    /// Takes everybody who waits for `topic` out of its queues, in steps of [`SWEEP_LIMIT`] people;
    /// answers whether some are left for another step.
    pub fn close_topic(&mut self, topic: TopicId, now: Millis, changes: &mut Vec<Change>) -> bool {
        self.sweep(now, changes);
        let waiting: Vec<SessionId> = self.queues.people_of(topic).take(SWEEP_LIMIT).collect();
        for session in &waiting {
            self.drop(*session, IdleReason::TopicClosed, now, changes);
        }
        for reservation in self.reservations.values().filter(|r| r.topic == topic) {
            for person in &reservation.people {
                if let Some(Person::Reserved(hold)) = self.people.get_mut(&person.session) {
                    hold.leave(IdleReason::TopicClosed);
                }
            }
        }
        waiting.len() == SWEEP_LIMIT
    }

    /// Ends the wait of somebody for `reason`, such as a ban. A seat is not touched.
    pub fn expel(
        &mut self,
        session: SessionId,
        reason: IdleReason,
        now: Millis,
        changes: &mut Vec<Change>,
    ) {
        self.sweep(now, changes);
        match self.people.get_mut(&session) {
            Some(Person::Waiting(_)) => self.drop(session, reason, now, changes),
            Some(Person::Reserved(hold)) => hold.leave(reason),
            _ => {}
        }
    }

    /// The person's state at `now`, without a sign of life and without changing anything.
    pub fn state(&self, session: SessionId, now: Millis) -> State {
        match self.people.get(&session) {
            None => State::Idle(None),
            Some(Person::Idle { until, .. }) if *until <= now => State::Idle(None),
            Some(Person::Idle { until, kept: Some(kept), .. }) => {
                let KeptPlace { room, queue, waited, .. } = **kept;
                State::Offered(Offer { room, queue, waited, until: *until })
            }
            Some(Person::Idle { reason, .. }) => State::Idle(Some(*reason)),
            Some(Person::Waiting(ticket)) => match ticket.over(&self.policy, now) {
                Some(reason) => State::Idle(Some(reason)),
                None => {
                    let ahead = self.queues.ahead(ticket.queue, ticket.place, AHEAD_LIMIT);
                    State::Waiting(ticket.waiting(ahead, &self.policy))
                }
            },
            Some(Person::Reserved(hold)) => State::Waiting(hold.ticket.waiting(0, &self.policy)),
            Some(Person::Seated(sitting)) => State::Matched(sitting.seat),
        }
    }

    /// Whether the person waits in exactly this queue: then [`Lobby::enter`] is a mere repetition.
    pub fn waits_in(&self, session: SessionId, queue: Queue, now: Millis) -> bool {
        matches!(self.state(session, now), State::Waiting(waiting) if waiting.queue == queue)
    }

    /// Every queue that has people, with its length and its oldest `since`, in no particular order.
    pub fn queues(&self) -> impl Iterator<Item = (Queue, usize, Millis)> + '_ {
        self.queues.lengths().map(|(queue, length)| {
            let oldest = self.queues.people(queue).next();
            (queue, length, oldest.map_or(0, |(_, session)| self.since(session)))
        })
    }

    /// Every queue that has people, with its length, in no particular order.
    pub fn lengths(&self) -> impl Iterator<Item = (Queue, usize)> + '_ {
        self.queues.lengths()
    }

    /// How many people wait in this queue.
    pub fn length(&self, queue: Queue) -> usize {
        self.queues.length(queue)
    }

    /// How many people wait in all queues together.
    pub fn waiting(&self) -> usize {
        self.queues.total()
    }

    /// The people who hold a seat in a live room.
    pub fn seated_in(&self, room: RoomId) -> Option<&[SessionId]> {
        self.rooms.get(&room).map(Vec::as_slice)
    }

    /// How many rooms are live.
    pub fn live_rooms(&self) -> usize {
        self.rooms.len()
    }

    /// The number that the next wait will get.
    pub fn next_ticket(&self) -> TicketNumber {
        self.next_ticket
    }

    /// The policy that this lobby follows.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}
