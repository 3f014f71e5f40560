//! The embedded store: one process, one SQLite file, one writer thread.
//!
//! Everything that was answered is in the file, so a killed process loses nothing. See
//! `ARCHITECTURE.md` for why it is built like this.

mod backup;
mod checkpoint;
mod doctor;
mod engine;
mod export;
mod journal;
mod live;
mod open;
mod reads;
mod reports;
mod rooms;
mod schema;
mod writer;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use aiseki_lobby::{
    IdleReason, Millis, Queue, Refused, RoomId, SessionId, Sign, State, TopicId, Vacate,
};
use rusqlite::{Transaction, params};
use tokio::sync::oneshot;

pub use backup::{BackupError, backup};
pub use doctor::examine;
pub use export::{ExportError, export};
pub use open::{OpenError, Settings};
pub use writer::Committed;

use self::engine::Engine;
use self::reads::Readers;
use self::writer::Command;
use crate::bans::{Ban, BanStore, BanSubject, Bans};
use crate::clock::{Clock, Stopwatch};
use crate::conversations::{Conversation, ConversationStore};
use crate::matching::{Door, Entered, Join, LobbyStore, NotEntered, QueueLength};
use crate::port::{Pending, Unavailable};
use crate::rate_limit::{AddressGroup, Limited};
use crate::rooms::RoomHub;
use crate::sessions::SessionKey;
use crate::topics::{Title, Topic, TopicStore};

/// People taken out of queues in one step of the writer, at most.
const EXPELLED_AT_ONCE: usize = 500;
/// A count of the queues is used again for so many times as long as it took to make, so that asking
/// for it never takes more than a twentieth of the writer's time.
const COUNT_REUSED: u32 = 20;

/// The store of a server that runs alone.
pub struct EmbeddedStore {
    commands: SyncSender<Command>,
    readers: Readers,
    hub: Arc<RoomHub>,
    clock: Clock,
    available: Arc<AtomicBool>,
    session_keys: Vec<SessionKey>,
    counted: Mutex<Option<Count>>,
    threads: Mutex<Option<Threads>>,
}

struct Count {
    lengths: Vec<(Queue, usize)>,
    made: Stopwatch,
    took: std::time::Duration,
}

struct Threads {
    writer: JoinHandle<()>,
    checkpoints: JoinHandle<()>,
    /// Dropped to stop the checkpoints.
    stop: Sender<()>,
    /// The lock is held until the threads have ended.
    _lock: std::fs::File,
}

impl EmbeddedStore {
    /// The secrets by which session tokens are signed.
    pub fn session_keys(&self) -> Vec<SessionKey> {
        self.session_keys.clone()
    }

    /// Commits what was asked for and closes the file. Calls after this are answered with
    /// [`Unavailable`]. Blocks for as long as that takes.
    pub fn close(&self) {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(threads) = threads {
            self.available.store(false, Ordering::Release);
            drop(threads.stop);
            // The other connections go first: the last one to close tidies the log away.
            let _ = threads.checkpoints.join();
            self.readers.close();
            let _ = self.commands.send(Command::Stop);
            let _ = threads.writer.join();
        }
    }

    /// One transition in the writer, committed before it is answered.
    fn step<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Engine) -> T + Send + 'static,
    ) -> Pending<'_, T> {
        let (answer, answered) = oneshot::channel();
        let command = Command::Step(Box::new(move |engine| {
            let value = engine.map(step);
            Box::new(move |committed| {
                let value = value.filter(|_| committed).ok_or(Unavailable);
                // Nobody may be listening any more; what was done stays done.
                let _ = answer.send(value);
            })
        }));
        self.send(command, answered)
    }

    /// SQL in a transaction of its own.
    fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Transaction<'_>, Millis) -> rusqlite::Result<T> + Send + 'static,
    ) -> Pending<'_, T> {
        let (answer, answered) = oneshot::channel();
        let clock = self.clock;
        let command = Command::Write(Box::new(move |transaction| {
            let value = transaction.map(|t| write(t, clock.now())).transpose()?;
            Ok(Box::new(move |committed| {
                let _ = answer.send(value.filter(|_| committed).ok_or(Unavailable));
            }))
        }));
        self.send(command, answered)
    }

    fn send<T: Send + 'static>(
        &self,
        command: Command,
        answered: oneshot::Receiver<Result<T, Unavailable>>,
    ) -> Pending<'_, T> {
        // A full channel is an overload: a clear answer now is worth more than a late one.
        let sent = self.commands.try_send(command).is_ok();
        Box::pin(async move {
            if !sent {
                return Err(Unavailable);
            }
            answered.await.unwrap_or(Err(Unavailable))
        })
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.close();
    }
}

impl LobbyStore for EmbeddedStore {
    fn enter(&self, join: Join, door: Arc<dyn Door>) -> Pending<'_, Result<Entered, NotEntered>> {
        self.step(move |engine| enter(engine, &join, door.as_ref()))
    }

    fn cancel(&self, session: SessionId) -> Pending<'_, Result<(), State>> {
        self.step(move |engine| {
            engine.step(|lobby, now, changes| lobby.cancel(session, now, changes))
        })
    }

    fn poll(&self, session: SessionId) -> Pending<'_, State> {
        self.step(move |engine| {
            engine.step(|lobby, now, changes| lobby.poll(session, now, changes));
            // A room that the poll formed is written in the same step.
            engine.lobby.state(session, engine.clock.now())
        })
    }

    fn touch(&self, sessions: Vec<SessionId>, sign: Sign) -> Pending<'_, ()> {
        self.step(move |engine| {
            engine.step(|lobby, now, _| lobby.touch(&sessions, sign, now));
        })
    }

    fn vacate(&self, session: SessionId, room: RoomId) -> Pending<'_, Vacate> {
        self.step(move |engine| {
            engine.step(|lobby, now, changes| lobby.vacate(session, room, now, changes))
        })
    }

    fn block(&self, by: SessionId, whom: SessionId) -> Pending<'_, ()> {
        self.step(move |engine| engine.block(by, whom))
    }

    fn close_room(&self, room: RoomId) -> Pending<'_, bool> {
        self.step(move |engine| {
            engine.step(|lobby, now, changes| lobby.close_room(room, now, changes))
        })
    }

    fn close_topic(&self, topic: TopicId) -> Pending<'_, ()> {
        Box::pin(async move {
            let step = || {
                self.step(move |engine| {
                    engine.step(|lobby, now, changes| lobby.close_topic(topic, now, changes))
                })
            };
            while step().await? {}
            Ok(())
        })
    }

    fn expel_banned(&self, bans: Arc<Bans>) -> Pending<'_, ()> {
        Box::pin(async move {
            // Whoever passed the door before the ban was known is in a commit before this answer.
            self.step(|_| ()).await?;
            let now = self.now();
            let mut banned: Vec<SessionId> = self
                .readers
                .read(reads::waiting_people)
                .await?
                .into_iter()
                .filter(|(session, address)| {
                    address.parse().is_ok_and(|address| bans.banned(*session, address, now))
                })
                .map(|(session, _)| session)
                .collect();
            while !banned.is_empty() {
                let some = banned.split_off(banned.len().saturating_sub(EXPELLED_AT_ONCE));
                self.step(move |engine| {
                    engine.step(|lobby, now, changes| {
                        for session in some {
                            lobby.expel(session, IdleReason::Banned, now, changes);
                        }
                    });
                })
                .await?;
            }
            self.step(move |engine| dismiss_banned(engine, &bans)).await
        })
    }

    fn count_new_session(&self, address: AddressGroup) -> Pending<'_, Result<(), Limited>> {
        self.step(move |engine| engine.limiter.new_session(address, engine.clock.now()))
    }

    fn lengths(&self) -> Pending<'_, Vec<(Queue, usize)>> {
        Box::pin(async move {
            if let Some(count) = &*self.counted.lock().unwrap_or_else(PoisonError::into_inner)
                && count.made.elapsed() < count.took * COUNT_REUSED
            {
                return Ok(count.lengths.clone());
            }
            let (lengths, took) = self
                .step(|engine| {
                    let watch = Stopwatch::start();
                    (engine.lobby.lengths().collect::<Vec<_>>(), watch.elapsed())
                })
                .await?;
            let count = Count { lengths: lengths.clone(), made: Stopwatch::start(), took };
            *self.counted.lock().unwrap_or_else(PoisonError::into_inner) = Some(count);
            Ok(lengths)
        })
    }

    fn queues(&self) -> Pending<'_, Vec<QueueLength>> {
        Box::pin(self.readers.read(reads::queues))
    }

    fn now(&self) -> Millis {
        self.clock.now()
    }

    fn available(&self) -> bool {
        self.available.load(Ordering::Acquire)
    }
}

/// Takes their seats from members who are banned, by themselves or by where they are connected from.
fn dismiss_banned(engine: &mut Engine, bans: &Bans) {
    let now = engine.clock.now();
    let nowhere = || IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let banned: Vec<(RoomId, SessionId)> = engine
        .live
        .seated()
        .filter_map(|(room, session, addresses)| {
            let mut from = addresses.chain([nowhere()]);
            from.any(|from| bans.banned(session, from, now)).then_some((room, session))
        })
        .collect();
    for (room, session) in banned {
        engine.step(|lobby, now, changes| {
            lobby.dismiss(session, room, IdleReason::Banned, now, changes)
        });
    }
}

/// The checks of a join in the order of the public contract.
fn enter(engine: &mut Engine, join: &Join, door: &dyn Door) -> Result<Entered, NotEntered> {
    let Join { session, queue, address, resume } = *join;
    let now = engine.clock.now();
    if engine.lobby.policy().room_types.get(queue.room_type).is_none() {
        return Err(NotEntered::InvalidRoomType);
    }
    let repeated = engine.lobby.waits_in(session, queue, now);
    if !repeated {
        engine.limiter.join(session, address.into(), now).map_err(NotEntered::RateLimited)?;
        door.check(join, now).map_err(NotEntered::TurnedAway)?;
    }
    match engine.step(|lobby, now, changes| lobby.resume(session, queue, resume, now, changes)) {
        Ok(_) => {
            // A place keeps the address that it was taken from.
            if !repeated {
                engine.entered_from.insert(session, address);
            }
            // Asked again, because a room that was formed has been written since.
            Ok(Entered { state: engine.lobby.state(session, engine.clock.now()) })
        }
        Err(Refused::InvalidRoomType) => Err(NotEntered::InvalidRoomType),
        Err(Refused::AlreadyWaiting(state)) => Err(NotEntered::AlreadyWaiting(state)),
        Err(Refused::AlreadyMatched(state)) => Err(NotEntered::AlreadyMatched(state)),
    }
}

impl TopicStore for EmbeddedStore {
    fn topics(&self) -> Pending<'_, Vec<Topic>> {
        Box::pin(self.readers.read(reads::topics))
    }

    fn topic(&self, id: TopicId) -> Pending<'_, Option<Topic>> {
        Box::pin(self.readers.read(move |connection| reads::topic_of(connection, id)))
    }

    fn add_topic(&self, title: Title, active: bool) -> Pending<'_, Topic> {
        self.write(move |transaction, now| add_topic(transaction, title, active, now))
    }

    fn add_first_topics(&self, titles: Vec<Title>) -> Pending<'_, Vec<Topic>> {
        self.write(move |transaction, now| {
            let some = "SELECT EXISTS (SELECT 1 FROM topics)";
            if transaction.query_row(some, [], |row| row.get(0))? {
                return Ok(Vec::new());
            }
            titles.into_iter().map(|title| add_topic(transaction, title, true, now)).collect()
        })
    }

    fn change_topic(
        &self,
        id: TopicId,
        title: Option<Title>,
        active: Option<bool>,
    ) -> Pending<'_, Option<Topic>> {
        self.write(move |transaction, _| {
            use rusqlite::OptionalExtension as _;
            transaction
                .query_row(
                    "UPDATE topics SET title = coalesce(?2, title), active = coalesce(?3, active)
                     WHERE id = ?1 RETURNING id, title, active",
                    params![id.0, title.as_ref().map(Title::as_str), active],
                    reads::topic,
                )
                .optional()
        })
    }
}

fn add_topic(
    transaction: &Transaction<'_>,
    title: Title,
    active: bool,
    now: Millis,
) -> rusqlite::Result<Topic> {
    transaction
        .prepare_cached("INSERT INTO topics (title, active, created_at) VALUES (?, ?, ?)")?
        .execute(params![title.as_str(), active, now])?;
    Ok(Topic { id: TopicId(transaction.last_insert_rowid()), title, active })
}

impl BanStore for EmbeddedStore {
    fn bans(&self) -> Pending<'_, Vec<Ban>> {
        Box::pin(self.readers.read(reads::bans))
    }

    fn add_ban(
        &self,
        subject: BanSubject,
        reason: String,
        expires_at: Option<Millis>,
    ) -> Pending<'_, Ban> {
        self.write(move |transaction, now| {
            let (session, network) = match subject {
                BanSubject::Session(session) => (Some(session.0), None),
                BanSubject::Network(network) => (None, Some(network.to_string())),
            };
            transaction.query_row(
                "INSERT INTO bans (session, network, reason, created_at, expires_at)
                 VALUES (?, ?, ?, ?, ?)
                 RETURNING id, session, network, reason, created_at, expires_at",
                params![session, network, reason, now, expires_at],
                reads::ban,
            )
        })
    }

    fn remove_ban(&self, id: i64) -> Pending<'_, bool> {
        self.write(move |transaction, _| {
            Ok(transaction.execute("DELETE FROM bans WHERE id = ?", [id])? > 0)
        })
    }
}

impl ConversationStore for EmbeddedStore {
    fn conversation(&self, room: RoomId) -> Pending<'_, Option<Conversation>> {
        Box::pin(self.readers.read(move |connection| reads::conversation(connection, room)))
    }

    fn live_conversations(
        &self,
        topic: Option<TopicId>,
        after: Option<RoomId>,
        limit: usize,
    ) -> Pending<'_, Vec<Conversation>> {
        Box::pin(
            self.readers
                .read(move |connection| reads::live_conversations(connection, topic, after, limit)),
        )
    }
}
