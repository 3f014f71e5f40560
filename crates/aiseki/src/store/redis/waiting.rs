//! The port of waiting people.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use aiseki_lobby::{IdleReason, Millis, Queue, Reservation, Seat, SessionId, Sign, State, TopicId};

use super::calls::{When, unreadable};
use super::keys::queue_name;
use super::words::{self, Words};
use super::{RedisStore, UNKNOWN, scripts};
use crate::clock::Stopwatch;
use crate::matching::{Join, NotEntered, QueueLength, TurnedAway};
use crate::port::{Pending, Unavailable};
use crate::rate_limit::{AddressGroup, Limited};
use crate::shared::{Entry, Leaving, Place, Runs, SeatPage, Tick, WaitingStore};

/// People looked at, and topics, in one tick at most.
const TICK: (usize, usize) = (250, 64);
/// People taken out in one step, at most.
const OUT_AT_ONCE: usize = 250;
/// People in one page of addresses, and keys in one of seats.
const PAGE: usize = 500;
/// How long one server may take to read the seats back before another may begin, in ms.
const READ_BACK: u64 = 30_000;
/// A count of the queues that took longer than this is used again, for so many times as long as it took.
const COUNT_REUSED: (std::time::Duration, u32) = (std::time::Duration::from_millis(20), 20);

/// How many people wait in each queue, counted lately.
pub(super) struct Count {
    lengths: Vec<(Queue, usize)>,
    made: Stopwatch,
    took: std::time::Duration,
}

impl RedisStore {
    /// A tick in which so many topics are looked at, at most.
    pub(super) async fn tick_with(&self, topics: usize) -> Result<Tick, Unavailable> {
        let mut call = self.inner.step(&scripts::TICK);
        call.arg(TICK.0).arg(topics);
        let mut words = self.inner.run_step(&scripts::TICK, &call, When::Always).await?;
        let read = |words: &mut Words| Ok((words.number::<i64>()?, words.number()?));
        let (due, announced) = read(&mut words).map_err(unreadable)?;
        Ok(Tick { due_in: Millis::try_from(due).ok(), announced })
    }

    /// A server begins to work: presence starts anew, and when it follows another policy than the last
    /// one that began, everybody who waits is looked at anew.
    pub async fn begin(&self) -> Result<(), Unavailable> {
        let call = self.inner.step(&scripts::BEGIN);
        let mut words = self.inner.run_step(&scripts::BEGIN, &call, When::There).await?;
        if words.number::<u8>().map_err(unreadable)? == 0 {
            return Ok(());
        }
        for length in self.count_queues(false).await? {
            let mut after = "-inf".to_owned();
            while !after.is_empty() {
                let mut call = self.inner.step(&scripts::ROUSE);
                call.arg(queue_name(length.queue)).arg(&after).arg(PAGE);
                let words = self.inner.run_step(&scripts::ROUSE, &call, When::There).await;
                after = words?.text().map_err(unreadable)?;
            }
        }
        Ok(())
    }

    async fn count_queues(&self, oldest: bool) -> Result<Vec<QueueLength>, Unavailable> {
        let mut call = scripts::QUEUES.on(&[self.inner.keys.queues().to_owned()]);
        call.arg(u8::from(oldest));
        let mut words = self.inner.run(&scripts::QUEUES, &call, When::There).await?;
        let read = |words: &mut Words| {
            let mut queues = Vec::new();
            while !words.is_empty() {
                let queue = words::queue(&words.text()?)?;
                let waiting = words.number()?;
                let since = words.text()?;
                // A score is a time in milliseconds with a fraction.
                let whole = since.split('.').next().unwrap_or_default();
                queues.push(QueueLength {
                    queue,
                    waiting,
                    oldest_since: whole.parse().unwrap_or_default(),
                });
            }
            Ok(queues)
        };
        read(&mut words).map_err(unreadable)
    }
}

impl WaitingStore for RedisStore {
    fn enter(
        &self,
        join: Join,
        door: Option<TurnedAway>,
    ) -> Pending<'_, Result<Entry, NotEntered>> {
        if self.inner.policy.room_types.get(join.queue.room_type).is_none() {
            return Box::pin(async { Ok(Err(NotEntered::InvalidRoomType)) });
        }
        self.joins.call((join, door))
    }

    fn cancel(&self, session: SessionId) -> Pending<'_, Result<(), State>> {
        self.cancels.call(session)
    }

    fn poll(&self, session: SessionId) -> Pending<'_, State> {
        self.polls.call(session)
    }

    fn touch(&self, sessions: Vec<SessionId>, sign: Sign) -> Pending<'_, ()> {
        Box::pin(async move {
            let mut call = self.inner.step(&scripts::TOUCH);
            call.arg(match sign {
                Sign::Present => "present",
                Sign::Closed => "closed",
            });
            for session in sessions {
                call.arg(session.to_string());
            }
            self.inner.run_step(&scripts::TOUCH, &call, When::There).await.map(|_| ())
        })
    }

    fn tick(&self) -> Pending<'_, Tick> {
        Box::pin(self.tick_with(TICK.1))
    }

    fn vacate(&self, rooms: Vec<Leaving>) -> Pending<'_, ()> {
        Box::pin(async move {
            if rooms.iter().all(|leaving| leaving.people.is_empty()) {
                return Ok(());
            }
            let mut call = self.inner.step(&scripts::VACATE);
            for Leaving { room, people, others } in rooms {
                call.arg(room.to_string()).arg(people.len()).arg(others.len());
                for (session, reason) in people {
                    call.arg(session.to_string()).arg(reason.as_str());
                }
                for session in others {
                    call.arg(session.to_string());
                }
            }
            self.inner.run_step(&scripts::VACATE, &call, When::There).await.map(|_| ())
        })
    }

    fn seats(&self, from: u64) -> Pending<'_, SeatPage> {
        Box::pin(async move {
            let mut call = scripts::DOCTOR_KEYS.on(&[self.inner.keys.state().to_owned()]);
            call.arg(from).arg(PAGE);
            let mut words = self.inner.run(&scripts::DOCTOR_KEYS, &call, When::Always).await?;
            let read = |words: &mut Words| {
                let next = Some(words.number()?).filter(|next| *next != 0);
                let mut seats = Vec::new();
                while !words.is_empty() {
                    let (kind, session, rest) = (words.text()?, words.session()?, words.text()?);
                    if kind == "seat" {
                        seats.push((session, words::room(&rest)?));
                    }
                }
                Ok(SeatPage { seats, next })
            };
            read(&mut words).map_err(unreadable)
        })
    }

    fn restore_seats(&self, seats: Vec<(SessionId, Seat)>) -> Pending<'_, ()> {
        Box::pin(async move {
            let mut call = self.inner.step(&scripts::RESTORE);
            for (session, seat) in seats {
                call.arg(session.to_string()).arg(seat.room.to_string()).arg(seat.topic.0);
                call.arg(seat.size).arg(seat.requested).arg(seat.matched_at);
            }
            self.inner.run_step(&scripts::RESTORE, &call, When::There).await.map(|_| ())
        })
    }

    fn keep_apart(&self, pairs: Vec<(SessionId, SessionId)>) -> Pending<'_, ()> {
        Box::pin(async move {
            let mut call = scripts::BLOCK.on(&[self.inner.keys.state().to_owned()]);
            for (a, b) in pairs {
                call.arg(a.to_string()).arg(b.to_string());
            }
            self.inner.run(&scripts::BLOCK, &call, When::Always).await.map(|_| ())
        })
    }

    fn expel(&self, sessions: Vec<SessionId>, reason: IdleReason) -> Pending<'_, ()> {
        Box::pin(async move {
            for some in sessions.chunks(OUT_AT_ONCE) {
                let mut call = self.inner.step(&scripts::EXPEL);
                call.arg(reason.as_str());
                for session in some {
                    call.arg(session.to_string());
                }
                self.inner.run_step(&scripts::EXPEL, &call, When::There).await?;
            }
            Ok(())
        })
    }

    fn close_topic(&self, topic: TopicId) -> Pending<'_, ()> {
        Box::pin(async move {
            // Also queues of room types that only other servers know.
            let lengths = self.count_queues(false).await?;
            let here = lengths.iter().map(|length| length.queue).filter(|it| it.topic == topic);
            let known = self.inner.policy.room_types.iter();
            let known = known.map(|room_type| Queue { topic, room_type: room_type.size });
            let queues: std::collections::BTreeSet<Queue> = here.chain(known).collect();
            let mut more = true;
            while more {
                let mut call = self.inner.step(&scripts::CLOSE_TOPIC);
                call.arg(OUT_AT_ONCE);
                for queue in &queues {
                    call.arg(queue_name(*queue));
                }
                let words = self.inner.run_step(&scripts::CLOSE_TOPIC, &call, When::There).await;
                more = words?.number::<u8>().map_err(unreadable)? == 1;
            }
            Ok(())
        })
    }

    fn addresses(
        &self,
        queue: Option<Queue>,
        after: Option<Place>,
    ) -> Pending<'_, Vec<(SessionId, String, Place)>> {
        Box::pin(async move {
            let keys = &self.inner.keys;
            let mut call =
                scripts::ADDRESSES.on(&[keys.state(), keys.reservations()].map(str::to_owned));
            call.arg(queue.map(queue_name).unwrap_or_default());
            call.arg(after.as_deref().unwrap_or("-inf")).arg(PAGE);
            let mut words = self.inner.run(&scripts::ADDRESSES, &call, When::There).await?;
            let read = |words: &mut Words| {
                let mut people = Vec::new();
                while !words.is_empty() {
                    people.push((words.session()?, words.text()?, words.text()?));
                }
                Ok(people)
            };
            read(&mut words).map_err(unreadable)
        })
    }

    fn queues(&self) -> Pending<'_, Vec<QueueLength>> {
        Box::pin(self.count_queues(true))
    }

    fn lengths(&self) -> Pending<'_, Vec<(Queue, usize)>> {
        Box::pin(async move {
            let counted = || self.inner.counted.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(count) = &*counted()
                && count.made.elapsed() < count.took * COUNT_REUSED.1
            {
                return Ok(count.lengths.clone());
            }
            let watch = Stopwatch::start();
            let queues = self.count_queues(false).await?;
            let took = watch.elapsed();
            let lengths: Vec<_> = queues.iter().map(|it| (it.queue, it.waiting)).collect();
            if took > COUNT_REUSED.0 {
                *counted() =
                    Some(Count { lengths: lengths.clone(), made: Stopwatch::start(), took });
            }
            Ok(lengths)
        })
    }

    fn count_new_session(&self, address: AddressGroup) -> Pending<'_, Result<(), Limited>> {
        Box::pin(async move {
            let Some(limits) = self.inner.rate_limits else { return Ok(Ok(())) };
            let key = self.inner.keys.address_rate(&address.to_string());
            let mut call = scripts::RATE.on(&[key]);
            call.arg(self.inner.time()).arg(limits.address.burst).arg(limits.address.per);
            let mut words = self.inner.run(&scripts::RATE, &call, When::There).await?;
            match words.number().map_err(unreadable)? {
                0 => Ok(Ok(())),
                retry_after => Ok(Err(Limited { retry_after })),
            }
        })
    }

    fn runs(&self) -> Pending<'_, Runs> {
        Box::pin(async move {
            let call = scripts::RUN.on(&[self.inner.keys.seats()]);
            let mut words = self.inner.run(&scripts::RUN, &call, When::Always).await?;
            let read = |words: &mut Words| {
                Ok(Runs { current: words.text()?, seats_known_in: words.text()? })
            };
            read(&mut words).map_err(unreadable)
        })
    }

    fn seats_are_known(&self, run: String) -> Pending<'_, ()> {
        Box::pin(async move {
            self.inner.note(&self.inner.keys.seats(), &run, None, false).await?;
            let mut command = redis::cmd("UNLINK");
            command.arg(self.inner.keys.read_back());
            self.inner.query(&command).await.map(|_| ())
        })
    }

    fn may_read_back(&self) -> Pending<'_, bool> {
        Box::pin(async move {
            self.inner.note(&self.inner.keys.read_back(), "1", Some(READ_BACK), true).await
        })
    }

    fn lapses_at(&self, reservation: &Reservation) -> Millis {
        reservation.formed_at.saturating_add(self.inner.policy.reservation_ttl)
    }

    fn now(&self) -> Millis {
        let ahead = self.inner.ahead.load(Ordering::Acquire);
        let ahead = if ahead == UNKNOWN { 0 } else { ahead };
        self.inner.clock.now().saturating_add_signed(ahead)
    }

    fn available(&self) -> bool {
        self.inner.available.load(Ordering::Acquire)
    }
}
