//! Opening the embedded store: the directory, the lock, the file, the threads.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, mpsc};

use aiseki_lobby::{Millis, Policy};
use rusqlite::Connection;

use super::engine::{self, Engine};
use super::reads::Readers;
use super::writer::{Committed, Writer};
use super::{EmbeddedStore, Threads, checkpoint, journal, schema};
use crate::clock::{Clock, Stopwatch};
use crate::config::Durability;
use crate::rate_limit::{RateLimiter, RateLimits};
use crate::rooms::{RoomHub, RoomRules};
use crate::sessions::SessionKey;

/// Commands that wait for the writer, at most.
const COMMANDS: usize = 16_384;

pub(super) const FILE: &str = "aiseki.db";
const LOCK: &str = "aiseki.lock";

/// What the embedded store has to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where its files are. Made when it is not there.
    pub data_dir: PathBuf,
    /// What a power cut may take.
    pub durability: Durability,
    /// How people are seated.
    pub policy: Policy,
    /// For how long two people who shared a room are kept apart while others will do; 0 for not at all.
    pub rematch_after: Millis,
    /// How often they may join; `None` for as often as they like.
    pub rate_limits: Option<RateLimits>,
    /// What was decided about rooms.
    pub rooms: RoomRules,
}

/// Why the store cannot be opened. Its `Display` is one line that tells an operator what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("{} is in use by another aiseki{}: one directory serves one process", .path.display(), .by)]
    InUse {
        /// The directory.
        path: PathBuf,
        /// Who holds it, as far as it is known.
        by: String,
    },
    /// The directory or a file in it cannot be made, read or written.
    #[error("{} cannot be used as data directory: {reason}", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// Not a file of this program.
    #[error("{} is not a store of aiseki; choose another --data-dir", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Written by a newer version.
    #[error(
        "{} was written by a newer aiseki (schema {version}, this program knows {known}); \
         start the newer program", .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        version: i32,
        /// The newest schema that this program knows.
        known: i32,
    },
    /// What is in the file makes no sense.
    #[error(
        "{} is damaged ({reason}); put a backup in its place, or move it away to start anew",
        .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How that was found.
        reason: String,
    },
    /// Something else that SQLite met: a full disk, a directory that cannot be written.
    #[error("{} cannot be opened: {reason}", .path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        reason: rusqlite::Error,
    },
}

impl OpenError {
    pub(super) fn sqlite(path: &Path, reason: rusqlite::Error) -> Self {
        let path = path.to_owned();
        if schema::is_damage(&reason) {
            Self::Damaged { path, reason: reason.to_string() }
        } else {
            Self::Sqlite { path, reason }
        }
    }
}

impl EmbeddedStore {
    /// Opens the store, or makes it. `listener` is told on the writer's thread of every commit that
    /// changed something, and must not block; `hub` of what happens in rooms.
    ///
    /// # Panics
    ///
    /// When the system cannot start a thread.
    pub fn open(
        settings: &Settings,
        hub: Arc<RoomHub>,
        listener: impl Fn(&Committed<'_>) + Send + 'static,
    ) -> Result<Self, OpenError> {
        let directory = &settings.data_dir;
        let refused = |reason| OpenError::Directory { path: directory.clone(), reason };
        // The directory holds a secret (the session keys), so it is nobody else's to read.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(refused)?;
        let lock = lock(directory)?;
        let path = directory.join(FILE);
        private_file(&path).map_err(refused)?;

        let mut connection = schema::open(&path, settings.durability)?;
        let explain = |error| OpenError::sqlite(&path, error);
        let clock = Clock::start(engine::latest_time(&connection).map_err(explain)?);
        let session_keys = session_keys(&mut connection, &clock).map_err(explain)?;
        let load = loader(settings.clone(), clock);
        let mut engine = load(&connection).map_err(explain)?;
        store_first_changes(&mut connection, &mut engine).map_err(explain)?;

        let (commands, received) = mpsc::sync_channel(COMMANDS);
        let available = Arc::new(AtomicBool::new(true));
        let writer = Writer {
            path: path.clone(),
            connection,
            engine: Some(engine),
            load: Box::new(load),
            commands: received,
            available: Arc::clone(&available),
            listener: Box::new(listener),
            hub: Arc::clone(&hub),
            pruned_at: 0,
            probed: Stopwatch::start(),
        };
        let writer = spawn("aiseki-writer", move || writer.run());
        let (stop, stopped) = mpsc::channel();
        let copier = schema::open_checkpointer(&path).map_err(explain)?;
        let (log, to_writer) = (checkpoint::log_of(&path), commands.clone());
        let checkpoints = spawn("aiseki-checkpoint", move || {
            checkpoint::run(&copier, &log, &to_writer, &stopped);
        });
        Ok(Self {
            commands,
            readers: Readers::new(path),
            hub,
            clock,
            available,
            session_keys,
            counted: Mutex::default(),
            threads: Mutex::new(Some(Threads { writer, checkpoints, stop, _lock: lock })),
        })
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).expect("a thread can be started")
}

fn loader(
    settings: Settings,
    clock: Clock,
) -> impl Fn(&Connection) -> rusqlite::Result<Engine> + Send {
    move |connection| {
        let limiter = RateLimiter::new(settings.rate_limits);
        let Settings { policy, rematch_after, rooms, .. } = &settings;
        Engine::load(connection, policy.clone(), *rematch_after, *rooms, limiter, clock)
    }
}

/// Loading may have ended the waits of some people already.
fn store_first_changes(connection: &mut Connection, engine: &mut Engine) -> rusqlite::Result<()> {
    let (next_ticket, now) = (engine.lobby.next_ticket(), engine.clock.now());
    let transaction = connection.transaction()?;
    journal::write(&transaction, engine, next_ticket, now)?;
    transaction.commit()?;
    engine.changes.clear();
    Ok(())
}

/// Takes the kernel's lock, which ends with its owner however that ends.
fn lock(directory: &Path) -> Result<File, OpenError> {
    let refused = |reason| OpenError::Directory { path: directory.to_owned(), reason };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(directory.join(LOCK))
        .map_err(refused)?;
    match file.try_lock() {
        Ok(()) => {
            // For whoever is refused: who it is that holds the directory.
            file.set_len(0).and_then(|()| file.rewind()).map_err(refused)?;
            write!(file, "{}", std::process::id()).map_err(refused)?;
            Ok(file)
        }
        Err(std::fs::TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = file.take(20).read_to_string(&mut holder);
            let by = match holder.trim().parse::<u32>() {
                Ok(process) => format!(" (process {process})"),
                Err(_) => String::new(),
            };
            Err(OpenError::InUse { path: directory.to_owned(), by })
        }
        Err(std::fs::TryLockError::Error(reason)) => Err(refused(reason)),
    }
}

/// SQLite would make the file readable for everybody.
fn private_file(path: &Path) -> std::io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
}

/// The keys in the file, and the first one of all when there are none.
fn session_keys(connection: &mut Connection, clock: &Clock) -> rusqlite::Result<Vec<SessionKey>> {
    let transaction = connection.transaction()?;
    let mut keys: Vec<SessionKey> = transaction
        .prepare("SELECT number, secret FROM session_keys ORDER BY number")?
        .query_map([], |row| Ok(SessionKey { number: row.get(0)?, secret: row.get(1)? }))?
        .collect::<rusqlite::Result<_>>()?;
    if keys.is_empty() {
        let key = SessionKey::generate(1);
        transaction.execute(
            "INSERT INTO session_keys (number, secret, created_at) VALUES (?, ?, ?)",
            rusqlite::params![key.number, key.secret, clock.now()],
        )?;
        keys.push(key);
    }
    transaction.commit()?;
    Ok(keys)
}
