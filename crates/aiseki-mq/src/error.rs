//! What can go wrong.

use std::time::Duration;

/// The answer of every operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation was not done, or was not known to be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The queue is as long as it may be. Nothing was published.
    #[error("the queue is full: nothing was published")]
    Full,
    /// The server has no memory left for new messages. Nothing was published; workers go on.
    #[error("the server is out of memory: nothing was published")]
    OutOfMemory,
    /// A payload is over the queue's limit. Nothing was sent.
    #[error("a payload of {size} bytes is over the limit of {limit}")]
    PayloadTooLarge {
        /// Its size in bytes.
        size: usize,
        /// The queue's limit in bytes.
        limit: usize,
    },
    /// The server, or the engine, cannot do what was asked for. Nothing was done.
    #[error("{0}")]
    Unsupported(String),
    /// The messages are in the queue, but not as durable as asked for: too few replicas have them,
    /// or the log was not synced, within the time given.
    #[error("published, but {confirmed} of {wanted} {what} confirmed it within {within:?}")]
    NotDurable {
        /// `replicas` or `local logs`.
        what: &'static str,
        /// How many confirmed.
        confirmed: u64,
        /// How many were asked for.
        wanted: u64,
        /// The time given.
        within: Duration,
    },
    /// An argument makes no sense: an id with control characters, a URL without a host.
    #[error("{0}")]
    Invalid(String),
    /// The server could not be reached, did not answer in time, or refused a command. Every
    /// operation of the `lists` engine may be repeated as it was: nothing is done twice.
    #[error("the server: {0}")]
    Server(#[source] redis::RedisError),
    /// The server showed a certificate that is not trusted, or is not its own. Trying again does
    /// not help: the authority must be named ([`Server::with_root_certificate`]).
    ///
    /// [`Server::with_root_certificate`]: crate::Server::with_root_certificate
    #[error(
        "the server's certificate is not trusted; name its authority if it has one of its own: {0}"
    )]
    Untrusted(#[source] redis::RedisError),
    /// The server's answer is not one that this crate's scripts give.
    #[error("the server's answer is not understood: {0}")]
    Answer(&'static str),
}

impl Error {
    /// Whether the same call may succeed later without anybody changing anything.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Full | Self::OutOfMemory | Self::NotDurable { .. } => true,
            Self::Server(error) => crate::link::is_passing(error),
            _ => false,
        }
    }

    /// The same for several who had the same call.
    pub(crate) fn copy(&self) -> Self {
        match self {
            Self::Server(error) => Self::Server(error.clone()),
            Self::Untrusted(error) => Self::Untrusted(error.clone()),
            Self::Answer(what) => Self::Answer(what),
            other => Self::Unsupported(other.to_string()),
        }
    }
}

impl From<redis::RedisError> for Error {
    fn from(error: redis::RedisError) -> Self {
        if crate::link::is_untrusted(&error) { Self::Untrusted(error) } else { Self::Server(error) }
    }
}

/// Shorthand for an argument that makes no sense.
pub(crate) fn invalid<T>(text: impl Into<String>) -> Result<T> {
    Err(Error::Invalid(text.into()))
}
