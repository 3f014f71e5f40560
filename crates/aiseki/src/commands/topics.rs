//! `aiseki topics`: what people can choose to talk about.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use hyper::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::client::{self, Answer, Client, Connection};
use super::{Failure, output};
use crate::config::Environment;

/// List, add and change the topics of a running server
#[derive(Args)]
#[command(after_help = client::HELP)]
pub(super) struct Topics {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Subcommand)]
enum Action {
    /// List all topics and how many people wait for each room type (the default)
    List,
    /// Add a topic; people can choose it at once
    Add {
        /// What people see
        title: String,
        /// Do not let people choose it yet
        #[arg(long)]
        inactive: bool,
    },
    /// Change a topic; what is not named stays as it is
    #[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
    Set {
        /// The topic's number
        #[arg(value_parser = clap::value_parser!(i64).range(1..))]
        id: i64,
        /// What people see
        #[arg(long, group = "change")]
        title: Option<String>,
        /// Let people choose it
        #[arg(long, group = "change", conflicts_with = "inactive")]
        active: bool,
        /// Let nobody choose it, and send away who waits for it
        #[arg(long, group = "change")]
        inactive: bool,
    },
}

#[derive(Deserialize)]
struct All {
    topics: Vec<Topic>,
}

#[derive(Deserialize)]
struct Topic {
    id: i64,
    title: String,
    active: bool,
    /// People by room type; absent from the answer to a change.
    #[serde(default)]
    waiting: BTreeMap<String, u64>,
}

impl Topics {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let json = self.connection.json;
        let client = self.connection.client(environment)?;
        let text = match self.action.unwrap_or(Action::List) {
            Action::List => {
                let answer = client.get("/admin/topics")?;
                if json { answer.json() } else { table(answer.read()?) }
            }
            Action::Add { title, inactive } => {
                let body = json!({ "title": title, "active": !inactive });
                show(&client.send(&Method::POST, "/admin/topics", Some(&body))?, json)?
            }
            Action::Set { id, title, active, inactive } => {
                let active = (active || inactive).then_some(active);
                show(&set(&client, id, title, active)?, json)?
            }
        };
        output::print(&text)
    }
}

/// Sends only what changes.
fn set(
    client: &Client,
    id: i64,
    title: Option<String>,
    active: Option<bool>,
) -> Result<Answer, Failure> {
    let mut body = Map::new();
    body.extend(title.map(|title| ("title".to_owned(), Value::from(title))));
    body.extend(active.map(|active| ("active".to_owned(), Value::from(active))));
    client.send(&Method::PUT, &format!("/admin/topics/{id}"), Some(&body.into()))
}

fn show(answer: &Answer, json: bool) -> Result<String, Failure> {
    if json {
        return Ok(answer.json());
    }
    let Topic { id, title, active, .. } = answer.read()?;
    let state = if active { "active" } else { "inactive" };
    Ok(format!("topic {id} ({state}): {}\n", output::visible(&title)))
}

fn table(All { topics }: All) -> String {
    if topics.is_empty() {
        return "There are no topics.\n".into();
    }
    let rows = topics.into_iter().map(|topic| {
        let active = if topic.active { "yes" } else { "no" };
        [topic.id.to_string(), active.into(), waiting(&topic.waiting), topic.title]
    });
    output::table(["ID", "ACTIVE", "WAITING", "TITLE"], rows)
}

/// `2:14 3:0`
fn waiting(by_room_type: &BTreeMap<String, u64>) -> String {
    let parts: Vec<_> =
        by_room_type.iter().map(|(room_type, people)| format!("{room_type}:{people}")).collect();
    parts.join(" ")
}
