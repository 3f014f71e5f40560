//! What a step did is counted, and those whom it is about are told.

use std::time::Duration;

use aiseki_lobby::Change;

use crate::metrics::Metrics;
use crate::push::Push;

/// Counts what happened.
pub(super) fn count(metrics: &Metrics, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Entered { .. } => metrics.joined(),
            Change::Reserved(reservation) => {
                let waited = |since: u64| reservation.formed_at.saturating_sub(since);
                let waits = reservation.people.iter().map(|person| waited(person.since));
                metrics.room_formed(reservation.kind.as_str(), waits.map(Duration::from_millis));
            }
            Change::Dropped { reason, .. } => metrics.wait_dropped(reason.as_str()),
            Change::Ended { .. } => metrics.room_ended(),
            Change::Returned { .. } | Change::Seated { .. } | Change::Vacated { .. } => {}
        }
    }
}

/// Tells those whose state has changed.
pub(super) fn announce(push: &Push, change: &Change) {
    match change {
        Change::Entered { session, .. }
        | Change::Dropped { session, .. }
        | Change::Returned { session, .. }
        | Change::Vacated { session, .. } => push.announce(*session),
        Change::Seated { people, .. } | Change::Ended { people, .. } => {
            for session in people {
                push.announce(*session);
            }
        }
        // Nobody is told of a room before it is written.
        Change::Reserved(_) => {}
    }
}
