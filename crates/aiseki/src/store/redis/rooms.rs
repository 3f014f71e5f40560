//! The port of formed rooms.

use std::time::Duration;

use aiseki_lobby::{RoomId, SessionId};
use aiseki_mq::{Delivery, Nack, Receipt, Verdict};

use super::calls::{When, unreadable};
use super::words::{self, Words};
use super::{Inner, RedisStore, scripts};
use crate::port::{Pending, Unavailable};
use crate::shared::{FormedRoom, FormedRooms, Outcome};

/// Rooms settled in one step, at most.
const SETTLED_AT_ONCE: usize = 64;
/// For how long one word that rooms can be written counts, in ms.
const RECORDING: u64 = 3_000;
/// A room that this version cannot read is given back for so long: for a server that can.
const UNREADABLE: Duration = Duration::from_secs(1);

impl FormedRooms for RedisStore {
    fn take(&self, at_most: usize, patience: Duration) -> Pending<'_, Vec<FormedRoom>> {
        Box::pin(async move {
            let taken = self.inner.rooms.receive(at_most, patience).await;
            let deliveries = taken.map_err(|error| queue_failed(&error))?;
            let (mut rooms, mut foreign) = (Vec::with_capacity(deliveries.len()), Vec::new());
            for delivery in deliveries {
                match read(&delivery) {
                    Some(room) => rooms.push(room),
                    None => foreign.push(delivery.receipt),
                }
            }
            if !foreign.is_empty() {
                tracing::error!(rooms = foreign.len(), "formed rooms are not understood here");
                self.inner.give_back(foreign, UNREADABLE).await?;
            }
            Ok(rooms)
        })
    }

    fn settle(&self, rooms: Vec<(FormedRoom, Outcome)>) -> Pending<'_, Vec<(SessionId, RoomId)>> {
        Box::pin(async move {
            let mut give_up = Vec::new();
            for some in rooms.chunks(SETTLED_AT_ONCE) {
                give_up.extend(self.inner.settle(some).await?);
            }
            Ok(give_up)
        })
    }

    fn put_off(&self, rooms: Vec<FormedRoom>, by: Duration) -> Pending<'_, ()> {
        Box::pin(async move { self.inner.give_back(rooms.iter().map(receipt).collect(), by).await })
    }

    fn unsettled(&self, rooms: Vec<RoomId>) -> Pending<'_, bool> {
        Box::pin(async move {
            let mut command = redis::cmd("HMGET");
            command.arg(self.inner.keys.reservations());
            for room in rooms {
                command.arg(room.to_string());
            }
            let redis::Value::Array(found) = self.inner.query(&command).await? else {
                return Ok(false);
            };
            Ok(found.iter().any(|value| *value != redis::Value::Nil))
        })
    }

    fn recording(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            self.inner
                .note(self.inner.keys.recorder(), "1", Some(RECORDING), false)
                .await
                .map(|_| ())
        })
    }
}

impl Inner {
    async fn give_back(&self, receipts: Vec<Receipt>, by: Duration) -> Result<(), Unavailable> {
        let release = |receipt| Nack { receipt, verdict: Verdict::Release { delay: by } };
        let nacks: Vec<Nack> = receipts.into_iter().map(release).collect();
        self.rooms.nack(&nacks).await.map(|_| ()).map_err(|error| queue_failed(&error))
    }

    async fn settle(
        &self,
        rooms: &[(FormedRoom, Outcome)],
    ) -> Result<Vec<(SessionId, RoomId)>, Unavailable> {
        let mut call = self.step(&scripts::CONFIRM);
        call.arg(rooms.len());
        for (room, _) in rooms {
            call.arg(room.reservation.room.to_string()).arg(room.token);
        }
        for (FormedRoom { reservation, .. }, outcome) in rooms {
            let (word, seated) = match outcome {
                Outcome::Written(people) => ("written", people.as_slice()),
                Outcome::Lapsed => ("lapsed", [].as_slice()),
                Outcome::Refused => ("refused", [].as_slice()),
                Outcome::Ended => ("ended", [].as_slice()),
            };
            call.arg(word).arg(reservation.room.to_string()).arg(reservation.topic.0);
            call.arg(reservation.size()).arg(reservation.formed_at).arg(reservation.people.len());
            for person in &reservation.people {
                call.arg(person.session.to_string()).arg(person.ticket.0).arg(person.requested);
                call.arg(u8::from(seated.contains(&person.session)));
            }
        }
        let mut words = self.run_step(&scripts::CONFIRM, &call, When::There).await?;
        let read = |words: &mut Words| {
            let (mut replies, mut give_up) = (words.list()?, Vec::new());
            for (room, _) in rooms {
                let mut sessions = replies.list()?;
                while !sessions.is_empty() {
                    give_up.push((sessions.session()?, room.reservation.room));
                }
            }
            Ok(give_up)
        };
        read(&mut words).map_err(unreadable)
    }
}

/// The queue has connections of its own. One that breaks says nothing about those on which people are
/// answered, and a store that is away is noticed there.
fn queue_failed(error: &aiseki_mq::Error) -> Unavailable {
    tracing::debug!(%error, "formed rooms cannot be asked for");
    Unavailable
}

fn read(delivery: &Delivery) -> Option<FormedRoom> {
    let text = std::str::from_utf8(&delivery.payload).ok()?;
    let reservation = words::reservation(text).ok()?;
    Some(FormedRoom { reservation, token: delivery.receipt.token })
}

fn receipt(room: &FormedRoom) -> Receipt {
    Receipt { shard: 0, id: room.reservation.room.to_string(), token: room.token }
}
