//! When a publish counts as done.

use std::time::Duration;

use redis::{Cmd, Pipeline, RedisError, Value};
use tokio::sync::Mutex;

use crate::answer;
use crate::error::{Error, Result};
use crate::link::{is_passing, is_unknown_script};
use crate::script::Script;
use crate::server::{Connection, Server, late};

/// When a publish counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When the server has it in memory; the server's persistence then does what it is set to.
    #[default]
    Memory,
    /// When so many replicas have it too (`WAIT`).
    Replicas {
        /// How many.
        count: u32,
        /// How long to wait for them.
        within: Duration,
    },
    /// When the server's append-only file is synced to disk (`WAITAOF`, Redis 7.2 and later and
    /// Valkey).
    Fsync {
        /// How long to wait for it.
        within: Duration,
    },
}

/// A connection of its own for publishes that wait: the wait is about what this connection wrote,
/// and holds up whatever else would be sent on it.
pub(crate) struct DurableLink {
    server: Server,
    connection: Mutex<Option<Connection>>,
}

impl DurableLink {
    pub(crate) fn new(server: Server) -> Self {
        Self { server, connection: Mutex::new(None) }
    }

    /// Runs a script and waits until what it wrote is durable.
    pub(crate) async fn run(
        &self,
        durability: Durability,
        script: &Script,
        call: &Cmd,
    ) -> Result<Value> {
        let mut place = self.connection.lock().await;
        let mut connection = match place.take() {
            Some(connection) => connection,
            None => self.server.connect().await?,
        };
        let (confirm, within) = match durability {
            Durability::Memory => (None, Duration::ZERO),
            Durability::Replicas { count, within } => {
                (Some(confirmation("WAIT", &[u64::from(count)], within)), within)
            }
            Durability::Fsync { within } => {
                require_waitaof(&mut connection).await?;
                (Some(confirmation("WAITAOF", &[1, 0], within)), within)
            }
        };
        let Some(confirm) = confirm else {
            return Err(Error::Unsupported("nothing to wait for".to_owned()));
        };
        let limit = self.server.timeouts().response + within;
        let mut command = call.clone();
        loop {
            let mut pipeline = Pipeline::new();
            pipeline.add_command(command).add_command(confirm.clone());
            let answers = tokio::time::timeout(limit, connection.send_all(&pipeline)).await;
            let mut answers = answers.map_err(|_| late("a durable publish"))??.into_iter();
            let (Some(done), Some(confirmed)) = (answers.next(), answers.next()) else {
                return Err(Error::Answer("two answers were expected"));
            };
            match done.extract_error() {
                Err(error) if is_unknown_script(&error) => command = script.in_full(call),
                Err(error) => {
                    if !is_passing(&error) {
                        *place = Some(connection);
                    }
                    return Err(error.into());
                }
                Ok(done) => {
                    *place = Some(connection);
                    return check(durability, confirmed).map(|()| done);
                }
            }
        }
    }
}

fn confirmation(verb: &str, numbers: &[u64], within: Duration) -> Cmd {
    let mut command = redis::cmd(verb);
    // Zero would wait for ever.
    let limit = u64::try_from(within.as_millis()).unwrap_or(u64::MAX).max(1);
    command.arg(numbers).arg(limit);
    command
}

/// A server without WAITAOF must refuse before anything is published.
async fn require_waitaof(connection: &mut Connection) -> Result<()> {
    let mut ask = redis::cmd("COMMAND");
    ask.arg("INFO").arg("WAITAOF");
    let known = answer::list(connection.send(&ask).await?)?;
    if matches!(known.first(), Some(Value::Array(_))) {
        return Ok(());
    }
    Err(Error::Unsupported(
        "this server cannot say when its log is on disk: WAITAOF needs Redis 7.2 or Valkey 8. \
         Nothing was published"
            .to_owned(),
    ))
}

fn check(durability: Durability, confirmed: Value) -> Result<()> {
    let confirmed = confirmed.extract_error();
    match durability {
        Durability::Memory => Ok(()),
        Durability::Replicas { count, within } => {
            let (confirmed, wanted) = (answer::count(&confirmed?)?, u64::from(count));
            let what = "replicas";
            if confirmed >= wanted {
                Ok(())
            } else {
                Err(Error::NotDurable { what, confirmed, wanted, within })
            }
        }
        Durability::Fsync { within } => {
            let local = match confirmed {
                Ok(Value::Array(answers)) => answer::count(answers.first().unwrap_or(&Value::Nil)),
                Ok(_) => Err(Error::Answer("two numbers were expected")),
                Err(error) => Err(no_log(&error)),
            }?;
            if local >= 1 {
                return Ok(());
            }
            Err(Error::NotDurable { what: "local logs", confirmed: local, wanted: 1, within })
        }
    }
}

fn no_log(error: &RedisError) -> Error {
    Error::Unsupported(format!("published, but this server keeps no log to sync: {error}"))
}
