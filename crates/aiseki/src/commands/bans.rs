//! `aiseki bans`: who may not join.

use aiseki_lobby::Millis;
use clap::{Args, Subcommand};
use hyper::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::client::{self, Connection};
use super::{Exit, Failure, output};
use crate::clock::Clock;
use crate::config::Environment;
use crate::duration::{self, DAY, SECOND};

/// The longest that `--for` takes; a longer ban has no end.
const LONGEST_BAN: Millis = 3_650 * DAY;

/// List, add and remove the bans of a running server
#[derive(Args)]
#[command(after_help = client::HELP)]
pub(super) struct Bans {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Subcommand)]
enum Action {
    /// List all bans (the default)
    List,
    /// Ban a session or an address; somebody banned who waits is sent away
    Add(Add),
    /// Remove a ban
    Remove {
        /// The ban's number
        #[arg(value_parser = clap::value_parser!(i64).range(1..))]
        id: i64,
    },
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("whom").required(true))]
struct Add {
    /// A session, as `aiseki rooms` shows it, or its token
    #[arg(long, group = "whom")]
    session: Option<String>,

    #[arg(
        long,
        group = "whom",
        help = "An address or a block, such as 203.0.113.7 or 2001:db8::/64"
    )]
    address: Option<String>,

    /// Why; for operators only
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,

    /// How long; without it the ban has no end
    #[arg(long = "for", value_name = "DURATION", value_parser = ban_duration)]
    duration: Option<Millis>,
}

pub(super) fn ban_duration(text: &str) -> Result<Millis, duration::DurationError> {
    duration::parse(text, SECOND..=LONGEST_BAN)
}

#[derive(Deserialize)]
struct All {
    bans: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    id: i64,
    session: Option<String>,
    address: Option<String>,
    reason: String,
    created_at: String,
    expires_at: Option<String>,
}

impl Ban {
    fn whom(&self) -> String {
        match (&self.session, &self.address) {
            (Some(session), _) => format!("session {session}"),
            (None, Some(address)) => format!("address {address}"),
            (None, None) => "nobody".into(),
        }
    }

    fn until(&self) -> &str {
        self.expires_at.as_deref().unwrap_or("no end")
    }
}

impl Bans {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let json = self.connection.json;
        let client = self.connection.client(environment)?;
        let text = match self.action.unwrap_or(Action::List) {
            Action::List => {
                let answer = client.get("/admin/bans")?;
                if json { answer.json() } else { table(answer.read()?) }
            }
            Action::Add(add) => {
                let answer = client.send(&Method::POST, "/admin/bans", Some(&add.body()?))?;
                if json {
                    answer.json()
                } else {
                    let ban: Ban = answer.read()?;
                    let line = format!("ban {}: {}, until {}", ban.id, ban.whom(), ban.until());
                    output::visible(&line.replace("until no end", "without end")) + "\n"
                }
            }
            Action::Remove { id } => {
                let answer = client.send(&Method::DELETE, &format!("/admin/bans/{id}"), None)?;
                if json { answer.json() } else { format!("ban {id} is removed\n") }
            }
        };
        output::print(&text)
    }
}

impl Add {
    fn body(self) -> Result<serde_json::Value, Failure> {
        let mut body = json!({ "reason": self.reason });
        let (member, whom) = match (self.session, self.address) {
            (Some(session), _) => ("session", session),
            (None, address) => ("address", address.unwrap_or_default()),
        };
        body[member] = whom.into();
        if let Some(duration) = self.duration {
            body["expires_at"] = expiry(Clock::start(0).now(), duration)?.into();
        }
        Ok(body)
    }
}

/// The end of a ban in RFC 3339.
pub(super) fn expiry(now: Millis, duration: Millis) -> Result<String, Failure> {
    let end = i64::try_from(now.saturating_add(duration)).ok();
    end.and_then(|end| Timestamp::from_millisecond(end).ok())
        .map(|end| end.to_string())
        .ok_or_else(|| Failure::new(Exit::Usage, "--for ends beyond all calendars"))
}

fn table(All { bans }: All) -> String {
    if bans.is_empty() {
        return "There are no bans.\n".into();
    }
    let rows = bans.into_iter().map(|ban| {
        let (whom, until) = (ban.whom(), ban.until().to_owned());
        [ban.id.to_string(), whom, ban.created_at, until, ban.reason]
    });
    output::table(["ID", "WHOM", "SINCE", "UNTIL", "REASON"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ban_ends_its_duration_after_now() {
        assert_eq!(expiry(1_769_817_599_500, 7 * DAY).unwrap(), "2026-02-06T23:59:59.5Z");
        assert!(expiry(Millis::MAX, DAY).is_err());
    }
}
