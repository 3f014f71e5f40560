//! Reading and writing what scripts answer and take.

use std::fmt::Write as _;

use aiseki_lobby::{
    Change, IdleReason, Kind, Millis, Offer, Policy, Queue, Reservation, Reserved, RoomId, Seat,
    SessionId, State, TicketNumber, TopicId, Waiting,
};
use redis::Value;

use crate::rooms::RoomRules;

/// The answer is not one that the scripts of this version give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an answer of the store is not understood: {0}")]
pub(super) struct Unreadable(&'static str);

type Read<T> = Result<T, Unreadable>;

/// A list, taken from the front.
pub(super) struct Words(std::vec::IntoIter<Value>);

impl Words {
    pub(super) fn of(value: Value) -> Read<Self> {
        match value {
            Value::Array(values) => Ok(Self(values.into_iter())),
            _ => Err(Unreadable("a list was expected")),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    pub(super) fn value(&mut self) -> Read<Value> {
        self.0.next().ok_or(Unreadable("too short a list"))
    }

    pub(super) fn list(&mut self) -> Read<Self> {
        Self::of(self.value()?)
    }

    pub(super) fn text(&mut self) -> Read<String> {
        match self.value()? {
            Value::BulkString(bytes) => {
                String::from_utf8(bytes).map_err(|_| Unreadable("a text was expected"))
            }
            Value::SimpleString(text) => Ok(text),
            Value::Int(number) => Ok(number.to_string()),
            _ => Err(Unreadable("a text was expected")),
        }
    }

    pub(super) fn number<T: std::str::FromStr>(&mut self) -> Read<T> {
        self.text()?.parse().map_err(|_| Unreadable("a number was expected"))
    }

    pub(super) fn session(&mut self) -> Read<SessionId> {
        session(&self.text()?)
    }

    pub(super) fn state(&mut self, policy: &Policy) -> Read<State> {
        match self.text()?.as_str() {
            "idle" if self.is_empty() => Ok(State::Idle(None)),
            "idle" => {
                let reason = reason(&self.text()?)?;
                if self.is_empty() {
                    return Ok(State::Idle(Some(reason)));
                }
                Ok(State::Offered(Offer {
                    room: room(&self.text()?)?,
                    queue: queue(&self.text()?)?,
                    waited: self.number()?,
                    until: self.number()?,
                }))
            }
            "waiting" => {
                let queue = queue(&self.text()?)?;
                let ticket = TicketNumber(self.number()?);
                let (since, ahead) = (self.number::<Millis>()?, self.number()?);
                let has_fallback =
                    policy.room_types.get(queue.room_type).and_then(|it| it.fallback).is_some();
                Ok(State::Waiting(Waiting {
                    queue,
                    ticket,
                    since,
                    ahead,
                    expires_at: since.saturating_add(policy.wait_timeout),
                    fallback_at: has_fallback.then(|| since.saturating_add(policy.fallback_after)),
                }))
            }
            "matched" => Ok(State::Matched(Seat {
                room: room(&self.text()?)?,
                topic: TopicId(self.number()?),
                size: self.number()?,
                requested: self.number()?,
                matched_at: self.number()?,
            })),
            _ => Err(Unreadable("an unknown state")),
        }
    }

    /// What happened in a step.
    pub(super) fn changes(mut self) -> Read<Vec<Change>> {
        let mut changes = Vec::new();
        while !self.is_empty() {
            changes.push(match self.text()?.as_str() {
                "entered" => Change::Entered {
                    session: self.session()?,
                    ticket: TicketNumber(self.number()?),
                    queue: queue(&self.text()?)?,
                    since: self.number()?,
                },
                "dropped" => Change::Dropped {
                    session: self.session()?,
                    ticket: TicketNumber(self.number()?),
                    reason: reason(&self.text()?)?,
                },
                "returned" => Change::Returned {
                    session: self.session()?,
                    ticket: TicketNumber(self.number()?),
                },
                "reserved" => Change::Reserved(reservation(&self.text()?)?),
                "seated" => Change::Seated {
                    room: room(&self.text()?)?,
                    people: self.text()?.split(' ').map(session).collect::<Read<_>>()?,
                },
                "vacated" => {
                    Change::Vacated { room: room(&self.text()?)?, session: self.session()? }
                }
                _ => return Err(Unreadable("an unknown change")),
            });
        }
        Ok(changes)
    }
}

pub(super) fn session(text: &str) -> Read<SessionId> {
    bytes(text).map(SessionId).ok_or(Unreadable("a session was expected"))
}

pub(super) fn room(text: &str) -> Read<RoomId> {
    bytes(text).map(RoomId).ok_or(Unreadable("a room was expected"))
}

/// Sixteen bytes in hexadecimal digits, with dashes or without.
fn bytes(text: &str) -> Option<[u8; 16]> {
    let (mut bytes, mut count) = ([0_u8; 16], 0);
    for digit in text.chars().filter(|each| *each != '-') {
        let digit = u8::try_from(digit.to_digit(16)?).ok()?;
        let byte = bytes.get_mut(count / 2)?;
        *byte = *byte << 4 | digit;
        count += 1;
    }
    (count == 32).then_some(bytes)
}

pub(super) fn queue(text: &str) -> Read<Queue> {
    let parts = text.rsplit_once(':');
    let queue = parts.and_then(|(topic, room_type)| {
        Some(Queue { topic: TopicId(topic.parse().ok()?), room_type: room_type.parse().ok()? })
    });
    queue.ok_or(Unreadable("a queue was expected"))
}

fn reason(word: &str) -> Read<IdleReason> {
    IdleReason::from_word(word).ok_or(Unreadable("an unknown reason"))
}

/// A reservation as `reserve` writes it: a version, room, topic, kind, when it was formed, and for each
/// person session, ticket, requested room type, since.
pub(super) fn reservation(text: &str) -> Read<Reservation> {
    let malformed = Unreadable("a reservation was expected");
    let mut words = text.split(' ');
    let mut next = || words.next().ok_or(malformed);
    if next()? != "1" {
        return Err(Unreadable("a reservation of another version"));
    }
    let number = |text: &str| text.parse::<u64>().map_err(|_| malformed);
    let room = room(next()?)?;
    let topic = TopicId(next()?.parse().map_err(|_| malformed)?);
    let kind = match next()? {
        "full" => Kind::Full,
        "fallback" => Kind::Fallback,
        "merge" => Kind::Merge,
        _ => return Err(malformed),
    };
    let formed_at = number(next()?)?;
    let mut people = Vec::new();
    while let Ok(word) = next() {
        people.push(Reserved {
            session: session(word)?,
            ticket: TicketNumber(number(next()?)?),
            requested: u8::try_from(number(next()?)?).map_err(|_| malformed)?,
            since: number(next()?)?,
        });
    }
    Ok(Reservation { room, topic, kind, formed_at, people })
}

/// The policy as the scripts read it.
pub(super) fn policy(
    policy: &Policy,
    width: Millis,
    untended: Millis,
    rooms: RoomRules,
    rematch_after: Millis,
) -> String {
    let mut text = format!(
        "{} {} {} {} {} {} {width} {untended} {} {} {rematch_after}",
        policy.wait_timeout,
        policy.fallback_after,
        policy.reservation_ttl,
        policy.presence_timeout,
        policy.closed_grace,
        u8::from(policy.merge_fallback),
        rooms.away_timeout.unwrap_or(0),
        u8::from(rooms.rooms),
    );
    for room_type in policy.room_types.iter() {
        let _ = write!(text, " {}:{}", room_type.size, room_type.fallback.unwrap_or(0));
    }
    text
}

/// What stands at each place of a policy, all but the last in milliseconds or as a flag. Places
/// without a name follow from others.
const POLICY: [&str; 11] = [
    "wait_timeout",
    "fallback_after",
    "reservation_ttl",
    "presence_timeout",
    "closed_grace",
    "merge_fallback",
    "",
    "",
    "away_timeout",
    "rooms",
    "rematch_after",
];

/// In what two policies differ, for an operator.
pub(super) fn policies_differ(theirs: &str, ours: &str) -> String {
    let part = |text: &str, name: &str, at: usize| -> String {
        let words = text.split(' ').skip(at);
        match (name, words.clone().next().and_then(|word| word.parse::<Millis>().ok())) {
            ("room_types", _) => words.collect::<Vec<_>>().join(" "),
            ("merge_fallback" | "rooms", Some(flag)) => if flag == 1 { "on" } else { "off" }.into(),
            (_, Some(millis)) => crate::duration::Shown(millis).to_string(),
            (_, None) => "nothing".into(),
        }
    };
    let places = POLICY.into_iter().enumerate().chain([(POLICY.len(), "room_types")]);
    let differing = places.filter(|(_, name)| !name.is_empty()).filter_map(|(at, name)| {
        let (theirs, ours) = (part(theirs, name, at), part(ours, name, at));
        (theirs != ours).then(|| format!("{name}: {theirs} there, {ours} here"))
    });
    differing.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_policies_has_a_name() {
        let (theirs, ours) = (
            "600000 60000 5000 30000 10000 1 200 10000 0 1 0 2:0 3:2",
            "600000 60000 5000 45000 10000 0 200 15000 0 1 0 2:0",
        );
        let text = policies_differ(theirs, ours);
        let expected = "presence_timeout: 30s there, 45s here; merge_fallback: on there, off here; \
                        room_types: 2:0 3:2 there, 2:0 here";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_reservation_is_read_as_it_was_written() -> Read<()> {
        let text = "1 0197b3c4-0000-7000-8000-00000000000a -42 merge 1700000000000 \
                    000000000000000000000000000000ff 7 3 1699999999000 \
                    00000000000000000000000000000001 8 2 1699999999001";
        let read = reservation(text)?;
        assert_eq!(read.room.to_string(), "0197b3c4-0000-7000-8000-00000000000a");
        assert_eq!((read.topic, read.kind, read.size()), (TopicId(-42), Kind::Merge, 2));
        assert_eq!(read.people[0].session.0[15], 0xff);
        assert_eq!((read.people[1].ticket, read.people[1].requested), (TicketNumber(8), 2));
        for broken in ["", "2 x", "1 0197", &text[..90], &text.replace("merge", "odd")] {
            assert!(reservation(broken).is_err(), "{broken}");
        }
        Ok(())
    }

    #[test]
    fn queues_are_read_as_they_were_written() {
        let queue_of = |topic, room_type| Queue { topic: TopicId(topic), room_type };
        assert_eq!(queue("42:3"), Ok(queue_of(42, 3)));
        assert_eq!(queue("-1:8"), Ok(queue_of(-1, 8)));
        for broken in ["", "42", "42:", ":3", "42:3:4x", "42:300"] {
            assert!(queue(broken).is_err(), "{broken}");
        }
    }
}
