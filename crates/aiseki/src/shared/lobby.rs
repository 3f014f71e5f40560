//! The port of matching on shared stores.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aiseki_lobby::{
    IdleReason, Millis, Policy, Queue, RoomId, SessionId, Sign, State, TopicId, Vacate,
};
use tokio::sync::oneshot;

use super::{Leaving, PEOPLE_AT_ONCE, WaitingStore, failpoint};
use crate::bans::{BanSubject, Bans};
use crate::matching::{Door, Entered, Join, LobbyStore, NotEntered, QueueLength, TurnedAway};
use crate::port::{Pending, Unavailable};
use crate::rate_limit::{AddressGroup, Limited};
use crate::records::RecordStore;
use crate::rooms::RoomHub;

/// Everything that people do, on a waiting store and the records.
pub struct SharedLobby {
    waiting: Arc<dyn WaitingStore>,
    records: Arc<dyn RecordStore>,
    /// For how long a join may hold its answer until the room that it completed is written.
    hold: Duration,
    /// Joins that hold their answer.
    held: Mutex<HashMap<SessionId, Vec<oneshot::Sender<()>>>>,
    seats: SeatsKnown,
    /// Whether the waiting store may have seats that were given up in an outage.
    seats_doubted: AtomicBool,
    /// Whether rooms can be written, as far as this server knows.
    recording: AtomicBool,
    /// Who is connected to rooms here, when there are rooms to talk in: somebody banned is removed.
    rooms: Option<Arc<RoomHub>>,
}

/// Of which run of the waiting store this server knows that all live seats are in it.
#[derive(Default)]
struct SeatsKnown(Mutex<Option<String>>);

impl SharedLobby {
    /// The lobby on these stores.
    pub fn new(
        waiting: Arc<dyn WaitingStore>,
        records: Arc<dyn RecordStore>,
        hold: Duration,
        rooms: Option<Arc<RoomHub>>,
    ) -> Self {
        Self {
            waiting,
            records,
            hold,
            held: Mutex::default(),
            seats: SeatsKnown::default(),
            seats_doubted: AtomicBool::new(true),
            recording: AtomicBool::new(false),
            rooms,
        }
    }

    /// Where it is noted whether rooms can be written.
    pub(super) fn recording(&self) -> &AtomicBool {
        &self.recording
    }

    /// Ends waits for rooms of a size that is not offered any more.
    pub async fn end_abolished(&self, policy: &Policy) -> Result<(), Unavailable> {
        for (queue, _) in self.waiting.lengths().await? {
            if policy.room_types.get(queue.room_type).is_some() {
                continue;
            }
            loop {
                let page = self.waiting.addresses(Some(queue), None).await?;
                if page.is_empty() {
                    break;
                }
                let people = page.into_iter().map(|(session, ..)| session).collect();
                self.waiting.expel(people, IdleReason::TopicClosed).await?;
            }
        }
        Ok(())
    }

    /// These people were seated.
    pub fn seated(&self, sessions: &[SessionId]) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_empty() {
            return;
        }
        for session in sessions {
            for waiter in held.remove(session).into_iter().flatten() {
                // Whoever waited may have given up.
                let _ = waiter.send(());
            }
        }
    }

    /// All live seats are known to be in the waiting store, or not.
    pub fn set_seats_known(&self, run: Option<String>) {
        *self.seats.0.lock().unwrap_or_else(PoisonError::into_inner) = run;
    }

    /// Somebody may sit in the waiting store who has given up the seat by the records.
    pub(super) fn doubt_seats(&self) {
        self.seats_doubted.store(true, Ordering::Release);
    }

    pub(super) fn doubts_seats(&self) -> bool {
        self.seats_doubted.load(Ordering::Acquire)
    }

    /// Whether there was a doubt, which whoever asks now has to settle.
    pub(super) fn take_doubt(&self) -> bool {
        self.seats_doubted.swap(false, Ordering::AcqRel)
    }

    /// People have given up seats by the records, and now by the waiting store.
    async fn tell_departure(&self, leaving: Leaving) -> Result<(), Unavailable> {
        // A room that goes on is not among those whose endings are repeated.
        self.waiting.vacate(vec![leaving]).await.inspect_err(|_| self.doubt_seats())
    }

    /// While the waiting store may lack seats, the records are asked for this person's.
    async fn bring_seat(&self, session: SessionId) -> Result<(), Unavailable> {
        if self.seats.0.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Ok(());
        }
        // Another server may have read them back since.
        let runs = self.waiting.runs().await?;
        if runs.current == runs.seats_known_in {
            self.set_seats_known(Some(runs.current));
            return Ok(());
        }
        self.restore_seat(session).await.map(|_| ())
    }

    /// Gives this person the seat that the records have; whether they have one.
    async fn restore_seat(&self, session: SessionId) -> Result<bool, Unavailable> {
        let seats = self.records.seats_of(vec![session]).await?;
        if seats.is_empty() {
            return Ok(false);
        }
        self.waiting.restore_seats(seats).await.map(|()| true)
    }

    fn hear_of(&self, session: SessionId) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let waiters = held.entry(session).or_default();
        waiters.retain(|waiter| !waiter.is_closed());
        waiters.push(sender);
        receiver
    }

    async fn enter(
        &self,
        join: Join,
        door: Arc<dyn Door>,
    ) -> Result<Result<Entered, NotEntered>, Unavailable> {
        self.bring_seat(join.session).await?;
        let turned_away = door.check(&join, self.now()).err();
        // Listening begins before the step, so that no announcement falls in between.
        let news = self.hear_of(join.session);
        let entry = match self.waiting.enter(join, turned_away).await? {
            Ok(entry) => entry,
            Err(refused) => return Ok(Err(refused)),
        };
        // The door may have been shut after it was asked and before the step: whoever shut it did not
        // find this person yet.
        if let Err(why) = door.check(&join, self.now()) {
            let reason = match why {
                TurnedAway::Banned => IdleReason::Banned,
                TurnedAway::UnknownTopic | TurnedAway::InactiveTopic => IdleReason::TopicClosed,
            };
            self.waiting.expel(vec![join.session], reason).await?;
            return Ok(Err(NotEntered::TurnedAway(why)));
        }
        // The store may have lost this person's seat since this server last looked.
        if !entry.seats_known && self.restore_seat(join.session).await? {
            let state = self.waiting.poll(join.session).await?;
            return Ok(Err(NotEntered::AlreadyMatched(state)));
        }
        if !entry.reserved {
            return Ok(Ok(entry.entered));
        }
        failpoint::reach("after-form");
        // Either it is seated in time, or the state says that it still waits.
        let _ = tokio::time::timeout(self.hold, news).await;
        let state = self.waiting.poll(join.session).await?;
        Ok(Ok(Entered { state }))
    }

    /// Takes the seats of people who are banned.
    async fn remove_banned(&self, sessions: Vec<SessionId>) -> Result<(), Unavailable> {
        for (session, seat) in self.records.seats_of(sessions).await? {
            let departure = self.records.give_up_seat(session, seat.room).await?;
            let leaving = Leaving::departed(seat.room, session, IdleReason::Banned, departure);
            self.tell_departure(leaving).await?;
        }
        Ok(())
    }

    /// Everybody who sits and is connected to this server from a banned address.
    async fn remove_connected(&self, bans: &Bans) -> Result<(), Unavailable> {
        let Some(hub) = &self.rooms else { return Ok(()) };
        let now = self.now();
        let mut out = hub.connected();
        out.retain(|it| bans.banned(it.session, it.address, now));
        let mut out: Vec<SessionId> = out.into_iter().map(|it| it.session).collect();
        out.sort_unstable();
        out.dedup();
        for some in out.chunks(PEOPLE_AT_ONCE) {
            self.remove_banned(some.to_vec()).await?;
        }
        Ok(())
    }

    /// Everybody who waits, or is held, and came from a banned address.
    async fn expel_networks(&self, bans: &Bans) -> Result<(), Unavailable> {
        let queues = self.waiting.lengths().await?.into_iter().map(|(queue, _)| Some(queue));
        for queue in queues.chain([None]) {
            let mut after = None;
            loop {
                let page = self.waiting.addresses(queue, after).await?;
                let now = self.now();
                let banned = |session: SessionId, address: &str| {
                    let address = address.parse::<IpAddr>();
                    address.is_ok_and(|address| bans.banned(session, address, now))
                };
                let out: Vec<SessionId> = page
                    .iter()
                    .filter(|(session, address, _)| banned(*session, address))
                    .map(|(session, ..)| *session)
                    .collect();
                if !out.is_empty() {
                    self.waiting.expel(out, IdleReason::Banned).await?;
                }
                after = page.into_iter().next_back().map(|(.., place)| place);
                if queue.is_none() || after.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl LobbyStore for SharedLobby {
    fn enter(&self, join: Join, door: Arc<dyn Door>) -> Pending<'_, Result<Entered, NotEntered>> {
        Box::pin(self.enter(join, door))
    }

    fn cancel(&self, session: SessionId) -> Pending<'_, Result<(), State>> {
        self.waiting.cancel(session)
    }

    fn poll(&self, session: SessionId) -> Pending<'_, State> {
        Box::pin(async move {
            match self.waiting.poll(session).await? {
                idle @ (State::Idle(_) | State::Offered(_)) => {
                    // Asked now: what this server last heard may be of a store that has lost it since.
                    let runs = self.waiting.runs().await?;
                    if runs.current == runs.seats_known_in || !self.restore_seat(session).await? {
                        return Ok(idle);
                    }
                    self.waiting.poll(session).await
                }
                state => Ok(state),
            }
        })
    }

    fn touch(&self, sessions: Vec<SessionId>, sign: Sign) -> Pending<'_, ()> {
        Box::pin(async move {
            for some in sessions.chunks(PEOPLE_AT_ONCE) {
                self.waiting.touch(some.to_vec(), sign).await?;
            }
            Ok(())
        })
    }

    fn vacate(&self, session: SessionId, room: RoomId) -> Pending<'_, Vacate> {
        Box::pin(async move {
            let departure = self.records.give_up_seat(session, room).await?;
            let vacate = departure.vacate;
            failpoint::reach("before-vacate");
            // Also when the records knew it already: a server may have ended between the two.
            let leaving = Leaving::departed(room, session, IdleReason::Left, departure);
            self.tell_departure(leaving).await?;
            Ok(vacate)
        })
    }

    fn block(&self, by: SessionId, whom: SessionId) -> Pending<'_, ()> {
        Box::pin(async move {
            // The truth first: whatever the waiting store loses is read back from it.
            self.records.add_block(by, whom).await?;
            self.waiting.keep_apart(vec![(by, whom)]).await
        })
    }

    fn close_room(&self, room: RoomId) -> Pending<'_, bool> {
        Box::pin(async move {
            let Some(people) = self.records.end_room(room).await? else { return Ok(false) };
            self.tell_departure(Leaving::ended(room, people)).await?;
            Ok(true)
        })
    }

    fn close_topic(&self, topic: TopicId) -> Pending<'_, ()> {
        self.waiting.close_topic(topic)
    }

    fn expel_banned(&self, bans: Arc<Bans>) -> Pending<'_, ()> {
        Box::pin(async move {
            let in_force = bans.in_force(self.now());
            let mut sessions = Vec::new();
            let mut networks = false;
            for ban in in_force {
                match ban.subject {
                    BanSubject::Session(session) => sessions.push(session),
                    BanSubject::Network(_) => networks = true,
                }
            }
            for some in sessions.chunks(PEOPLE_AT_ONCE) {
                self.waiting.expel(some.to_vec(), IdleReason::Banned).await?;
                if self.rooms.is_some() {
                    self.remove_banned(some.to_vec()).await?;
                }
            }
            if networks {
                self.expel_networks(&bans).await?;
                self.remove_connected(&bans).await?;
            }
            Ok(())
        })
    }

    fn count_new_session(&self, address: AddressGroup) -> Pending<'_, Result<(), Limited>> {
        self.waiting.count_new_session(address)
    }

    fn lengths(&self) -> Pending<'_, Vec<(Queue, usize)>> {
        self.waiting.lengths()
    }

    fn queues(&self) -> Pending<'_, Vec<QueueLength>> {
        Box::pin(async move {
            let mut queues = self.waiting.queues().await?;
            queues.sort_by_key(|length| length.queue);
            Ok(queues)
        })
    }

    fn now(&self) -> Millis {
        self.waiting.now()
    }

    fn available(&self) -> bool {
        self.waiting.available()
    }

    fn degraded(&self) -> bool {
        !self.recording.load(Ordering::Acquire)
    }
}
