//! What moves from one store to another, a line of JSON each. `docs/operations.md` describes the form.
//!
//! Who waits does not move: waits are minutes, and people who come back join anew.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The version of the form that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Line {
    /// The first.
    Aiseki {
        /// [`VERSION`].
        version: u32,
        /// When it was written.
        exported_at_ms: u64,
    },
    /// A secret by which session tokens are signed.
    SessionKey(SessionKey),
    /// A topic.
    Topic(Topic),
    /// A ban.
    Ban(Ban),
    /// A conversation with its people.
    Conversation(Conversation),
    /// Two who never meet again.
    Block(Block),
    /// What somebody reported.
    Report(Report),
    /// The last.
    End(End),
}

/// A secret by which session tokens are signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionKey {
    /// By which tokens name it.
    pub number: u32,
    /// In Base64 without padding.
    pub secret: String,
    /// When it was made.
    pub created_at_ms: u64,
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topic {
    /// Its number, which it keeps.
    pub id: i64,
    /// Its title.
    pub title: String,
    /// Whether it is offered.
    pub active: bool,
    /// When it was added.
    pub created_at_ms: u64,
}

/// A ban, of a session or of a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ban {
    /// Its number, which it keeps.
    pub id: i64,
    /// The session, as a UUID.
    #[serde(with = "optional_id")]
    pub session: Option<Uuid>,
    /// The network.
    pub network: Option<String>,
    /// Why.
    pub reason: String,
    /// Since when.
    pub created_at_ms: u64,
    /// Until when; for ever when there is none.
    pub expires_at_ms: Option<u64>,
}

/// A conversation, live while it has no end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// The room's id.
    #[serde(with = "id")]
    pub id: Uuid,
    /// The topic's number.
    pub topic_id: i64,
    /// How many it was formed for.
    pub size: i16,
    /// When it was formed.
    pub created_at_ms: u64,
    /// When it ended.
    pub ended_at_ms: Option<u64>,
    /// Who sat there, by seat.
    pub participants: Vec<Participant>,
}

/// Somebody's seat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    /// Its number in the room, from 1.
    pub seat: i16,
    /// The person, as a UUID.
    #[serde(with = "id")]
    pub session: Uuid,
    /// The room type that was asked for.
    pub requested_size: i16,
    /// Since when.
    pub joined_at_ms: u64,
    /// Until when.
    pub left_at_ms: Option<u64>,
}

/// Two who are never seated together again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Who blocked, as a UUID.
    #[serde(with = "id")]
    pub blocker: Uuid,
    /// Whom.
    #[serde(with = "id")]
    pub blocked: Uuid,
    /// Since when.
    pub created_at_ms: u64,
}

/// What somebody reported, with what was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Its number, which it keeps.
    pub id: i64,
    /// The room's id.
    #[serde(with = "id")]
    pub conversation: Uuid,
    /// Who reported, as a UUID.
    #[serde(with = "id")]
    pub reporter: Uuid,
    /// Who was reported.
    #[serde(with = "id")]
    pub reported: Uuid,
    /// The seat of who was reported.
    pub seat: i16,
    /// Why.
    pub reason: String,
    /// What was said last, as it is kept.
    pub said: serde_json::Value,
    /// When.
    pub created_at_ms: u64,
    /// When an operator looked at it.
    pub judged_at_ms: Option<u64>,
    /// The number of the ban that answered it.
    pub ban: Option<i64>,
}

/// What there was, so that a file that was cut is known, and what numbers were given out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How many session keys.
    pub session_keys: u64,
    /// How many topics.
    pub topics: u64,
    /// How many bans.
    pub bans: u64,
    /// How many conversations.
    pub conversations: u64,
    /// How many blocks; earlier exports have none.
    #[serde(default)]
    pub blocks: u64,
    /// How many reports; earlier exports have none.
    #[serde(default)]
    pub reports: u64,
    /// The highest number that a topic ever had.
    pub last_topic_id: i64,
    /// The highest number that a ban ever had.
    pub last_ban_id: i64,
    /// The highest number that a report ever had.
    #[serde(default)]
    pub last_report_id: i64,
}

impl End {
    /// Counts a line; whether it is one that can be in the middle.
    pub fn count(&mut self, line: &Line) -> bool {
        match line {
            Line::SessionKey(_) => self.session_keys += 1,
            Line::Topic(_) => self.topics += 1,
            Line::Ban(_) => self.bans += 1,
            Line::Conversation(_) => self.conversations += 1,
            Line::Block(_) => self.blocks += 1,
            Line::Report(_) => self.reports += 1,
            Line::Aiseki { .. } | Line::End(_) => return false,
        }
        true
    }

    /// The same counts, whatever the numbers.
    pub fn counts_as(&self, other: &Self) -> bool {
        let counts = |it: &Self| {
            [it.session_keys, it.topics, it.bans, it.conversations, it.blocks, it.reports]
        };
        counts(self) == counts(other)
    }
}

/// Reads a line; the error says in one clause what is wrong with it.
pub fn read(text: &str) -> Result<Line, String> {
    let line =
        serde_json::from_str(text).map_err(|error| format!("is not understood ({error})"))?;
    match line {
        Line::Aiseki { version, .. } if version != VERSION => {
            Err(format!("is of version {version}, and this program reads {VERSION}"))
        }
        line => Ok(line),
    }
}

/// An id as text.
mod id {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};
    use uuid::Uuid;

    pub(super) fn serialize<S: Serializer>(id: &Uuid, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Uuid, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// The same, where there may be none.
mod optional_id {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de::Error as _};
    use uuid::Uuid;

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(id: &Option<Uuid>, to: S) -> Result<S::Ok, S::Error> {
        id.map(|id| id.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Uuid>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let line = Line::Topic(Topic {
            id: 7,
            title: "猫".into(),
            active: true,
            created_at_ms: 1_700_000_000_000,
        });
        let text = serde_json::to_string(&line).unwrap();
        let expected =
            r#"{"topic":{"id":7,"title":"猫","active":true,"created_at_ms":1700000000000}}"#;
        assert_eq!(text, expected);
        assert_eq!(read(&text).unwrap(), line);
        assert!(read(r#"{"aiseki":{"version":2,"exported_at_ms":0}}"#).unwrap_err().contains('2'));
        let end = r#"{"end":{"session_keys":1,"topics":2,"bans":0,"conversations":0,"last_topic_id":2,"last_ban_id":0}}"#;
        assert!(matches!(read(end), Ok(Line::End(End { topics: 2, blocks: 0, .. }))));
        assert!(read("{}").is_err() && read(r#"{"cat":{}}"#).is_err());
    }
}
