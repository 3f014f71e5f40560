//! One connection of a member to a room: what it has been told, and what is to be told next.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use aiseki_lobby::{RoomId, SessionId};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::{
    Appended, Attendance, Closing, Line, Member, NotSaid, PAGE, RoomHub, RoomStore, Rooms, Said,
    SeatState, Signal, View,
};
use crate::port::Unavailable;

/// A connection to a room. It ends when it is dropped.
pub struct Visit {
    presence: Presence,
    seat: u8,
    signals: Receiver<Signal>,
    /// The seats as they were told.
    told: Vec<Member>,
    /// The number of the last message that was told.
    last: u64,
    ready: VecDeque<Event>,
    /// Whether there may be messages to read, or seats to look at. Kept here, so that a wait for
    /// them can be broken off.
    unread: bool,
    unseen: bool,
    over: bool,
}

/// What a connection is told at first.
#[derive(Clone, Debug)]
pub struct Welcome {
    /// The seat of the member.
    pub me: u8,
    /// Everybody who ever had a seat, by seat.
    pub seats: Vec<Member>,
    /// The oldest messages that the connection has not been told, at most [`PAGE`]; those after them
    /// come as events.
    pub history: Vec<Arc<Said>>,
}

/// What a connection is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something was said.
    Said(Arc<Said>),
    /// Somebody is typing.
    Typing(u8),
    /// A seat stands otherwise.
    Seat(u8, SeatState),
    /// The room has ended; nothing comes after it.
    Closed(Closing),
    /// This member lost the seat while the room goes on; nothing comes after it.
    Dismissed(Closing),
}

/// Why there is no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotVisited {
    /// There never was a room of this id.
    NoRoom,
    /// The person holds no seat in it.
    NotSeated,
    /// It has ended; the person had a seat or not.
    Ended(Closing),
    /// The member has too many connections open.
    TooMany,
}

/// Registered here and at the store until it is dropped.
struct Presence {
    store: Arc<dyn RoomStore>,
    hub: Arc<RoomHub>,
    connection: Attendance,
}

impl Drop for Presence {
    fn drop(&mut self) {
        // In this order a renewal that still names the connection comes to the store before its end.
        self.hub.close(&self.connection);
        let (store, connection) = (Arc::clone(&self.store), self.connection);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { store.depart(connection).await });
        }
    }
}

impl Visit {
    pub(super) async fn begin(
        rooms: &Rooms,
        room: RoomId,
        session: SessionId,
        address: IpAddr,
        after: u64,
    ) -> Result<Result<(Self, Welcome), NotVisited>, Unavailable> {
        let connection = Attendance { room, session, connection: rooms.hub.number(), address };
        let Some(signals) = rooms.hub.open(connection) else {
            return Ok(Err(NotVisited::TooMany));
        };
        let (store, hub) = (Arc::clone(&rooms.store), Arc::clone(&rooms.hub));
        let presence = Presence { store, hub, connection };
        // What changes from here on is heard, so nothing can fall between this look and the next.
        presence.store.attend(vec![connection]).await?;
        let seats = match presence.store.view(room).await? {
            None => return Ok(Err(NotVisited::NoRoom)),
            Some(View::Ended(why)) => return Ok(Err(NotVisited::Ended(why))),
            Some(View::Live(seats)) => seats,
        };
        let mine = seats.iter().find(|member| member.session == session);
        let Some(Member { seat, state: SeatState::Here | SeatState::Away { .. }, .. }) = mine
        else {
            return Ok(Err(NotVisited::NotSeated));
        };
        let (me, told) = (*seat, seats.clone());
        let history = presence.store.read(room, after, PAGE).await?;
        let last = history.last().map_or(after, |said| said.seq);
        let visit = Self {
            presence,
            seat: me,
            signals,
            told,
            last,
            ready: VecDeque::new(),
            unread: history.len() == PAGE,
            unseen: false,
            over: false,
        };
        Ok(Ok((visit, Welcome { me, seats, history })))
    }

    /// What is to be told next. May be dropped and called again, also after the store was away.
    pub async fn next(&mut self) -> Result<Event, Unavailable> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if self.over {
                std::future::pending::<()>().await;
            }
            let room = self.presence.connection.room;
            if self.unread {
                let page = self.presence.store.read(room, self.last, PAGE).await?;
                self.unread = page.len() == PAGE;
                self.last = page.last().map_or(self.last, |said| said.seq);
                self.ready.extend(page.into_iter().map(Event::Said));
            } else if self.unseen {
                let view = self.presence.store.view(room).await?;
                self.unseen = false;
                self.see(view);
            } else {
                self.hear().await;
            }
        }
    }

    /// Compares the room with what was told of it.
    fn see(&mut self, view: Option<View>) {
        let seats = match view {
            Some(View::Live(seats)) => seats,
            Some(View::Ended(why)) => return self.end(Event::Closed(why)),
            None => return self.end(Event::Closed(Closing::StoreLost)),
        };
        for member in &seats {
            if self.told.iter().any(|told| told == member) {
                continue;
            }
            match member.state {
                SeatState::Left(why) if member.seat == self.seat => {
                    return self.end(Event::Dismissed(why));
                }
                // The deadline of somebody who is away is told once.
                state => self.ready.push_back(Event::Seat(member.seat, state)),
            }
        }
        self.told = seats;
    }

    fn end(&mut self, event: Event) {
        self.over = true;
        self.ready.push_back(event);
    }

    async fn hear(&mut self) {
        match self.signals.recv().await {
            Ok(Signal::Said(said)) if said.seq == self.last + 1 => {
                self.last = said.seq;
                self.ready.push_back(Event::Said(said));
            }
            // One that was told already, or one after something that was missed.
            Ok(Signal::Said(said)) => self.unread |= said.seq > self.last,
            Ok(Signal::Changed) => self.unseen = true,
            Ok(Signal::Typing(seat)) if seat != self.seat => {
                self.ready.push_back(Event::Typing(seat));
            }
            Ok(Signal::Typing(_)) => {}
            Err(RecvError::Lagged(_)) => (self.unread, self.unseen) = (true, true),
            // The hub keeps the sender as long as this connection is registered.
            Err(RecvError::Closed) => self.over = true,
        }
    }

    /// Where.
    pub fn room(&self) -> RoomId {
        self.presence.connection.room
    }

    /// Says something, to its end whoever is still listening.
    pub async fn say(
        &mut self,
        id: String,
        text: String,
    ) -> Result<Result<Appended, NotSaid>, Unavailable> {
        let Attendance { room, session, .. } = self.presence.connection;
        let store = Arc::clone(&self.presence.store);
        let line = Line { room, session, id, text };
        let said = tokio::spawn(async move { store.append(line).await }).await;
        let said = said.unwrap_or(Err(Unavailable));
        // The seat is given up, or the store has lost the room: a look will say which.
        self.unseen |= matches!(said, Ok(Err(NotSaid::NotSeated)));
        said
    }

    /// Tells the others that this member is typing.
    pub async fn typing(&self) -> Result<(), Unavailable> {
        self.presence.store.typing(self.presence.connection.room, self.seat).await
    }
}
