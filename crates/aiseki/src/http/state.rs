//! A person's state as JSON.

use aiseki_lobby::{IdleReason, Millis, State};
use serde::Serialize;
use utoipa::ToSchema;

/// How soon somebody without a long poll, stream or socket should ask again, in milliseconds.
const POLL_AFTER_MS: u32 = 2_000;

/// What a person is told about themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub(super) enum StateBody {
    /// Neither waiting nor seated.
    Idle {
        /// Why, for ten minutes: `wait_expired`, `absent`, `left`, `room_closed`, `topic_closed`,
        /// `banned` or `failed`.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'static str>,
        /// A place in a queue that may be taken up again.
        #[serde(skip_serializing_if = "Option::is_none")]
        resume: Option<ResumeBody>,
    },
    /// In a queue.
    Waiting {
        topic_id: i64,
        room_type: u8,
        #[schema(format = DateTime)]
        waiting_since: String,
        #[schema(format = DateTime)]
        expires_at: String,
        /// From when on a smaller room will do, for a room type that has a fallback.
        #[schema(format = DateTime)]
        #[serde(skip_serializing_if = "Option::is_none")]
        fallback_at: Option<String>,
        /// How many people stand before this one, counted up to 1000.
        ahead: usize,
        poll_after_ms: u32,
    },
    /// Seated in a room.
    Matched {
        #[schema(format = "uuid")]
        room_id: String,
        topic_id: i64,
        /// How many people were seated when the room was formed.
        room_type: u8,
        requested_room_type: u8,
        #[schema(format = DateTime)]
        matched_at: String,
    },
}

/// The place that somebody had before a room ended in which others never came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct ResumeBody {
    /// The room; a join that names it as its `resume` takes up the place.
    #[schema(format = "uuid")]
    room_id: String,
    topic_id: i64,
    room_type: u8,
    /// What counts as waited already.
    waited_ms: u64,
    /// Until when the place is kept.
    #[schema(format = DateTime)]
    until: String,
}

impl From<State> for StateBody {
    fn from(state: State) -> Self {
        match state {
            State::Idle(reason) => {
                Self::Idle { reason: reason.map(IdleReason::as_str), resume: None }
            }
            State::Offered(offer) => Self::Idle {
                reason: Some(IdleReason::RoomClosed.as_str()),
                resume: Some(ResumeBody {
                    room_id: offer.room.to_string(),
                    topic_id: offer.queue.topic.0,
                    room_type: offer.queue.room_type,
                    waited_ms: offer.waited,
                    until: timestamp(offer.until),
                }),
            },
            State::Waiting(waiting) => Self::Waiting {
                topic_id: waiting.queue.topic.0,
                room_type: waiting.queue.room_type,
                waiting_since: timestamp(waiting.since),
                expires_at: timestamp(waiting.expires_at),
                fallback_at: waiting.fallback_at.map(timestamp),
                ahead: waiting.ahead,
                poll_after_ms: POLL_AFTER_MS,
            },
            State::Matched(seat) => Self::Matched {
                room_id: seat.room.to_string(),
                topic_id: seat.topic.0,
                room_type: seat.size,
                requested_room_type: seat.requested,
                matched_at: timestamp(seat.matched_at),
            },
        }
    }
}

/// A moment as RFC 3339 in UTC, with milliseconds.
pub(super) fn timestamp(millis: Millis) -> String {
    let moment = i64::try_from(millis)
        .ok()
        .and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok())
        .unwrap_or(jiff::Timestamp::MAX);
    format!("{moment:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_with_milliseconds_in_utc() {
        assert_eq!(timestamp(1_767_323_045_678), "2026-01-02T03:04:05.678Z");
        assert_eq!(timestamp(1_767_323_045_000), "2026-01-02T03:04:05.000Z");
        assert!(timestamp(Millis::MAX).starts_with("9999-12-30T"));
    }
}
