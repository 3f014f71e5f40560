//! What the ports to the stores have in common.

use std::future::Future;
use std::pin::Pin;

/// What a store will have answered.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Unavailable>> + Send + 'a>>;

/// The store cannot be asked now. Nothing was changed, or the same call may safely be repeated.
///
/// The cause was logged where it occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store is away")]
pub struct Unavailable;
