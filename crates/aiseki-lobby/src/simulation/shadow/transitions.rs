//! What each transition is expected to do.

use super::{Forming, Place, Shadow};
use crate::change::{Change, Refused, Sign, Undone, Vacate};
use crate::ids::{Queue, RoomId, SessionId, TicketNumber};
use crate::lobby::{REASON_KEPT, REFUSALS};
use crate::person::{IdleReason, Reservation, Seat, State};
use crate::policy::Millis;
use crate::resume::KeptPlace;
use crate::simulation::spec::Wait;
use crate::simulation::{Reply, numbered};

impl Shadow {
    /// Somebody who was taken for a room, with the queue from which they came.
    pub(super) fn taken(&self, back: u16, nth: u8) -> (SessionId, RoomId, Queue) {
        let (room, _) = &self.rooms[self.back(back)];
        let person = room.people[usize::from(nth) % room.people.len()];
        let queue = Queue { topic: room.topic, room_type: person.requested };
        (person.session, room.room, queue)
    }

    pub(super) fn sweep(&mut self, now: Millis, told: &mut Vec<Change>) {
        for wait in self.waits() {
            if let Some(reason) = self.over(&wait, now) {
                self.set(wait.session, Place::Idle(reason, now, None));
                told.push(Change::Dropped { session: wait.session, ticket: wait.ticket, reason });
            }
        }
        for index in 0..self.rooms.len() {
            let (room, open) = &self.rooms[index];
            if *open && self.lapse(room) <= now {
                self.undo(index, Undone::Lapsed, now, told);
            }
        }
        for place in &mut self.places {
            if matches!(place, Place::Idle(_, at, _) if (*at + REASON_KEPT).next_multiple_of(1_000) <= now)
            {
                *place = Place::Nowhere;
            }
        }
    }

    pub(super) fn enter(
        &mut self,
        session: SessionId,
        queue: Queue,
        room: Option<RoomId>,
        now: Millis,
        told: &mut Vec<Change>,
    ) -> (Reply, Forming) {
        let state = self.state(session, now);
        if self.policy.room_types.get(queue.room_type).is_none() {
            return (Reply::Entered(Err(Refused::InvalidRoomType)), Forming::Nowhere);
        }
        match self.place(session) {
            Place::Waiting(wait) if wait.queue == queue => {
                self.touch(session, Sign::Present, now);
                return (Reply::Entered(Ok(state)), Forming::On(queue.topic));
            }
            Place::Reserved(wait, room, leaving) if wait.queue == queue => {
                let leaving = if leaving == Some(IdleReason::Left) { None } else { leaving };
                self.set(session, Place::Reserved(wait, room, leaving));
                return (Reply::Entered(Ok(state)), Forming::Nowhere);
            }
            Place::Waiting(_) | Place::Reserved(..) => {
                return (Reply::Entered(Err(Refused::AlreadyWaiting(state))), Forming::Nowhere);
            }
            Place::Seated(..) => {
                return (Reply::Entered(Err(Refused::AlreadyMatched(state))), Forming::Nowhere);
            }
            Place::Nowhere | Place::Idle(..) => {}
        }
        let ticket = TicketNumber(self.next_ticket);
        self.next_ticket += 1;
        let others = self.waits();
        let newest = others.iter().filter(|it| it.queue == queue).max_by_key(|it| it.place);
        let mut wait = Wait {
            session,
            ticket,
            place: ticket,
            queue,
            since: now.max(newest.map_or(0, |wait| wait.since)),
            present_until: now + self.policy.presence_timeout,
            held_until: 0,
            refusals: 0,
        };
        if let (State::Offered(offer), Place::Idle(_, _, Some(kept))) = (state, self.place(session))
            && (room, queue) == (Some(offer.room), offer.queue)
        {
            (wait.place, wait.since) = (kept.place, now - kept.waited);
            self.resumed += 1;
        }
        let since = wait.since;
        self.set(session, Place::Waiting(wait));
        told.push(Change::Entered { session, ticket, queue, since });
        (Reply::Entered(Ok(state)), Forming::On(queue.topic))
    }

    pub(super) fn poll(&mut self, session: SessionId, now: Millis) -> (Reply, Forming) {
        self.touch(session, Sign::Present, now);
        let forming = match self.place(session) {
            Place::Waiting(wait) => Forming::On(wait.queue.topic),
            _ => Forming::Nowhere,
        };
        (Reply::State(self.state(session, now)), forming)
    }

    pub(super) fn touch(&mut self, session: SessionId, sign: Sign, now: Millis) {
        let kept_for = match sign {
            Sign::Present => self.policy.presence_timeout,
            Sign::Closed => self.policy.closed_grace.min(self.policy.presence_timeout),
        };
        if let Place::Waiting(mut wait) = self.place(session)
            && self.over(&wait, now).is_none()
        {
            wait.present_until = now + kept_for;
            self.set(session, Place::Waiting(wait));
        }
    }

    pub(super) fn cancel(
        &mut self,
        session: SessionId,
        now: Millis,
        told: &mut Vec<Change>,
    ) -> Reply {
        let state = self.state(session, now);
        match self.place(session) {
            Place::Nowhere | Place::Idle(..) => Reply::Cancelled(Ok(())),
            Place::Waiting(_) => {
                self.take_out(session, IdleReason::Left, now, told);
                Reply::Cancelled(Ok(()))
            }
            Place::Reserved(wait, room, leaving) => {
                let leaving = leaving.or(Some(IdleReason::Left));
                self.set(session, Place::Reserved(wait, room, leaving));
                Reply::Cancelled(Err(state))
            }
            Place::Seated(..) => Reply::Cancelled(Err(state)),
        }
    }

    pub(super) fn take_out(
        &mut self,
        session: SessionId,
        reason: IdleReason,
        now: Millis,
        told: &mut Vec<Change>,
    ) {
        match self.place(session) {
            Place::Waiting(wait) => {
                self.set(session, Place::Idle(reason, now, None));
                told.push(Change::Dropped { session, ticket: wait.ticket, reason });
            }
            // The end of a topic does not make a ban forgotten.
            Place::Reserved(_, _, Some(IdleReason::Banned)) if reason != IdleReason::Banned => {}
            Place::Reserved(wait, room, _) => {
                self.set(session, Place::Reserved(wait, room, Some(reason)));
            }
            _ => {}
        }
    }

    pub(super) fn confirm(
        &mut self,
        index: usize,
        missing: u8,
        now: Millis,
        told: &mut Vec<Change>,
    ) -> Reply {
        self.rooms[index].1 = false;
        let room = self.rooms[index].0.clone();
        let seated: Vec<_> = room
            .people
            .iter()
            .enumerate()
            .filter(|(i, _)| missing >> i & 1 == 0)
            .map(|(_, person)| *person)
            .collect();
        let mut newcomers = seated.clone();
        newcomers.retain(|person| match self.place(person.session) {
            Place::Reserved(_, held_by, _) => held_by == room.room,
            Place::Waiting(wait) => wait.ticket == person.ticket,
            _ => false,
        });
        if !newcomers.is_empty() && newcomers.len() + self.members(room.room).len() >= 2 {
            for person in &newcomers {
                let seat = Seat {
                    room: room.room,
                    topic: room.topic,
                    size: room.size(),
                    requested: person.requested,
                    matched_at: room.formed_at,
                };
                if let Place::Waiting(wait) | Place::Reserved(wait, ..) = self.place(person.session)
                {
                    self.set(person.session, Place::Seated(seat, wait, false));
                }
            }
            let people = newcomers.iter().map(|person| person.session).collect();
            told.push(Change::Seated { room: room.room, people });
        }
        self.return_all(&room, Undone::Lapsed, now, told);
        let members = self.members(room.room);
        let give_up = seated.iter().map(|person| person.session).filter(|it| !members.contains(it));
        Reply::GiveUp(give_up.collect())
    }

    pub(super) fn undo(
        &mut self,
        index: usize,
        undone: Undone,
        now: Millis,
        told: &mut Vec<Change>,
    ) {
        let (room, open) = self.rooms[index].clone();
        if open {
            self.rooms[index].1 = false;
            self.return_all(&room, undone, now, told);
        }
    }

    pub(super) fn return_all(
        &mut self,
        room: &Reservation,
        undone: Undone,
        now: Millis,
        told: &mut Vec<Change>,
    ) {
        for person in &room.people {
            let session = person.session;
            let Place::Reserved(mut wait, held_by, leaving) = self.place(session) else { continue };
            if held_by != room.room {
                continue;
            }
            wait.present_until = now + self.policy.presence_timeout;
            if undone == Undone::Refused {
                wait.refusals += 1;
                wait.held_until = now + [0, 1, 2, 4, 8, 16][usize::from(wait.refusals)] * 1_000;
            }
            let failed = (wait.refusals >= REFUSALS).then_some(IdleReason::Failed);
            match leaving.or(failed).or(self.over(&wait, now)) {
                Some(reason) => {
                    self.set(session, Place::Idle(reason, now, None));
                    told.push(Change::Dropped { session, ticket: wait.ticket, reason });
                }
                None => {
                    self.set(session, Place::Waiting(wait));
                    told.push(Change::Returned { session, ticket: wait.ticket });
                }
            }
        }
    }

    pub(super) fn vacate(
        &mut self,
        session: SessionId,
        room: Option<RoomId>,
        reason: IdleReason,
        now: Millis,
        told: &mut Vec<Change>,
    ) -> Reply {
        let Place::Seated(seat, _, came) = self.place(session) else {
            return Reply::Vacated(Vacate::NotSeated);
        };
        if room.is_some_and(|room| room != seat.room) {
            return Reply::Vacated(Vacate::NotSeated);
        }
        self.set(session, Place::Idle(reason, now, None));
        told.push(Change::Vacated { room: seat.room, session });
        for other in self.members(seat.room) {
            self.known.part(session, other, now);
        }
        if self.members(seat.room).len() < 2 {
            self.end(seat.room, reason == IdleReason::Absent && !came, now, told);
        }
        Reply::Vacated(Vacate::Left)
    }

    pub(super) fn end(&mut self, room: RoomId, offer: bool, now: Millis, told: &mut Vec<Change>) {
        let people = self.members(room);
        if people.is_empty() {
            return;
        }
        for (index, session) in people.iter().enumerate() {
            let kept = match self.place(*session) {
                Place::Seated(seat, wait, true) if offer => {
                    let (waited, timeout) =
                        (seat.matched_at.saturating_sub(wait.since), self.policy.wait_timeout);
                    let waited =
                        waited.min(timeout.saturating_sub(60_000).max(timeout - timeout / 2));
                    Some(KeptPlace { room, queue: wait.queue, waited, place: wait.place })
                }
                _ => None,
            };
            self.set(*session, Place::Idle(IdleReason::RoomClosed, now, kept));
            for other in &people[..index] {
                self.known.part(*other, *session, now);
            }
        }
        told.push(Change::Ended { room, people });
    }

    /// A room was formed: it has to be exactly the one that is due.
    pub(super) fn reserve(&mut self, room: &Reservation, now: Millis) -> Result<(), String> {
        let Some((kind, group)) = self.next_room(room.topic, now) else {
            return Err(format!("no room is possible, yet this was formed: {room:?}"));
        };
        let people = room.people.iter().map(|it| (it.session, it.ticket, it.requested, it.since));
        let due = group.iter().map(|it| (it.session, it.ticket, it.queue.room_type, it.since));
        let name = numbered(self.rooms.len());
        if kind != room.kind || !people.eq(due) || room.formed_at != now || room.room != name {
            return Err(format!("formed {room:?}\n  instead of {kind:?} {group:?}"));
        }
        for wait in group {
            self.set(wait.session, Place::Reserved(wait, name, None));
        }
        self.rooms.push((room.clone(), true));
        Ok(())
    }
}
