//! The connection that commands share, replaced whenever it is in doubt.
//!
//! A half-open link, on which the other side acknowledges packets and nothing answers, looks to a
//! client like a slow server. Here an answer that is late ends the connection: the next command
//! makes a new one. Nothing is lost by that, because every command that goes through a link may be
//! repeated.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};

use crate::answer;
use crate::backoff::Backoff;
use crate::error::Result;
use crate::metrics::Metrics;
use crate::script::Script;
use crate::server::{Connection, Server, late};

const RETRY: Backoff =
    Backoff { first: Duration::from_millis(10), most: Duration::from_secs(1), doubling: 8 };

/// A shared connection to a server, replaced whenever it is in doubt. Nothing is connected until it
/// is used.
pub struct Link {
    server: Server,
    metrics: Metrics,
    current: Mutex<Current>,
    /// Only one task connects; the others wait for it and use what it made.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Current {
    connection: Option<Connection>,
    generation: u64,
}

impl Link {
    /// A link to this server.
    pub fn new(server: Server, metrics: Metrics) -> Self {
        Self {
            server,
            metrics,
            current: Mutex::new(Current::default()),
            connecting: tokio::sync::Mutex::new(()),
        }
    }

    /// A link of its own to the same server, for another thread.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.server.clone(), self.metrics.clone())
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Runs a script's call, by its hash or in full, again and again until it is done or the
    /// operation's time is over. Only for what may be done twice.
    pub async fn run(&self, script: &Script, call: &Cmd) -> Result<Value> {
        self.repeat(call, Some(script)).await
    }

    /// Runs a script's call once, for what may not be done twice.
    pub(crate) async fn run_once(&self, script: &Script, call: &Cmd) -> Result<Value> {
        Ok(self.attempt(call, Some(script)).await?)
    }

    async fn attempt(&self, call: &Cmd, script: Option<&Script>) -> RedisResult<Value> {
        match (self.once(call).await, script) {
            (Err(error), Some(script)) if is_unknown_script(&error) => {
                self.once(&script.in_full(call)).await
            }
            (answer, _) => answer,
        }
    }

    /// Runs a command the same way as [`Link::run`].
    pub async fn query(&self, command: &Cmd) -> Result<Value> {
        self.repeat(command, None).await
    }

    /// Asks whether the server answers.
    pub async fn ping(&self) -> Result<()> {
        self.query(&redis::cmd("PING")).await.map(|_| ())
    }

    /// What the server says of itself, by name; of a cluster's nodes, which are alike, one.
    pub async fn info(&self, section: &str) -> Result<Vec<(String, String)>> {
        let mut ask = redis::cmd("INFO");
        ask.arg(section);
        let text = match self.query(&ask).await? {
            Value::Map(nodes) => match nodes.into_iter().next() {
                Some((_, text)) => answer::verbatim(text)?,
                None => String::new(),
            },
            text => answer::verbatim(text)?,
        };
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
    }

    /// Removes keys of one slot.
    pub(crate) async fn unlink(&self, keys: &[String]) -> Result<()> {
        let mut command = redis::cmd("UNLINK");
        command.arg(keys);
        self.query(&command).await.map(|_| ())
    }

    async fn repeat(&self, command: &Cmd, script: Option<&Script>) -> Result<Value> {
        let end = tokio::time::Instant::now() + self.server.timeouts().operation;
        let mut failures = 0;
        loop {
            let error = match self.attempt(command, script).await {
                Err(error) if is_passing(&error) => error,
                done => return Ok(done?),
            };
            let pause = RETRY.after(failures);
            failures += 1;
            if tokio::time::Instant::now() + pause >= end {
                return Err(error.into());
            }
            tracing::debug!(%error, failures, "a command is repeated");
            tokio::time::sleep(pause).await;
        }
    }

    /// One attempt of one command.
    pub(crate) async fn once(&self, command: &Cmd) -> RedisResult<Value> {
        let (mut connection, generation) = self.connection().await?;
        let limit = self.server.timeouts().response;
        let answer = match tokio::time::timeout(limit, connection.send(command)).await {
            Ok(answer) => answer,
            Err(_) => Err(late("an answer")),
        };
        if let Err(error) = &answer
            && ends_connection(error)
        {
            self.discard(generation, error);
        }
        answer
    }

    async fn connection(&self) -> RedisResult<(Connection, u64)> {
        if let Some(found) = self.current().ready() {
            return Ok(found);
        }
        let _turn = self.connecting.lock().await;
        if let Some(found) = self.current().ready() {
            return Ok(found);
        }
        let connection = self.server.connect().await?;
        let mut current = self.current();
        current.generation += 1;
        if current.generation > 1 {
            self.metrics.reconnects.inc();
            tracing::info!(server = ?self.server, "connected again");
        }
        current.connection = Some(connection.clone());
        Ok((connection, current.generation))
    }

    /// How many connections there have been: another number means another connection, perhaps to
    /// another server.
    pub fn generation(&self) -> u64 {
        self.current().generation
    }

    fn discard(&self, generation: u64, error: &RedisError) {
        let mut current = self.current();
        if current.generation == generation && current.connection.take().is_some() {
            tracing::warn!(server = ?self.server, %error, "the connection is given up");
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Current {
    fn ready(&self) -> Option<(Connection, u64)> {
        self.connection.clone().map(|connection| (connection, self.generation))
    }
}

pub(crate) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Whether the same command may succeed later: the link broke, or the server is on its way up.
pub(crate) fn is_passing(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, ReadOnly, TryAgain};
    match error.kind() {
        _ if is_untrusted(error) => false,
        ErrorKind::Io
        | ErrorKind::ClusterConnectionNotFound
        | ErrorKind::MasterNameNotFoundBySentinel
        | ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | ReadOnly | TryAgain) => true,
        _ => error.is_connection_dropped() || error.is_timeout() || error.code() == Some("BUSY"),
    }
}

/// Whether the server's certificate was refused. The client library and its cluster client wrap that
/// error in different ways; what rustls says stands in all of them.
pub(crate) fn is_untrusted(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::ClusterConnectionNotFound)
        && error.to_string().contains("invalid peer certificate")
}

/// After these the connection is to a server that is gone, silent, or no longer the primary.
fn ends_connection(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_connection_dropped()
        || error.is_timeout()
        || error.is_unrecoverable_error()
        || matches!(
            error.kind(),
            ErrorKind::ClusterConnectionNotFound
                | ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
        )
}
