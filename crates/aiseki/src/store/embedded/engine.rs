//! The lobby with what it needs beside it, loaded from the file.

use std::collections::HashMap;
use std::net::IpAddr;

use aiseki_lobby::{
    Acquaintances, Change, IdleReason, KeptPlace, Lobby, Millis, Policy, Queue, REASON_KEPT,
    RoomId, Seat, SessionId, Standing, State, TicketNumber, TopicId,
};
use rusqlite::Connection;

use super::live::LiveRooms;
use crate::clock::Clock;
use crate::rate_limit::RateLimiter;
use crate::rooms::{Attendance, RoomRules};

/// Members whose time away is over and who lose their seats in one step of the writer, at most.
const DISMISSED_AT_ONCE: usize = 1_000;

/// What the writer thread owns: the state that steps change, and what they have changed so far.
pub(super) struct Engine {
    pub(super) lobby: Lobby<Acquaintances>,
    pub(super) live: LiveRooms,
    pub(super) limiter: RateLimiter,
    pub(super) clock: Clock,
    /// What happened since the last commit.
    pub(super) changes: Vec<Change>,
    /// Where the people who entered since the last commit came from.
    pub(super) entered_from: HashMap<SessionId, IpAddr>,
    /// Why people lost their seats since the last commit, when it was not that they left.
    pub(super) dismissed: HashMap<SessionId, IdleReason>,
    /// Who came to which room for the first time since the last commit.
    pub(super) came: Vec<(RoomId, SessionId)>,
    /// Who blocked whom since the last commit.
    pub(super) blocked: Vec<(SessionId, SessionId)>,
}

impl Engine {
    pub(super) fn load(
        connection: &Connection,
        policy: Policy,
        rematch_after: Millis,
        rules: RoomRules,
        limiter: RateLimiter,
        clock: Clock,
    ) -> rusqlite::Result<Self> {
        let mut engine = Self {
            lobby: load_lobby(connection, policy, rematch_after, clock.now())?,
            live: LiveRooms::load(connection, rules, clock.now())?,
            limiter,
            clock,
            changes: Vec::new(),
            entered_from: HashMap::new(),
            dismissed: HashMap::new(),
            came: Vec::new(),
            blocked: Vec::new(),
        };
        engine.expire_unknown_room_types(connection)?;
        Ok(engine)
    }

    /// One transition of the lobby. Here a room is written in the same commit in which it is formed,
    /// so every reservation is confirmed at once.
    pub(super) fn step<T>(
        &mut self,
        transition: impl FnOnce(&mut Lobby<Acquaintances>, Millis, &mut Vec<Change>) -> T,
    ) -> T {
        let now = self.clock.now();
        let before = self.changes.len();
        let value = transition(&mut self.lobby, now, &mut self.changes);
        for i in before..self.changes.len() {
            if let Change::Reserved(reservation) = &self.changes[i] {
                let reservation = reservation.clone();
                let people: Vec<_> = reservation.people.iter().map(|p| p.session).collect();
                let strangers = self.lobby.confirm(&reservation, &people, now, &mut self.changes);
                debug_assert!(strangers.is_empty(), "nothing came between the two steps");
            }
        }
        self.follow(before, now);
        value
    }

    /// Does to the live rooms what the lobby did, from the change of this number on.
    fn follow(&mut self, from: usize, now: Millis) {
        let mut by = None;
        for change in &self.changes[from..] {
            match change {
                Change::Reserved(reservation) => self.live.begin(reservation, now),
                Change::Vacated { room, session } => {
                    let reason = match self.lobby.state(*session, now) {
                        State::Idle(Some(reason)) => reason,
                        _ => IdleReason::Left,
                    };
                    self.dismissed.insert(*session, reason);
                    self.live.leave(*room, *session, reason);
                    by = Some(*session);
                }
                Change::Ended { room, .. } => self.live.end(*room, by),
                _ => {}
            }
        }
    }

    /// A connection to a room is open.
    pub(super) fn attend(&mut self, connection: &Attendance) {
        let Attendance { room, session, .. } = *connection;
        self.live.attend(connection);
        if self.lobby.come(session, room) {
            self.came.push((room, session));
        }
    }

    /// These two are never seated together again.
    pub(super) fn block(&mut self, by: SessionId, whom: SessionId) {
        self.lobby.block(by, whom);
        self.blocked.push((by, whom));
    }

    /// Whether there is something to be written to the file.
    pub(super) fn unwritten(&self) -> bool {
        !(self.changes.is_empty() && self.blocked.is_empty() && self.came.is_empty())
            || self.live.unwritten()
    }

    /// When there is something to do with nobody asking for it.
    pub(super) fn next_due(&self) -> Option<Millis> {
        [self.lobby.next_due(), self.live.next_due()].into_iter().flatten().min()
    }

    /// Does what has become due.
    pub(super) fn tick(&mut self) {
        let now = self.clock.now();
        if self.lobby.next_due().is_some_and(|due| due <= now) {
            self.step(Lobby::tick);
        }
        for _ in 0..DISMISSED_AT_ONCE {
            let Some((room, session)) = self.live.overdue(now) else { break };
            self.step(|lobby, now, changes| {
                lobby.dismiss(session, room, IdleReason::Absent, now, changes)
            });
        }
    }

    /// The operator may have changed the policy while the server was down. Nobody is left waiting in
    /// a queue from which no room is ever formed.
    fn expire_unknown_room_types(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut statement = connection.prepare("SELECT session, room_type FROM tickets")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (session, room_type) = (SessionId(row.get(0)?), row.get(1)?);
            if self.lobby.policy().room_types.get(room_type).is_none() {
                self.step(|lobby, now, changes| {
                    lobby.expel(session, IdleReason::WaitExpired, now, changes);
                });
            }
        }
        Ok(())
    }
}

/// The latest time that the file knows of.
pub(super) fn latest_time(connection: &Connection) -> rusqlite::Result<Millis> {
    // Each table grows in the order of time, so its last row has its latest time.
    connection.query_row(
        "SELECT max(
             coalesce((SELECT since FROM tickets ORDER BY number DESC LIMIT 1), 0),
             coalesce((SELECT at FROM departures ORDER BY number DESC LIMIT 1), 0),
             coalesce((SELECT created_at FROM conversations ORDER BY id DESC LIMIT 1), 0))",
        [],
        |row| row.get(0),
    )
}

fn load_lobby(
    connection: &Connection,
    policy: Policy,
    rematch_after: Millis,
    now: Millis,
) -> rusqlite::Result<Lobby<Acquaintances>> {
    let mut entropy = [0; 8];
    getrandom::fill(&mut entropy).expect("the operating system gives random bytes");
    let mut lobby = Lobby::with_companions(
        policy,
        load_acquaintances(connection, rematch_after, now)?,
        u64::from_ne_bytes(entropy),
    );
    let next_ticket =
        connection
            .query_row("SELECT value FROM meta WHERE key = 'next_ticket'", [], |row| row.get(0))?;
    lobby.restore_next_ticket(TicketNumber(next_ticket));

    let mut departures = connection.prepare(
        "SELECT session, reason, at, offered_room, topic_id, room_type, waited, place
             FROM departures WHERE at > ? ORDER BY number",
    )?;
    let mut rows = departures.query([now.saturating_sub(REASON_KEPT)])?;
    while let Some(row) = rows.next()? {
        let (session, reason, at) = (SessionId(row.get(0)?), row.get::<_, String>(1)?, row.get(2)?);
        if let Some(room) = row.get::<_, Option<_>>(3)?.map(RoomId) {
            let queue = Queue { topic: TopicId(row.get(4)?), room_type: row.get(5)? };
            let place = TicketNumber(row.get(7)?);
            lobby.restore_kept(session, KeptPlace { room, queue, waited: row.get(6)?, place }, at);
        } else if let Some(reason) = IdleReason::from_word(&reason) {
            lobby.restore_idle(session, reason, at);
        }
    }

    let mut seats = connection.prepare(
        "SELECT c.id, c.topic_id, c.size, c.created_at, p.session_id, p.requested_size,
             p.waiting_since, p.place, coalesce(p.came, p.place IS NULL)
         FROM conversations AS c JOIN participants AS p ON p.conversation_id = c.id
         WHERE c.ended_at IS NULL AND p.left_at IS NULL
         ORDER BY c.id, p.seat",
    )?;
    let mut rows = seats.query([])?;
    while let Some(row) = rows.next()? {
        let seat = Seat {
            room: RoomId(row.get(0)?),
            topic: TopicId(row.get(1)?),
            size: row.get(2)?,
            matched_at: row.get(3)?,
            requested: row.get(5)?,
        };
        let session = SessionId(row.get(4)?);
        let stood = match (row.get(6)?, row.get(7)?) {
            (Some(since), Some(place)) => Some(Standing { since, place: TicketNumber(place) }),
            _ => None,
        };
        if !lobby.restore_sitting(session, seat, stood, row.get(8)?) {
            tracing::error!(%session, room = %seat.room, "a session has a second seat in the file");
        }
    }

    let mut tickets = connection.prepare(
        "SELECT number, session, topic_id, room_type, since, coalesce(place, number)
         FROM tickets ORDER BY number",
    )?;
    let mut rows = tickets.query([])?;
    while let Some(row) = rows.next()? {
        let number = TicketNumber(row.get(0)?);
        let session = SessionId(row.get(1)?);
        let queue = Queue { topic: TopicId(row.get(2)?), room_type: row.get(3)? };
        let standing = Standing { since: row.get(4)?, place: TicketNumber(row.get(5)?) };
        if !lobby.restore_standing(session, queue, number, standing, now) {
            tracing::error!(%session, "a session waits and stands elsewhere too in the file");
        }
    }
    Ok(lobby)
}

/// Who blocked whom, and who shared a room not long ago.
fn load_acquaintances(
    connection: &Connection,
    rematch_after: Millis,
    now: Millis,
) -> rusqlite::Result<Acquaintances> {
    let mut known = Acquaintances::new(rematch_after);
    let mut blocks = connection.prepare("SELECT blocker, blocked FROM blocks")?;
    let mut rows = blocks.query([])?;
    while let Some(row) = rows.next()? {
        known.block(SessionId(row.get(0)?), SessionId(row.get(1)?));
    }
    // Two people part when the first of them leaves, and partings are told in their order.
    let mut partings = connection.prepare(
        "SELECT first.session_id, other.session_id, first.left_at
         FROM participants AS first JOIN participants AS other
             ON other.conversation_id = first.conversation_id
         WHERE first.left_at > ? AND other.session_id <> first.session_id
             AND (other.left_at IS NULL OR other.left_at >= first.left_at)
         ORDER BY first.left_at",
    )?;
    let mut rows = partings.query([now.saturating_sub(rematch_after)])?;
    while let Some(row) = rows.next()? {
        known.part(SessionId(row.get(0)?), SessionId(row.get(1)?), row.get(2)?);
    }
    Ok(known)
}
