//! What operators can do over HTTP.

pub(super) mod bans;
pub(super) mod queues;
pub(super) mod reports;
pub(super) mod rooms;
pub(super) mod topics;

use super::error::{Code, Problem};

/// A number in a path; anything else names nothing.
fn number(text: &str) -> Result<i64, Problem> {
    text.parse().map_err(|_| Problem::new(Code::NotFound))
}
