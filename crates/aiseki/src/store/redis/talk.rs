//! The live side of rooms: what is said, who is here. See `lua/parts/talk.lua` for the keys.

use std::sync::Arc;
use std::time::Duration;

use aiseki_lobby::{RoomId, SessionId};
use aiseki_mq::{Heard, Script, Server, Subscription};
use redis::Cmd;

use super::calls::{When, unreadable};
use super::words::{self, Unreadable, Words};
use super::{Inner, RedisStore, scripts};
use crate::port::{Pending, Unavailable};
use crate::rate_limit::Limited;
use crate::rooms::{
    Appended, Attendance, Closing, Line, Member, NotSaid, RoomHub, Said, SeatState, Signal,
};
use crate::shared::{Log, LogPage, RoomLog};

/// A connection that was not renewed for so long has ended.
const KEPT: Duration = RoomHub::RENEW_EVERY.saturating_mul(3);
/// People looked at in one sweep, at most, and in how many ms another server may act instead.
const SWEEP: (usize, u64) = (100, 5_000);
/// A pause before the next try to listen.
const PAUSE: Duration = Duration::from_millis(250);

impl Inner {
    fn talk(&self, script: &Script) -> Cmd {
        script.on(&[self.keys.state().to_owned()])
    }

    fn away(&self) -> u64 {
        self.room_rules.away_timeout.unwrap_or(0)
    }

    async fn attendance(&self, word: &str, connections: &[Attendance]) -> Result<(), Unavailable> {
        let mut call = self.talk(&scripts::TALK_ATTEND);
        call.arg(self.time()).arg(word).arg(u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX));
        call.arg(self.away());
        for each in connections {
            call.arg(each.room.to_string()).arg(each.session.to_string()).arg(each.connection);
        }
        self.run(&scripts::TALK_ATTEND, &call, When::There).await.map(|_| ())
    }
}

impl RoomLog for RedisStore {
    fn view(&self, room: RoomId) -> Pending<'_, Log> {
        Box::pin(async move {
            let mut call = self.inner.talk(&scripts::TALK_VIEW);
            call.arg(self.inner.time()).arg(room.to_string());
            let mut words = self.inner.run(&scripts::TALK_VIEW, &call, When::There).await?;
            view(&mut words, self.inner.room_rules.rooms).map_err(unreadable)
        })
    }

    fn append(&self, line: Line) -> Pending<'_, Result<Appended, NotSaid>> {
        Box::pin(async move {
            let limit = self.inner.room_rules.message_limit;
            let mut call = self.inner.talk(&scripts::TALK_APPEND);
            call.arg(self.inner.time()).arg(line.room.to_string()).arg(line.session.to_string());
            call.arg(line.id).arg(line.text);
            call.arg(limit.map_or(0, |limit| limit.burst)).arg(limit.map_or(0, |limit| limit.per));
            let mut words = self.inner.run(&scripts::TALK_APPEND, &call, When::There).await?;
            let read = |words: &mut Words| {
                Ok(match words.text()?.as_str() {
                    "said" => Ok(Appended { seq: words.number()?, new: true }),
                    "repeated" => Ok(Appended { seq: words.number()?, new: false }),
                    "limited" => Err(NotSaid::TooFast(Limited { retry_after: words.number()? })),
                    _ => Err(NotSaid::NotSeated),
                })
            };
            read(&mut words).map_err(unreadable)
        })
    }

    fn read(&self, room: RoomId, after: u64, limit: usize) -> Pending<'_, LogPage> {
        Box::pin(async move {
            let mut call = self.inner.talk(&scripts::TALK_READ);
            // Lua counts to 2^53; no log is longer.
            call.arg(room.to_string()).arg(after.min(1 << 52)).arg(limit);
            let mut words = self.inner.run(&scripts::TALK_READ, &call, When::There).await?;
            let read = |words: &mut Words| {
                let mut page = LogPage { last: words.number()?, said: Vec::new() };
                while !words.is_empty() {
                    let (seq, seat) = (words.number()?, words.number()?);
                    let (at, id, text) = (words.number()?, words.text()?, words.text()?);
                    page.said.push(Arc::new(Said { room, seq, seat, id, text, at }));
                }
                Ok(page)
            };
            read(&mut words).map_err(unreadable)
        })
    }

    fn attend(&self, connections: Vec<Attendance>) -> Pending<'_, ()> {
        Box::pin(async move { self.inner.attendance("open", &connections).await })
    }

    fn depart(&self, connection: Attendance) -> Pending<'_, ()> {
        Box::pin(async move { self.inner.attendance("ended", &[connection]).await })
    }

    fn typing(&self, room: RoomId, seat: u8) -> Pending<'_, ()> {
        Box::pin(async move {
            let mut command = redis::cmd("SPUBLISH");
            command.arg(self.inner.keys.talk()).arg(format!("t {room} {seat}"));
            self.inner.query(&command).await.map(|_| ())
        })
    }

    fn overdue(&self) -> Pending<'_, Vec<(RoomId, Option<SessionId>)>> {
        Box::pin(async move {
            let mut call = self.inner.talk(&scripts::TALK_SWEEP);
            call.arg(self.inner.time()).arg(self.inner.away()).arg(SWEEP.0).arg(SWEEP.1);
            let mut words = self.inner.run(&scripts::TALK_SWEEP, &call, When::There).await?;
            let read = |words: &mut Words| {
                let mut list = Vec::new();
                while !words.is_empty() {
                    let room = words::room(&words.text()?)?;
                    let session = words.text()?;
                    let session = (!session.is_empty()).then(|| words::session(&session));
                    list.push((room, session.transpose()?));
                }
                Ok(list)
            };
            read(&mut words).map_err(unreadable)
        })
    }
}

fn view(words: &mut Words, rooms: bool) -> Result<Log, Unreadable> {
    let mut members = Vec::new();
    for seat in 1_u8.. {
        if words.is_empty() {
            break;
        }
        let session = words.text()?;
        if session == "ended" {
            return Ok(Log::None(Closing::from_word(&words.text()?)));
        }
        let (left, here) = (words.text()?, words.number::<u8>()? == 1);
        let away = words.text()?;
        // A seat whose person was never seated here has no session.
        let Ok(session) = words::session(&session) else { continue };
        let state = match Closing::from_word(&left) {
            Some(why) => SeatState::Left(why),
            None if here || !rooms => SeatState::Here,
            None => SeatState::Away { until: away.parse().ok() },
        };
        members.push(Member { seat, session, state });
    }
    Ok(Log::Live(members))
}

/// Listens for ever to what is new in rooms.
pub(super) async fn listen(inner: Arc<Inner>, server: Server) {
    let channel = inner.keys.talk();
    loop {
        match Subscription::new(&server, &channel).await {
            Ok(mut subscription) => {
                // What was said before this moment was not heard here.
                (inner.listeners.room)(None);
                while let Heard::Message(text) = subscription.next().await {
                    match hear(&text) {
                        Some(news) => (inner.listeners.room)(Some(news)),
                        None => tracing::warn!("news of a room are not understood here"),
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "news of rooms cannot be heard"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn hear(text: &[u8]) -> Option<(RoomId, Signal)> {
    let text = std::str::from_utf8(text).ok()?;
    let (kind, rest) = text.split_once(' ')?;
    let mut words = rest.splitn(6, ' ');
    let room = words::room(words.next()?).ok()?;
    let signal = match kind {
        "c" => Signal::Changed,
        "t" => Signal::Typing(words.next()?.parse().ok()?),
        "s" => {
            let seq = words.next()?.parse().ok()?;
            let seat = words.next()?.parse().ok()?;
            let at = words.next()?.parse().ok()?;
            let length = words.next()?.parse().ok()?;
            let (id, text) = words.next()?.split_at_checked(length)?;
            let (id, text) = (id.to_owned(), text.to_owned());
            Signal::Said(Arc::new(Said { room, seq, seat, id, text, at }))
        }
        _ => return None,
    };
    Some((room, signal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_heard_as_they_were_told() {
        let room = "0197b3c4-0000-7000-8000-00000000000a";
        let said = hear(format!("s {room} 7 2 99 4 a b 猫 が\nいる").as_bytes());
        let Some((_, Signal::Said(said))) = said else { panic!("{said:?}") };
        assert_eq!((said.seq, said.seat, said.at), (7, 2, 99));
        assert_eq!((said.id.as_str(), said.text.as_str()), ("a b ", "猫 が\nいる"));
        assert!(matches!(hear(format!("c {room}").as_bytes()), Some((_, Signal::Changed))));
        assert!(matches!(hear(format!("t {room} 3").as_bytes()), Some((_, Signal::Typing(3)))));
        for broken in ["", "s", "s x", &format!("s {room} 7 2 99 400 a"), &format!("x {room}")] {
            assert!(hear(broken.as_bytes()).is_none(), "{broken}");
        }
    }
}
