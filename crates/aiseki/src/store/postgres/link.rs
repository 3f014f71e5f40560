//! The connections, and the time that everything may take.
//!
//! The limits are one inside the other: a statement gives up waiting for a lock, then the server ends
//! the statement, then the caller is answered, and all of that before the lease of a message about a
//! room ends. So nothing that was given up is still running when somebody else tries again.

use std::error::Error as _;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Connect, Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError,
    RecyclingMethod, Runtime,
};
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Error};

use super::outage::Outage;
use super::url::Address;
use crate::port::Unavailable;

/// For an operation with all its statements and the connection it needs.
pub(super) const DEADLINE: Duration = Duration::from_secs(4);
/// For a new connection, with the server's greeting.
pub(super) const CREATE_TIMEOUT: Duration = Duration::from_secs(3);

/// The first statement on each connection. A lock is waited for for less time than a statement may
/// take, so that the log tells one from the other. A transaction whose server has died is ended soon,
/// because it may hold locks. Plans follow the tables
/// as they grow: one that was made for an empty table and kept would read all of a large one, and every
/// statement of ours has an index to go by.
pub(super) const GREETING: &str = "
    SET statement_timeout = '3s';
    SET lock_timeout = '2s';
    SET idle_in_transaction_session_timeout = '4s';
    SET plan_cache_mode = force_custom_plan;
    SET enable_seqscan = off;
    SET enable_bitmapscan = off;
    SET TimeZone = 'UTC'";

/// The connections of a server.
pub(super) struct Link {
    pool: Pool,
    outage: Outage,
}

/// Why an operation failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The database cannot be asked now; it was logged.
    Away,
    /// It refused what it was asked to write, and would again.
    Refused(Error),
}

/// What can go wrong within an operation.
#[derive(Debug)]
pub(super) enum Cause {
    Sql(Error),
    Connecting(PoolError),
    ReadOnly,
    Overdue,
    Closed,
}

impl Link {
    pub(super) fn new(address: &Address, max_connections: usize) -> Self {
        // A connection that may be out of order is never given back, so none is tried before use.
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let greeted = Greeted(address.clone());
        let pool = Pool::builder(Manager::from_connect(Config::new(), greeted, recycling))
            .max_size(max_connections)
            .runtime(Runtime::Tokio1)
            .create_timeout(Some(CREATE_TIMEOUT))
            .pre_recycle(Hook::sync_fn(|client: &mut ClientWrapper, _| {
                if client.is_closed() { Err(HookError::message("closed")) } else { Ok(()) }
            }))
            .build()
            .expect("a runtime is given");
        Self { pool, outage: Outage::new("database") }
    }

    /// Runs an operation on a connection of its own, within [`DEADLINE`].
    pub(super) async fn run<T>(
        &self,
        what: &'static str,
        operation: impl AsyncFnOnce(&mut Object) -> Result<T, Cause>,
    ) -> Result<T, Failure> {
        self.run_within(DEADLINE, what, operation).await
    }

    pub(super) async fn run_within<T>(
        &self,
        deadline: Duration,
        what: &'static str,
        operation: impl AsyncFnOnce(&mut Object) -> Result<T, Cause>,
    ) -> Result<T, Failure> {
        let result = tokio::time::timeout(deadline, async {
            let mut lease = Lease(Some(self.pool.get().await.map_err(Cause::Connecting)?));
            let result = operation(lease.client()).await;
            if result.as_ref().err().is_none_or(Cause::is_refusal) {
                lease.give_back();
            }
            result
        });
        match result.await.unwrap_or(Err(Cause::Overdue)) {
            Ok(value) => {
                self.outage.succeeded();
                Ok(value)
            }
            Err(Cause::Sql(error)) if is_refusal(&error) => {
                self.outage.succeeded();
                Err(Failure::Refused(error))
            }
            Err(cause) => {
                self.outage.failed(what, &cause);
                if cause.is_of_the_connection() {
                    // The others lead to the same server, and would each have to fail first.
                    self.pool.retain(|_, _| false);
                }
                Err(Failure::Away)
            }
        }
    }

    /// The same for what can only fail because of an outage. Should the database refuse it, that is
    /// somebody's trigger or a fault of ours, and goes to the log.
    pub(super) async fn ask<T>(
        &self,
        what: &'static str,
        operation: impl AsyncFnOnce(&mut Object) -> Result<T, Cause>,
    ) -> Result<T, Unavailable> {
        self.run(what, operation).await.map_err(|failure| {
            if let Failure::Refused(error) = failure {
                tracing::error!(during = what, cause = explain(&error), "the database refused");
            }
            Unavailable
        })
    }

    /// [`DEADLINE`] around several operations.
    pub(super) async fn within<T>(
        &self,
        what: &'static str,
        operations: impl Future<Output = Result<T, Unavailable>>,
    ) -> Result<T, Unavailable> {
        tokio::time::timeout(DEADLINE, operations).await.unwrap_or_else(|_| {
            self.outage.failed(what, &Cause::Overdue);
            Err(Unavailable)
        })
    }

    pub(super) fn available(&self) -> bool {
        !self.outage.lasts()
    }

    pub(super) fn close(&self) {
        self.pool.close();
    }
}

/// Makes connections that know our limits. The pool's own way logs each one that ends, and an outage ends
/// all of them; here the call that fails says so once.
struct Greeted(Address);

impl Connect for Greeted {
    fn connect(&self, _: &Config) -> Connecting<'_> {
        Box::pin(async {
            let (client, connection) = self.0.connect().await?;
            let driver = tokio::spawn(async {
                // Whoever uses the connection is told of its end.
                let _ = connection.await;
            });
            client.batch_execute(GREETING).await?;
            Ok((client, driver))
        })
    }
}

type Connecting<'a> =
    Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + 'a>>;

/// A connection on which something runs. Dropped in the middle of it, because time was up or nobody
/// waits any more, the connection goes too: whatever is on it would be in the way of the next.
struct Lease(Option<Object>);

impl Lease {
    fn client(&mut self) -> &mut Object {
        self.0.as_mut().expect("a lease holds a connection until it is given back")
    }

    fn give_back(&mut self) {
        self.0 = None;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.take().map(Object::take);
    }
}

impl Cause {
    fn is_refusal(&self) -> bool {
        matches!(self, Self::Sql(error) if is_refusal(error))
    }

    /// Not of a statement: of the way to the server, or of the server as a whole.
    fn is_of_the_connection(&self) -> bool {
        match self {
            Self::Sql(error) => error.code().is_none_or(|code| code.code().starts_with("57P")),
            Self::Connecting(_) | Self::Overdue | Self::ReadOnly | Self::Closed => true,
        }
    }
}

impl From<Error> for Cause {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(error) | Self::Connecting(PoolError::Backend(error)) => {
                f.write_str(&explain(error))
            }
            Self::Connecting(error) => write!(f, "{error}"),
            Self::ReadOnly => f.write_str("it can only be read"),
            Self::Closed => f.write_str("the connection was closed"),
            Self::Overdue => f.write_str("no answer in time"),
        }
    }
}

/// Whether the database refused what was to be written, and not to work at all: what it holds does not
/// allow it, or the value itself, or a trigger.
fn is_refusal(error: &Error) -> bool {
    let classes = ["22", "23", "44", "P0"];
    error.code().is_some_and(|code| classes.iter().any(|class| code.code().starts_with(class)))
}

/// Whether somebody holds a seat meanwhile.
pub(super) fn is_taken(error: &Error) -> bool {
    error.code() == Some(&SqlState::UNIQUE_VIOLATION)
}

/// One line with everything that is known about an error, without values.
pub(super) fn explain(error: &Error) -> String {
    match error.as_db_error() {
        Some(error) => {
            let mut text = format!("{} ({})", error.message(), error.code().code());
            if let Some(constraint) = error.constraint() {
                text = format!("{text}, by {constraint}");
            }
            text
        }
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
