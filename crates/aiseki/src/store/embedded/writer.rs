//! The single writer: one thread that owns the lobby and the file, and commits in groups.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use aiseki_lobby::{Change, Millis};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::engine::Engine;
use super::{journal, rooms};
use crate::clock::Stopwatch;
use crate::rooms::{RoomHub, Signal};

/// Commands of one commit, at most: the first of them would otherwise wait for too many others.
const GROUP: usize = 1024;
/// How long a store that could not be written is left alone before it is tried again.
const PROBE_EVERY: Duration = Duration::from_millis(500);
/// Bytes that a probe writes. A full disk may still take a few, which would prove nothing.
const PROBE_BYTES: u32 = 256 * 1024;
/// How often old departures are removed.
const PRUNE_EVERY: Millis = 1_000;

/// Work for the writer. It is handed the state, or nothing while the store is away, and gives back
/// what to do once it is known whether the commit succeeded.
pub(super) enum Command {
    /// A transition of the lobby, committed together with others.
    Step(Step),
    /// SQL in a transaction of its own.
    Write(Write),
    /// A checkpoint that has to keep others from writing, see checkpoint.rs.
    Checkpoint,
    /// Commits what came before, and ends the thread.
    Stop,
}

/// What a [`Command::Step`] does.
pub(super) type Step = Box<dyn FnOnce(Option<&mut Engine>) -> Answer + Send>;

/// What a [`Command::Write`] does.
pub(super) type Write =
    Box<dyn FnOnce(Option<&Transaction<'_>>) -> rusqlite::Result<Answer> + Send>;

/// Makes the engine from the file.
pub(super) type Load = Box<dyn Fn(&Connection) -> rusqlite::Result<Engine> + Send>;

/// Told whether the commit succeeded.
pub(super) type Answer = Box<dyn FnOnce(bool) + Send>;

/// Told what happened, once it is committed.
pub(super) type Listener = Box<dyn Fn(&Committed<'_>) + Send>;

/// A commit that has succeeded.
pub struct Committed<'a> {
    /// What it holds.
    pub changes: &'a [Change],
    /// How many commands it answers.
    pub commands: usize,
    /// How long writing it took.
    pub took: Duration,
}

pub(super) struct Writer {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
    /// `None` while the store is away: it could not be written, and memory follows the file.
    pub(super) engine: Option<Engine>,
    /// Makes the engine anew from the file.
    pub(super) load: Load,
    pub(super) commands: Receiver<Command>,
    pub(super) available: Arc<AtomicBool>,
    pub(super) listener: Listener,
    pub(super) hub: Arc<RoomHub>,
    pub(super) pruned_at: Millis,
    /// Since the store was last found to be away.
    pub(super) probed: Stopwatch,
}

impl Writer {
    /// Works until it is told to stop, or until nobody can tell it anything any more.
    pub(super) fn run(mut self) {
        loop {
            let first = match self.patience() {
                None => self.commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(patience) => self.commands.recv_timeout(patience),
            };
            let first = match first {
                Ok(command) => Some(command),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if self.engine.is_none() && self.probed.elapsed() >= PROBE_EVERY {
                self.probe();
            }
            if self.group(first) {
                break;
            }
        }
        self.close();
    }

    /// How long to wait for a command before something is to be done without one.
    fn patience(&self) -> Option<Duration> {
        let Some(engine) = &self.engine else { return Some(PROBE_EVERY) };
        let due = engine.next_due()?;
        Some(Duration::from_millis(due.saturating_sub(engine.clock.now())))
    }

    /// Takes what commands there are, applies them, commits once, answers. True when told to stop.
    fn group(&mut self, first: Option<Command>) -> bool {
        let mut answers = Vec::new();
        let mut next = first;
        let mut alone = None;
        while let Some(command) = next {
            match command {
                Command::Step(step) => answers.push(step(self.engine.as_mut())),
                // The rest ends the group: it is not part of the same transaction.
                other => {
                    alone = Some(other);
                    break;
                }
            }
            next = if answers.len() < GROUP { self.commands.try_recv().ok() } else { None };
        }
        self.tick();
        self.commit(answers);
        match alone {
            None | Some(Command::Step(_)) => false,
            Some(Command::Write(write)) => {
                self.write(write);
                false
            }
            Some(Command::Checkpoint) => {
                // Failing is no harm: the log stays, and the next checkpoint tries again.
                let _ = self.connection.pragma_update(None, "wal_checkpoint", "PASSIVE");
                false
            }
            Some(Command::Stop) => true,
        }
    }

    /// Does what has become due with nobody asking for it.
    fn tick(&mut self) {
        if let Some(engine) = &mut self.engine {
            engine.tick();
        }
    }

    fn commit(&mut self, answers: Vec<Answer>) {
        let commands = answers.len();
        let mut succeeded = self.engine.is_some();
        if let Some(engine) = &mut self.engine
            && engine.unwritten()
        {
            let watch = Stopwatch::start();
            let now = engine.clock.now();
            let prune = now >= self.pruned_at + PRUNE_EVERY;
            match write_changes(&mut self.connection, engine, now, prune) {
                Ok(()) => {
                    if prune {
                        self.pruned_at = now;
                    }
                    let changes = std::mem::take(&mut engine.changes);
                    engine.entered_from.clear();
                    engine.dismissed.clear();
                    engine.came.clear();
                    engine.blocked.clear();
                    engine.live.ended.clear();
                    let took = watch.elapsed();
                    (self.listener)(&Committed { changes: &changes, commands, took });
                    for said in engine.live.said.drain(..) {
                        self.hub.tell(said.room, Signal::Said(said));
                    }
                }
                Err(error) => {
                    succeeded = false;
                    self.fail(&error);
                }
            }
        }
        // Who is here is not in the file, so this needs no commit; it comes after what was said.
        if let Some(engine) = &mut self.engine {
            for room in engine.live.changed.drain() {
                self.hub.tell(room, Signal::Changed);
            }
        }
        for answer in answers {
            answer(succeeded);
        }
    }

    fn write(&mut self, write: Write) {
        if self.engine.is_none() {
            if let Ok(answer) = write(None) {
                answer(false);
            }
            return;
        }
        let result = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .and_then(|transaction| {
                let answer = write(Some(&transaction))?;
                transaction.commit()?;
                Ok(answer)
            });
        match result {
            Ok(answer) => answer(true),
            // Whoever waits for the answer finds that it was dropped.
            Err(error) => self.fail(&error),
        }
    }

    /// What was applied in memory is not in the file: memory is thrown away, and loaded again once the
    /// file can be written.
    fn fail(&mut self, error: &rusqlite::Error) {
        tracing::error!(
            file = %self.path.display(),
            error = %error,
            "the store cannot be written; nothing is seated until it can"
        );
        self.engine = None;
        self.probed = Stopwatch::start();
        self.available.store(false, Ordering::Release);
    }

    fn probe(&mut self) {
        self.probed = Stopwatch::start();
        let result = probe(&mut self.connection).and_then(|()| (self.load)(&self.connection));
        match result {
            Ok(engine) => {
                tracing::info!(
                    file = %self.path.display(),
                    waiting = engine.lobby.waiting(),
                    "the store can be written again"
                );
                self.engine = Some(engine);
                self.available.store(true, Ordering::Release);
                self.hub.tell_all();
            }
            Err(error) => {
                tracing::debug!(file = %self.path.display(), %error, "the store is still away");
            }
        }
    }

    /// Leaves a file without a log behind, so that it can be copied as it is.
    fn close(self) {
        let path = self.path;
        if let Err((_, error)) = self.connection.close() {
            tracing::warn!(file = %path.display(), %error, "the store was not closed cleanly");
        }
    }
}

fn write_changes(
    connection: &mut Connection,
    engine: &Engine,
    now: Millis,
    prune: bool,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let next_ticket = engine.lobby.next_ticket();
    journal::write(&transaction, engine, next_ticket, now)?;
    rooms::write(&transaction, &engine.live, now)?;
    if prune {
        journal::prune_departures(&transaction, now)?;
    }
    transaction.commit()
}

/// Proves that the file can be written, by writing.
fn probe(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(
        "INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', zeroblob(?))",
        [PROBE_BYTES],
    )?;
    transaction.execute("DELETE FROM meta WHERE key = 'probe'", [])?;
    transaction.commit()
}
