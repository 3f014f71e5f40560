//! The live rooms: who is connected, who is away until when, and what was said since the last commit.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::Arc;

use aiseki_lobby::{IdleReason, Millis, Reservation, RoomId, SessionId};
use rusqlite::Connection;

use crate::rate_limit::RateLimit;
use crate::rooms::{
    Appended, Attendance, Closing, Line, Member, NotSaid, RoomRules, Said, SeatState, View,
};

/// Every live room.
pub(super) struct LiveRooms {
    rules: RoomRules,
    rooms: HashMap<RoomId, LiveRoom>,
    /// When a member who is away loses the seat.
    deadlines: BTreeSet<(Millis, RoomId, SessionId)>,
    hasher: RandomState,
    /// Said since the last commit.
    pub(super) said: Vec<Arc<Said>>,
    /// Ended since the last commit.
    pub(super) ended: HashMap<RoomId, Closing>,
    /// Rooms whose seats stand otherwise than at the last commit.
    pub(super) changed: HashSet<RoomId>,
}

struct LiveRoom {
    last_seq: u64,
    last_at: Millis,
    members: Vec<LiveMember>,
    /// The number of each message, by a hash of its sender and the client's id.
    ids: HashMap<u64, u64>,
}

struct LiveMember {
    session: SessionId,
    seat: u8,
    left: Option<Closing>,
    connections: Vec<(u64, IpAddr)>,
    away_until: Option<Millis>,
    /// The state of the limit on messages.
    limit: u64,
}

impl LiveRooms {
    pub(super) fn load(
        connection: &Connection,
        rules: RoomRules,
        now: Millis,
    ) -> rusqlite::Result<Self> {
        let mut live = Self {
            rules,
            rooms: HashMap::new(),
            deadlines: BTreeSet::new(),
            hasher: RandomState::new(),
            said: Vec::new(),
            ended: HashMap::new(),
            changed: HashSet::new(),
        };
        let mut seats = connection.prepare(
            "SELECT c.id, p.session_id, p.seat, p.left_at IS NOT NULL
             FROM conversations AS c JOIN participants AS p ON p.conversation_id = c.id
             WHERE c.ended_at IS NULL ORDER BY c.id, p.seat",
        )?;
        let mut rows = seats.query([])?;
        while let Some(row) = rows.next()? {
            let (room, session) = (RoomId(row.get(0)?), SessionId(row.get(1)?));
            live.add(room, session, row.get(2)?, now);
            if row.get(3)? {
                live.leave(room, session, IdleReason::Left);
            }
        }
        let mut messages = connection.prepare(
            "SELECT conversation_id, seq, seat, client_id, at FROM messages
             ORDER BY conversation_id, seq",
        )?;
        let mut rows = messages.query([])?;
        while let Some(row) = rows.next()? {
            let (id, seat): (String, u8) = (row.get(3)?, row.get(2)?);
            let key = live.hasher.hash_one((seat, id));
            if let Some(room) = live.rooms.get_mut(&RoomId(row.get(0)?)) {
                room.last_seq = row.get(1)?;
                room.last_at = row.get(4)?;
                room.ids.insert(key, room.last_seq);
            }
        }
        live.changed.clear();
        Ok(live)
    }

    /// A room was formed. Its people have as long to come as somebody who is away.
    pub(super) fn begin(&mut self, reservation: &Reservation, now: Millis) {
        for (seat, person) in (1_u8..).zip(&reservation.people) {
            self.add(reservation.room, person.session, seat, now);
        }
    }

    fn add(&mut self, room: RoomId, session: SessionId, seat: u8, now: Millis) {
        let away_until = self.deadline(now);
        if let Some(at) = away_until {
            self.deadlines.insert((at, room, session));
        }
        let live = self.rooms.entry(room).or_insert_with(|| LiveRoom {
            last_seq: 0,
            last_at: 0,
            members: Vec::new(),
            ids: HashMap::new(),
        });
        live.members.push(LiveMember {
            session,
            seat,
            left: None,
            connections: Vec::new(),
            away_until,
            limit: 0,
        });
    }

    fn deadline(&self, now: Millis) -> Option<Millis> {
        let timeout = self.rules.away_timeout.filter(|_| self.rules.rooms)?;
        Some(now.saturating_add(timeout))
    }

    fn member(&mut self, room: RoomId, session: SessionId) -> Option<&mut LiveMember> {
        let live = self.rooms.get_mut(&room)?;
        live.members.iter_mut().find(|member| member.session == session && member.left.is_none())
    }

    /// Somebody lost the seat for the reason for which they are idle now.
    pub(super) fn leave(&mut self, room: RoomId, session: SessionId, reason: IdleReason) {
        let Some(member) = self.member(room, session) else { return };
        member.left = Some(match reason {
            IdleReason::Absent => Closing::Away,
            IdleReason::Banned => Closing::Banned,
            _ => Closing::Left,
        });
        member.connections.clear();
        if let Some(at) = member.away_until.take() {
            self.deadlines.remove(&(at, room, session));
        }
        self.changed.insert(room);
    }

    /// A room ended, `by` somebody who lost the seat in the same step, or closed by an operator.
    pub(super) fn end(&mut self, room: RoomId, by: Option<SessionId>) {
        let Some(live) = self.rooms.remove(&room) else { return };
        let last = live.members.iter().find(|member| Some(member.session) == by);
        self.ended.insert(room, last.and_then(|member| member.left).unwrap_or(Closing::Closed));
        for member in live.members {
            if let Some(at) = member.away_until {
                self.deadlines.remove(&(at, room, member.session));
            }
        }
        self.changed.insert(room);
    }

    pub(super) fn attend(&mut self, connection: &Attendance) {
        let Attendance { room, session, connection, address } = *connection;
        let Some(member) = self.member(room, session) else { return };
        if member.connections.iter().any(|(known, _)| *known == connection) {
            return;
        }
        member.connections.push((connection, address));
        let came = member.connections.len() == 1;
        if let Some(at) = member.away_until.take() {
            self.deadlines.remove(&(at, room, session));
        }
        if came {
            self.changed.insert(room);
        }
    }

    pub(super) fn depart(&mut self, connection: &Attendance, now: Millis) {
        let Attendance { room, session, connection, .. } = *connection;
        let deadline = self.deadline(now);
        let Some(member) = self.member(room, session) else { return };
        let before = member.connections.len();
        member.connections.retain(|(known, _)| *known != connection);
        if before == 0 || !member.connections.is_empty() {
            return;
        }
        member.away_until = deadline;
        if let Some(at) = deadline {
            self.deadlines.insert((at, room, session));
        }
        self.changed.insert(room);
    }

    /// Appends to the log of a room.
    pub(super) fn append(&mut self, line: Line, now: Millis) -> Result<Appended, NotSaid> {
        let limit = self.rules.message_limit;
        let member = self.member(line.room, line.session).ok_or(NotSaid::NotSeated)?;
        let seat = member.seat;
        let key = self.hasher.hash_one((seat, &line.id));
        if let Some(seq) = self.rooms.get(&line.room).and_then(|room| room.ids.get(&key)) {
            return Ok(Appended { seq: *seq, new: false });
        }
        if let (Some(limit), Some(member)) = (limit, self.member(line.room, line.session)) {
            RateLimit::take(limit, &mut member.limit, now).map_err(NotSaid::TooFast)?;
        }
        let room = self.rooms.get_mut(&line.room).ok_or(NotSaid::NotSeated)?;
        room.last_seq += 1;
        room.last_at = room.last_at.max(now);
        room.ids.insert(key, room.last_seq);
        let Line { room: name, id, text, .. } = line;
        let (seq, at) = (room.last_seq, room.last_at);
        self.said.push(Arc::new(Said { room: name, seq, seat, id, text, at }));
        Ok(Appended { seq, new: true })
    }

    /// The room as it stands, while it lives.
    pub(super) fn view(&self, room: RoomId) -> Option<View> {
        let live = self.rooms.get(&room)?;
        let members = live.members.iter().map(|member| {
            let state = match (member.left, self.rules.rooms && member.connections.is_empty()) {
                (Some(why), _) => SeatState::Left(why),
                (None, true) => SeatState::Away { until: member.away_until },
                (None, false) => SeatState::Here,
            };
            Member { seat: member.seat, session: member.session, state }
        });
        Some(View::Live(members.collect()))
    }

    /// Who holds a seat, and from which addresses they are connected.
    pub(super) fn seated(
        &self,
    ) -> impl Iterator<Item = (RoomId, SessionId, impl Iterator<Item = IpAddr> + '_)> + '_ {
        // Without rooms to talk in there is nothing that a seat would have to be taken from.
        self.rooms.iter().filter(|_| self.rules.rooms).flat_map(|(room, live)| {
            live.members.iter().filter(|member| member.left.is_none()).map(|member| {
                (*room, member.session, member.connections.iter().map(|(_, address)| *address))
            })
        })
    }

    pub(super) fn next_due(&self) -> Option<Millis> {
        self.deadlines.first().map(|(at, ..)| *at)
    }

    /// Somebody whose time away is over.
    pub(super) fn overdue(&self, now: Millis) -> Option<(RoomId, SessionId)> {
        let (at, room, session) = self.deadlines.first()?;
        (*at <= now).then_some((*room, *session))
    }

    /// Whether there is something to be written to the file.
    pub(super) fn unwritten(&self) -> bool {
        !self.said.is_empty() || !self.ended.is_empty()
    }
}
