//! Writes formed rooms down. Every server does it, and a room is any server's.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aiseki_lobby::{IdleReason, RoomId, Seat, SessionId};
use tokio_util::sync::CancellationToken;

use super::{FormedRoom, FormedRooms, Leaving, Outcome, SharedLobby, WaitingStore, failpoint};
use crate::port::Unavailable;
use crate::records::{RecordStore, Written};

/// Rooms written in one statement, at most.
const ROOMS_AT_ONCE: usize = 256;
/// How long one look for rooms waits for the first.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is made sure that rooms can be written: forming stops when nobody says so for 3 s.
const PULSE: Duration = Duration::from_secs(1);
/// A room that somebody's other seat keeps from being written is tried again after so long.
const LATER: Duration = Duration::from_millis(100);
/// The first and the longest pause after the records did not answer.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// The recorder of one server.
pub struct Recorder {
    rooms: Arc<dyn FormedRooms>,
    waiting: Arc<dyn WaitingStore>,
    records: Arc<dyn RecordStore>,
    lobby: Arc<SharedLobby>,
}

impl Recorder {
    /// A recorder between these stores.
    pub fn new(
        rooms: Arc<dyn FormedRooms>,
        waiting: Arc<dyn WaitingStore>,
        records: Arc<dyn RecordStore>,
        lobby: Arc<SharedLobby>,
    ) -> Arc<Self> {
        Arc::new(Self { rooms, waiting, records, lobby })
    }

    /// Says for ever that rooms can be written, while they can.
    pub async fn pulse(self: Arc<Self>) {
        let mut interval = tokio::time::interval(PULSE);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            self.feel().await;
        }
    }

    /// Looks once whether rooms can be written, and says so when they can.
    pub async fn feel(&self) {
        let answers = self.records.ping().await.is_ok();
        let before = self.lobby.recording().swap(answers, Ordering::AcqRel);
        if before != answers && answers {
            tracing::info!("rooms can be written: people are seated");
        } else if before != answers {
            tracing::warn!("rooms cannot be written: people keep their places until they can");
        }
        if answers {
            let _ = self.rooms.recording().await;
        }
    }

    /// Writes rooms until it is told to stop; what it has taken it brings to an end.
    pub async fn record(self: Arc<Self>, stop: CancellationToken) {
        let mut pause = PAUSES.0;
        loop {
            let taken = tokio::select! {
                () = stop.cancelled() => return,
                taken = self.rooms.take(ROOMS_AT_ONCE, PATIENCE) => taken,
            };
            let done = match taken {
                Ok(rooms) if rooms.is_empty() => Ok(()),
                Ok(rooms) => self.bring_to_an_end(rooms).await,
                Err(unavailable) => Err(unavailable),
            };
            if done.is_ok() {
                pause = PAUSES.0;
            } else {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
            }
        }
    }

    /// Writes rooms, or makes sure that they never are, and settles their people.
    async fn bring_to_an_end(&self, rooms: Vec<FormedRoom>) -> Result<(), Unavailable> {
        let Ok(settled) = self.outcomes(&rooms).await else {
            // Nobody is to blame, and the next try is anybody's.
            let _ = self.rooms.put_off(rooms, PAUSES.0).await;
            return Err(Unavailable);
        };
        failpoint::reach("before-confirm");
        self.give_up(self.rooms.settle(settled).await?).await
    }

    async fn outcomes(
        &self,
        rooms: &[FormedRoom],
    ) -> Result<Vec<(FormedRoom, Outcome)>, Unavailable> {
        let now = self.waiting.now();
        let reservations = |rooms: &[FormedRoom]| {
            rooms.iter().map(|room| room.reservation.clone()).collect::<Vec<_>>()
        };
        let (late, fresh): (Vec<FormedRoom>, Vec<FormedRoom>) = rooms
            .iter()
            .cloned()
            .partition(|room| now >= self.waiting.lapses_at(&room.reservation));
        let mut settled = Vec::with_capacity(rooms.len());
        // Rooms that shall never be written, and what their people are told if they are not.
        let mut to_bury: Vec<(FormedRoom, Outcome)> =
            late.into_iter().map(|room| (room, Outcome::Lapsed)).collect();
        failpoint::reach("before-insert");
        let mut put_off = Vec::new();
        let written = self.records.write_rooms(reservations(&fresh)).await?;
        failpoint::reach("after-insert");
        for (room, written) in fresh.into_iter().zip(written) {
            match written {
                Written::Live(people) => settled.push((room, Outcome::Written(people))),
                Written::Ended => settled.push((room, Outcome::Ended)),
                Written::Buried => settled.push((room, Outcome::Lapsed)),
                Written::Occupied(seats) => match self.still_held(seats).await? {
                    // The seats are given up just now, or it is not known yet whether they will be.
                    None => put_off.push(room),
                    Some(seats) => {
                        // The waiting store had lost their seats.
                        self.waiting.restore_seats(seats).await?;
                        to_bury.push((room, Outcome::Lapsed));
                    }
                },
                Written::Refused => to_bury.push((room, Outcome::Refused)),
            }
        }
        if !put_off.is_empty() {
            self.rooms.put_off(put_off, LATER).await?;
        }
        if to_bury.is_empty() {
            return Ok(settled);
        }
        let only: Vec<FormedRoom> = to_bury.iter().map(|(room, _)| room.clone()).collect();
        let buried = self.records.bury_rooms(reservations(&only)).await?;
        for ((room, otherwise), buried) in to_bury.into_iter().zip(buried) {
            let outcome = match buried {
                Written::Live(people) => Outcome::Written(people),
                Written::Ended => Outcome::Ended,
                Written::Buried | Written::Occupied(_) | Written::Refused => otherwise,
            };
            settled.push((room, outcome));
        }
        Ok(settled)
    }

    /// The seats elsewhere that keep a room from being written, when they will last. A room that was
    /// written late has its seats given up once it is settled: until then nobody is told of them.
    async fn still_held(
        &self,
        seats: Vec<(SessionId, Seat)>,
    ) -> Result<Option<Vec<(SessionId, Seat)>>, Unavailable> {
        let rooms = seats.iter().map(|(_, seat)| seat.room).collect();
        if self.rooms.unsettled(rooms).await? {
            return Ok(None);
        }
        // What was settled a moment ago is given up a moment later.
        tokio::time::sleep(LATER).await;
        let people = seats.into_iter().map(|(session, _)| session).collect();
        let held = self.records.seats_of(people).await?;
        Ok(Some(held).filter(|held| !held.is_empty()))
    }

    /// Gives up seats of people who do not sit where the records say.
    async fn give_up(&self, seats: Vec<(SessionId, RoomId)>) -> Result<(), Unavailable> {
        for (session, room) in seats {
            let departure = self.records.give_up_seat(session, room).await?;
            // Also the one who gives it up, should the seat have been shown meanwhile.
            let leaving = Leaving::departed(room, session, IdleReason::RoomClosed, departure);
            self.waiting.vacate(vec![leaving]).await?;
        }
        Ok(())
    }
}
