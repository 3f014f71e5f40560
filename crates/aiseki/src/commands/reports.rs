//! `aiseki reports`: what people reported.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::bans::{ban_duration, expiry};
use super::client::{self, Client, Connection};
use super::{Failure, output};
use crate::clock::Clock;
use crate::config::Environment;
use aiseki_lobby::Millis;

/// List, show and judge what people reported
#[derive(Args)]
#[command(after_help = client::HELP)]
pub(super) struct Reports {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Subcommand)]
enum Action {
    /// List the newest reports that nobody has judged (the default)
    List(List),
    /// Show a report with what was said
    Show(One),
    /// Mark a report as judged, without a ban
    Judge(One),
    /// Ban whom a report is about, and mark it as judged
    Ban(Ban),
}

#[derive(Args, Default)]
struct List {
    /// Also those that were judged
    #[arg(long)]
    all: bool,

    /// Only those older than this one, for the next page
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(i64).range(1..))]
    after: Option<i64>,
}

#[derive(Args)]
struct One {
    /// The report's number
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    id: i64,
}

#[derive(Args)]
struct Ban {
    #[command(flatten)]
    report: One,

    /// Why; the reason of the report if it is left out
    #[arg(long)]
    reason: Option<String>,

    /// How long; without it the ban has no end
    #[arg(long = "for", value_name = "DURATION", value_parser = ban_duration)]
    duration: Option<Millis>,
}

#[derive(Deserialize)]
struct Page {
    reports: Vec<Report>,
    next: Option<i64>,
}

#[derive(Deserialize)]
struct Report {
    id: i64,
    room_id: String,
    seat: u8,
    session: String,
    reporter: String,
    reason: String,
    created_at: String,
    judged_at: Option<String>,
    ban_id: Option<i64>,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    seat: u8,
    text: String,
    at: String,
}

impl Reports {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let json = self.connection.json;
        let client = self.connection.client(environment)?;
        let text = match self.action.unwrap_or(Action::List(List::default())) {
            Action::List(List { all, after }) => {
                let after = after.map(|id| format!("&after={id}")).unwrap_or_default();
                let answer =
                    client.get(&format!("/admin/reports?limit=100&open={}{after}", !all))?;
                if json { answer.json() } else { table(answer.read()?) }
            }
            Action::Show(One { id }) => {
                let answer = client.get(&format!("/admin/reports/{id}"))?;
                if json { answer.json() } else { shown(&answer.read()?) }
            }
            Action::Judge(One { id }) => judge(&client, id, &json!({}), json)?,
            Action::Ban(Ban { report: One { id }, reason, duration }) => {
                let mut ban = json!({ "reason": reason });
                if let Some(duration) = duration {
                    ban["expires_at"] = expiry(Clock::start(0).now(), duration)?.into();
                }
                judge(&client, id, &json!({ "ban": ban }), json)?
            }
        };
        output::print(&text)
    }
}

fn judge(client: &Client, id: i64, body: &Value, json: bool) -> Result<String, Failure> {
    let route = format!("/admin/reports/{id}/judge");
    let answer = client.send(&Method::POST, &route, Some(body))?;
    if json {
        return Ok(answer.json());
    }
    let report: Report = answer.read()?;
    let line = format!("report {id}: {}", verdict(&report));
    Ok(output::visible(&line) + "\n")
}

fn verdict(report: &Report) -> String {
    match (&report.judged_at, report.ban_id) {
        (None, _) => "open".into(),
        (Some(at), None) => format!("judged {at}"),
        (Some(at), Some(ban)) => format!("judged {at}, ban {ban} of session {}", report.session),
    }
}

fn table(Page { reports, next }: Page) -> String {
    if reports.is_empty() {
        return "There are no such reports.\n".into();
    }
    let rows = reports.into_iter().map(|report| {
        let verdict = match (report.judged_at.is_some(), report.ban_id) {
            (false, _) => "open".into(),
            (true, None) => "judged".into(),
            (true, Some(ban)) => format!("ban {ban}"),
        };
        let messages = report.messages.len().to_string();
        [report.id.to_string(), report.created_at, report.session, verdict, messages, report.reason]
    });
    let mut text = output::table(["ID", "WHEN", "SESSION", "STATE", "MESSAGES", "REASON"], rows);
    if let Some(next) = next {
        let _ = writeln!(text, "There are more: --after {next}");
    }
    text
}

/// Everything about a report. What people wrote is shown so that it cannot be taken for a line of ours.
fn shown(report: &Report) -> String {
    let mut text = format!("report {}, {}\n", report.id, verdict(report));
    let _ = writeln!(text, "made {} by session {}", report.created_at, report.reporter);
    let Report { room_id, seat, session, .. } = report;
    let _ = writeln!(text, "about seat {seat} of room {room_id}, session {session}");
    let _ = writeln!(text, "reason: {}", output::visible(&report.reason));
    if report.messages.is_empty() {
        text.push_str("Nothing was said, or the room had ended.\n");
    }
    for Message { seat, text: said, at } in &report.messages {
        let _ = writeln!(text, "{at}  seat {seat}: {}", output::visible(said));
    }
    text
}
