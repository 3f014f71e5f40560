//! Whoever holds a connection open is present.

use std::sync::Arc;
use std::time::Duration;

use aiseki_lobby::{SessionId, Sign};
use tokio::sync::mpsc;

use crate::matching::Matching;
use crate::port::Unavailable;
use crate::push::Push;
use crate::rooms::{RoomHub, Rooms};

/// People touched in one call to the store.
const TOUCHED_AT_ONCE: usize = 1000;

/// People who hold a connection open are present, and those who closed it are soon not.
pub(super) async fn keep_present(
    matching: Matching,
    push: Arc<Push>,
    every: Duration,
    mut closings: mpsc::UnboundedReceiver<SessionId>,
) {
    let mut interval = tokio::time::interval(every);
    let mut closed = Vec::new();
    loop {
        let touched = tokio::select! {
            _ = interval.tick() => touch_all(&matching, &push).await,
            count = closings.recv_many(&mut closed, TOUCHED_AT_ONCE) => match count {
                0 => return,
                _ => matching.touch(std::mem::take(&mut closed), Sign::Closed).await,
            },
        };
        // While the store is away nobody is dropped, and afterwards presence starts anew.
        let _ = touched;
    }
}

/// Whoever has a connection to a room open is here, also after the store was away.
pub(super) async fn keep_in_rooms(rooms: Option<Rooms>) {
    let Some(rooms) = rooms else { return };
    let mut interval = tokio::time::interval(RoomHub::RENEW_EVERY);
    loop {
        interval.tick().await;
        // While the store is away nobody loses a seat, and the next round tells it again.
        let _ = rooms.renew().await;
    }
}

async fn touch_all(matching: &Matching, push: &Push) -> Result<(), Unavailable> {
    let connected = push.connected();
    for some in connected.chunks(TOUCHED_AT_ONCE) {
        matching.touch(some.to_vec(), Sign::Present).await?;
    }
    Ok(())
}
