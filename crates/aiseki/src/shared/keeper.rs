//! What every server does without being asked: what is due, seats that are missing, what another
//! server left half done.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use aiseki_lobby::{IdleReason, LARGEST_ROOM, Millis, RoomId, SessionId};

use super::{Leaving, PEOPLE_AT_ONCE, SharedLobby, WaitingStore};
use crate::clock::Stopwatch;
use crate::port::Unavailable;
use crate::records::RecordStore;

/// No two ticks of a server are nearer to each other, except while there is more to do.
const SHORTEST: Duration = Duration::from_millis(20);
/// How often it is looked whether the waiting store has all live seats.
const SEATS: Duration = Duration::from_secs(1);
/// How often rooms that ended lately are looked at again, and how lately.
const ENDED: (Duration, Millis) = (Duration::from_secs(10), 120_000);
/// Who has not looked at them for longer than this may have missed some.
const MISSED: Duration = Duration::from_mins(1);

/// Called when announcements may have been missed.
type OnMissed = Box<dyn Fn() + Send + Sync>;
/// The number of the last announcement that was heard.
type LastHeard = Box<dyn Fn() -> u64 + Send + Sync>;

/// The keeper of one server.
pub struct Keeper {
    waiting: Arc<dyn WaitingStore>,
    records: Arc<dyn RecordStore>,
    lobby: Arc<SharedLobby>,
    /// The longest pause between two ticks.
    every: Duration,
    last_heard: LastHeard,
    on_missed: OnMissed,
}

impl Keeper {
    /// A keeper of these stores, which ticks at least `every`.
    pub fn new(
        waiting: Arc<dyn WaitingStore>,
        records: Arc<dyn RecordStore>,
        lobby: Arc<SharedLobby>,
        every: Duration,
        last_heard: impl Fn() -> u64 + Send + Sync + 'static,
        on_missed: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let (last_heard, on_missed) = (Box::new(last_heard), Box::new(on_missed));
        Self { waiting, records, lobby, every, last_heard, on_missed }
    }

    /// Ticks for ever.
    pub async fn keep(self: Arc<Self>) {
        // What had been announced at a tick must have been heard by the next but one second later.
        let (mut announced, mut noted) = (0, Stopwatch::start());
        loop {
            let pause = match self.waiting.tick().await {
                Ok(tick) => {
                    if noted.elapsed() >= SEATS {
                        if (self.last_heard)() < announced {
                            (self.on_missed)();
                        }
                        (announced, noted) = (tick.announced, Stopwatch::start());
                    }
                    match tick.due_in.map(Duration::from_millis) {
                        Some(Duration::ZERO) => Duration::ZERO,
                        due => due.unwrap_or(self.every).clamp(SHORTEST, self.every),
                    }
                }
                Err(Unavailable) => self.every.min(Duration::from_millis(250)),
            };
            if pause.is_zero() {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// Sees to it for ever that the waiting store has all live seats.
    pub async fn keep_seats(self: Arc<Self>) {
        loop {
            let _ = self.check_seats().await;
            tokio::time::sleep(SEATS).await;
        }
    }

    /// Repeats for ever what a server may have left half done: the room ended in the records, and its
    /// people were not told. When nobody can say since when, all seats are compared with the records.
    pub async fn keep_endings(self: Arc<Self>) {
        let mut repeated: Option<Stopwatch> = None;
        loop {
            let since = repeated.as_ref().map(Stopwatch::elapsed);
            if since.is_none_or(|since| since >= MISSED) {
                self.lobby.doubt_seats();
            }
            if since.is_none_or(|since| since >= ENDED.0) || self.lobby.doubts_seats() {
                let begun = Stopwatch::start();
                repeated = self.look_at_endings().await.ok().map(|()| begun);
            }
            tokio::time::sleep(SEATS).await;
        }
    }

    /// Repeats the endings of late, and compares all seats when they are in doubt.
    async fn look_at_endings(&self) -> Result<(), Unavailable> {
        // An outage is noticed also while no room ends.
        self.waiting.runs().await?;
        self.repeat_endings().await?;
        if self.lobby.take_doubt() {
            self.compare_seats().await.inspect_err(|_| self.lobby.doubt_seats())?;
        }
        Ok(())
    }

    /// Looks once whether the waiting store has all live seats, and reads them back when it has not,
    /// with the blocks, which are lost together with them.
    pub async fn check_seats(&self) -> Result<(), Unavailable> {
        let runs = self.waiting.runs().await.inspect_err(|_| self.lobby.set_seats_known(None))?;
        if runs.current == runs.seats_known_in {
            self.lobby.set_seats_known(Some(runs.current));
            return Ok(());
        }
        self.lobby.set_seats_known(None);
        if !self.waiting.may_read_back().await? {
            return Ok(());
        }
        let (mut after, mut count) = (None, 0);
        loop {
            let page = self.records.live_seats(after, PEOPLE_AT_ONCE).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(*last);
            count += page.len();
            self.waiting.restore_seats(page).await?;
        }
        self.read_blocks_back().await?;
        self.waiting.seats_are_known(runs.current.clone()).await?;
        self.lobby.set_seats_known(Some(runs.current));
        tracing::info!(seats = count, "the live seats were read back from the records");
        Ok(())
    }

    async fn read_blocks_back(&self) -> Result<(), Unavailable> {
        let mut after = None;
        loop {
            let page = self.records.blocks(after, PEOPLE_AT_ONCE).await?;
            if page.is_empty() {
                return Ok(());
            }
            after = page.last().copied();
            self.waiting.keep_apart(page).await?;
        }
    }

    /// Takes every seat of the waiting store that has been given up by the records. The seat is read
    /// before its record, and nobody sits twice in the same room, so nothing that goes on meanwhile is
    /// taken for an ending.
    async fn compare_seats(&self) -> Result<(), Unavailable> {
        let (mut from, mut taken) = (Some(0), 0);
        while let Some(cursor) = from {
            let page = self.waiting.seats(cursor).await?;
            from = page.next;
            let mut rooms: Vec<RoomId> = page.seats.iter().map(|(_, room)| *room).collect();
            rooms.sort_unstable();
            rooms.dedup();
            let seats: HashSet<(SessionId, RoomId)> = page.seats.into_iter().collect();
            let mut leaving = Vec::new();
            for (room, people) in self.records.people_of(rooms).await? {
                let (gone, others): (Vec<_>, Vec<_>) =
                    people.into_iter().partition(|(_, left)| left.is_some());
                let ghosts = gone.iter().filter(|(session, _)| seats.contains(&(*session, room)));
                let ghosts = ghosts.count();
                if ghosts > 0 {
                    taken += ghosts;
                    let people = gone.into_iter().map(|(it, left)| (it, why(left == Some(true))));
                    let others = others.into_iter().map(|(session, _)| session).collect();
                    leaving.push(Leaving { room, people: people.collect(), others });
                }
            }
            self.vacate(&leaving).await?;
        }
        if taken > 0 {
            tracing::info!(seats = taken, "seats that had been given up in an outage were taken");
        }
        Ok(())
    }

    async fn repeat_endings(&self) -> Result<(), Unavailable> {
        let mut rooms = Vec::new();
        for (room, people) in self.records.lately_ended(ENDED.1).await? {
            let people = people.into_iter().map(|(session, left)| (session, why(left))).collect();
            rooms.push(Leaving { room, people, others: Vec::new() });
        }
        self.vacate(&rooms).await
    }

    async fn vacate(&self, rooms: &[Leaving]) -> Result<(), Unavailable> {
        for some in rooms.chunks(PEOPLE_AT_ONCE / usize::from(LARGEST_ROOM)) {
            self.waiting.vacate(some.to_vec()).await?;
        }
        Ok(())
    }
}

/// Why somebody is idle, who left by themselves or lost the seat with the room.
fn why(left: bool) -> IdleReason {
    if left { IdleReason::Left } else { IdleReason::RoomClosed }
}
