//! Calls of scripts, and what all of them have in common.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use aiseki_lobby::{Millis, SessionId, State};
use aiseki_mq::{Error, Script};
use redis::Cmd;

use super::keys::queue_name;
use super::scripts;
use super::words::{Unreadable, Words};
use super::{Inner, TIMEOUTS, UNKNOWN};
use crate::clock::Stopwatch;
use crate::matching::{Entered, Join, NotEntered, TurnedAway};
use crate::port::Unavailable;
use crate::rate_limit::{AddressGroup, Limited};
use crate::shared::Entry;

/// Somebody joins, and what the door said.
pub(super) type JoinCall = (Join, Option<TurnedAway>);

/// How often it is said that memory is short.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// Which calls are sent while the store is known to be away.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Only while it is there: everybody else is told at once.
    There,
    /// Always: these find out whether it is back.
    Always,
}

impl Inner {
    /// A script of people, with what each of them begins with.
    pub(super) fn step(&self, script: &Script) -> Cmd {
        let mut call = script.on(&self.keys.lobby);
        call.arg(self.deadline()).arg(&self.policy_text).arg(entropy());
        call
    }

    /// The time for scripts: a test's, or nothing for the server's.
    pub(super) fn time(&self) -> String {
        let time = self.virtual_time.as_ref();
        time.map_or_else(String::new, |now| now.load(Ordering::SeqCst).to_string())
    }

    /// Until when a step may be done that is sent now: a command that lay in some buffer, or in front of
    /// a server that stood still, must not be done after its caller was told that it failed. The
    /// store's clock is known from its last answer, and never thought to be ahead of what it is.
    fn deadline(&self) -> String {
        let ahead = self.ahead.load(Ordering::Acquire);
        if self.virtual_time.is_some() || ahead == UNKNOWN {
            return self.time();
        }
        let limit = u64::try_from(TIMEOUTS.operation.as_millis()).unwrap_or(u64::MAX);
        format!("<{}", self.clock.now().saturating_add_signed(ahead).saturating_add(limit))
    }

    /// Runs a step and tells what happened in it. Answers what follows after the changes.
    pub(super) async fn run_step(
        &self,
        script: &Script,
        call: &Cmd,
        when: When,
    ) -> Result<Words, Unavailable> {
        let mut words = self.run(script, call, when).await?;
        let read = |words: &mut Words| {
            let now = words.number::<Millis>()?;
            Ok((now, words.list()?.changes()?))
        };
        let (now, changes) = read(&mut words).map_err(unreadable)?;
        self.set_time(now);
        if !changes.is_empty() {
            (self.listeners.changes)(&changes);
        }
        Ok(words)
    }

    /// Runs a script.
    pub(super) async fn run(
        &self,
        script: &Script,
        call: &Cmd,
        when: When,
    ) -> Result<Words, Unavailable> {
        if when == When::There && !self.available.load(Ordering::Acquire) {
            return Err(Unavailable);
        }
        match self.link.run(script, call).await {
            Ok(value) => {
                self.set_available(true);
                Words::of(value).map_err(unreadable)
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Runs a command.
    pub(super) async fn query(&self, command: &Cmd) -> Result<redis::Value, Unavailable> {
        self.link.query(command).await.map_err(|error| self.failed(&error))
    }

    /// Notes a word about the store as a whole, for so many milliseconds, also when memory is short;
    /// false when there was one already that stays.
    pub(super) async fn note(
        &self,
        key: &str,
        word: &str,
        lasts: Option<Millis>,
        stays: bool,
    ) -> Result<bool, Unavailable> {
        let mut call = scripts::SET.on(&[key.to_owned()]);
        call.arg(word).arg(lasts.map(|lasts| lasts.to_string()).unwrap_or_default());
        call.arg(u8::from(stays));
        let mut words = self.run(&scripts::SET, &call, When::Always).await?;
        Ok(words.number::<u8>().map_err(unreadable)? == 1)
    }

    /// Notes and logs why something could not be done.
    pub(super) fn failed(&self, error: &Error) -> Unavailable {
        if let Some(now) = late(error) {
            // Its clock has jumped, or the call was under way for too long.
            self.set_time(now);
            tracing::warn!("a call came too late to Redis and was not done");
        } else if is_short_of_memory(error) {
            let mut said = self.short_of_memory.lock().unwrap_or_else(PoisonError::into_inner);
            if said.is_none_or(|said| said.elapsed() >= SAID_EVERY) {
                *said = Some(Stopwatch::start());
                tracing::error!("Redis has no memory left: joins are refused until it has");
            }
        } else if error.is_passing() {
            if self.set_available(false) {
                tracing::warn!(%error, "Redis is away");
            }
        } else {
            tracing::error!(%error, "Redis refused a call");
        }
        Unavailable
    }

    /// Notes whether the store answers, and answers whether that is news.
    fn set_available(&self, available: bool) -> bool {
        let before = self.available.swap(available, Ordering::AcqRel);
        if available && !before {
            tracing::info!("Redis answers");
        }
        before != available
    }

    fn set_time(&self, now: Millis) {
        let ahead = now.cast_signed() - self.clock.now().cast_signed();
        self.ahead.store(ahead, Ordering::Release);
    }
}

/// The time of a server that has refused a call because it came too late.
fn late(error: &Error) -> Option<Millis> {
    match error {
        Error::Server(error) if error.code() == Some("LATE") => error.detail()?.trim().parse().ok(),
        _ => None,
    }
}

/// The server is at its `maxmemory`.
fn is_short_of_memory(error: &Error) -> bool {
    match error {
        Error::OutOfMemory => true,
        Error::Server(error) => error.code() == Some("OOM"),
        _ => false,
    }
}

pub(super) fn unreadable(error: Unreadable) -> Unavailable {
    tracing::error!(%error, "perhaps servers of different versions share this namespace");
    Unavailable
}

/// The last sixteen digits of a version 4 or 7 UUID, with its variant.
fn entropy() -> String {
    let mut random = [0; 8];
    getrandom::fill(&mut random).expect("the operating system gives random bytes");
    format!("{:016x}", u64::from_be_bytes(random) >> 2 | 1 << 63)
}

pub(super) async fn enter(
    inner: Arc<Inner>,
    joins: Vec<JoinCall>,
) -> Result<Vec<Result<Entry, NotEntered>>, Unavailable> {
    let mut call = inner.step(&scripts::ENTER);
    call.arg(match inner.rate_limits {
        None => "0 0 0 0".to_owned(),
        Some(limits) => format!(
            "{} {} {} {}",
            limits.session.burst, limits.session.per, limits.address.burst, limits.address.per
        ),
    });
    for (join, door) in &joins {
        let door = door.map_or("", |why| match why {
            TurnedAway::Banned => "banned",
            TurnedAway::UnknownTopic => "unknown_topic",
            TurnedAway::InactiveTopic => "inactive_topic",
        });
        call.arg(join.session.to_string()).arg(queue_name(join.queue));
        call.arg(join.address.to_string()).arg(AddressGroup::from(join.address).to_string());
        call.arg(door).arg(join.resume.map(|room| room.to_string()).unwrap_or_default());
    }
    let mut words = inner.run_step(&scripts::ENTER, &call, When::There).await?;
    let read = |words: &mut Words| {
        let mut replies = words.list()?;
        let known = words.number::<u8>()? == 1;
        joins.iter().map(|_| entry(&inner, replies.list()?, known)).collect::<Result<Vec<_>, _>>()
    };
    read(&mut words).map_err(unreadable)
}

fn entry(
    inner: &Inner,
    mut reply: Words,
    seats_known: bool,
) -> Result<Result<Entry, NotEntered>, Unreadable> {
    let policy = &inner.policy;
    Ok(match reply.text()?.as_str() {
        word @ ("entered" | "reserved") => {
            let entered = Entered { state: reply.state(policy)? };
            Ok(Entry { entered, reserved: word == "reserved", seats_known })
        }
        "limited" => Err(NotEntered::RateLimited(Limited { retry_after: reply.number()? })),
        "already" => Err(match reply.state(policy)? {
            state @ State::Matched(_) => NotEntered::AlreadyMatched(state),
            state => NotEntered::AlreadyWaiting(state),
        }),
        _ => Err(NotEntered::TurnedAway(match reply.text()?.as_str() {
            "banned" => TurnedAway::Banned,
            "inactive_topic" => TurnedAway::InactiveTopic,
            _ => TurnedAway::UnknownTopic,
        })),
    })
}

pub(super) async fn poll(
    inner: Arc<Inner>,
    people: Vec<SessionId>,
) -> Result<Vec<State>, Unavailable> {
    states(&inner, &scripts::POLL, &people).await
}

/// What a script answers that takes people and gives their states.
pub(super) async fn states(
    inner: &Inner,
    script: &Script,
    people: &[SessionId],
) -> Result<Vec<State>, Unavailable> {
    let mut call = inner.step(script);
    for session in people {
        call.arg(session.to_string());
    }
    let mut words = inner.run_step(script, &call, When::There).await?;
    let read = |words: &mut Words| {
        let mut replies = words.list()?;
        people.iter().map(|_| replies.list()?.state(&inner.policy)).collect::<Result<Vec<_>, _>>()
    };
    read(&mut words).map_err(unreadable)
}

pub(super) async fn cancel(
    inner: Arc<Inner>,
    people: Vec<SessionId>,
) -> Result<Vec<Result<(), State>>, Unavailable> {
    let mut call = inner.step(&scripts::CANCEL);
    for session in &people {
        call.arg(session.to_string());
    }
    let mut words = inner.run_step(&scripts::CANCEL, &call, When::There).await?;
    let read = |words: &mut Words| {
        let mut replies = words.list()?;
        people.iter().map(|_| cancelled(&inner, replies.list()?)).collect::<Result<Vec<_>, _>>()
    };
    read(&mut words).map_err(unreadable)
}

fn cancelled(inner: &Inner, mut reply: Words) -> Result<Result<(), State>, Unreadable> {
    Ok(match reply.text()?.as_str() {
        "cancelled" => Ok(()),
        _ => Err(reply.state(&inner.policy)?),
    })
}
