//! What is said on the socket of a room, as JSON.

use serde::{Deserialize, Serialize};

use crate::http::state::timestamp;
use crate::rooms::{BadText, Event, Member, Said, SeatState, Welcome, check_id, check_text};

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Say { id: String, text: String },
    Typing,
    Leave,
}

/// What was wrong with a frame. The words are part of the public contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ErrorCode {
    InvalidFrame,
    TooLong,
    TooFast,
    Unavailable,
}

impl ErrorCode {
    /// The word of the public contract.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::InvalidFrame => "invalid_frame",
            Self::TooLong => "too_long",
            Self::TooFast => "too_fast",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A frame as it comes: members that another kind of frame has may be missing.
#[derive(Deserialize)]
struct Raw {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    text: Option<String>,
}

impl Asked {
    /// Reads a frame, or says what is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, (ErrorCode, &'static str)> {
        let invalid = |detail| (ErrorCode::InvalidFrame, detail);
        // The library would also take an array of the members in their order.
        if !text.trim_start().starts_with('{') {
            return Err(invalid("A frame is a JSON object."));
        }
        let raw: Raw = serde_json::from_str(text)
            .map_err(|_| invalid("A frame is a JSON object with a type and texts."))?;
        match (raw.kind.as_str(), raw.id, raw.text) {
            ("typing", ..) => Ok(Self::Typing),
            ("leave", ..) => Ok(Self::Leave),
            ("say", Some(id), Some(text)) => {
                if !check_id(&id) {
                    return Err(invalid("An id has 1 to 64 characters, none of control."));
                }
                match check_text(&text) {
                    Ok(()) => Ok(Self::Say { id, text }),
                    Err(BadText::TooLong) => {
                        Err((ErrorCode::TooLong, "A text has at most 2000 characters."))
                    }
                    Err(BadText::Invalid) => Err(invalid(
                        "A text is not blank, and its only control characters are \
                                     line feeds and tabs.",
                    )),
                }
            }
            ("say", ..) => Err(invalid("A say has an id and a text.")),
            _ => Err(invalid("There are no frames of this type.")),
        }
    }
}

/// What a client is told.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum RoomFrame<'a> {
    Welcome {
        room_id: &'a str,
        room_type: usize,
        me: u8,
        seats: Vec<SeatFrame>,
        history: Vec<RoomFrame<'a>>,
    },
    Said {
        seq: u64,
        seat: u8,
        text: &'a str,
        at: String,
        id: &'a str,
    },
    Typing {
        seat: u8,
    },
    Here {
        seat: u8,
    },
    Away {
        seat: u8,
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<String>,
    },
    Left {
        seat: u8,
    },
    Closed {
        reason: &'static str,
    },
    Error {
        code: ErrorCode,
        detail: &'static str,
    },
}

/// A seat in a welcome.
#[derive(Serialize)]
pub(super) struct SeatFrame {
    seat: u8,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

impl From<&Member> for SeatFrame {
    fn from(member: &Member) -> Self {
        let (state, until) = match member.state {
            SeatState::Here => ("here", None),
            SeatState::Away { until } => ("away", until.map(timestamp)),
            SeatState::Left(_) => ("left", None),
        };
        Self { seat: member.seat, state, until }
    }
}

impl<'a> RoomFrame<'a> {
    pub(super) fn welcome(room_id: &'a str, welcome: &'a Welcome) -> Self {
        let Welcome { me, seats, history } = welcome;
        Self::Welcome {
            room_id,
            room_type: seats.len(),
            me: *me,
            seats: seats.iter().map(SeatFrame::from).collect(),
            history: history.iter().map(|said| Self::said(said)).collect(),
        }
    }

    fn said(said: &'a Said) -> Self {
        let Said { seq, seat, text, at, id, .. } = said;
        Self::Said { seq: *seq, seat: *seat, text, at: timestamp(*at), id }
    }
}

impl<'a> From<&'a Event> for RoomFrame<'a> {
    fn from(event: &'a Event) -> Self {
        match event {
            Event::Said(said) => Self::said(said),
            Event::Typing(seat) => Self::Typing { seat: *seat },
            Event::Seat(seat, SeatState::Here) => Self::Here { seat: *seat },
            Event::Seat(seat, SeatState::Away { until }) => {
                Self::Away { seat: *seat, until: until.map(timestamp) }
            }
            Event::Seat(seat, SeatState::Left(_)) => Self::Left { seat: *seat },
            Event::Closed(why) | Event::Dismissed(why) => Self::Closed { reason: why.as_str() },
        }
    }
}
