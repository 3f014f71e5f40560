//! `aiseki mq doctor`.

use aiseki_mq::doctor::{
    Finding, Level, examine_plain, examine_queue, examine_server, examine_streams,
};
use aiseki_mq::{Budgets, Plain, QueueName, Streams};
use clap::Args;
use serde_json::{Value, json};

use super::{At, Engine, Exit, Failure, Limits, failed, output};
use crate::config::Environment;

/// Look for what is wrong with a server and a queue, and say what can be lost
#[derive(Args)]
#[command(after_help = "Exit codes: 0 nothing is wrong, 1 something is, 2 wrong usage.")]
pub(super) struct Doctor {
    /// A queue to look into as well
    queue: Option<String>,

    #[command(flatten)]
    at: At,
}

impl Doctor {
    pub(super) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let server = self.at.server(environment)?;
        let mut findings = examine_server(&server).await.map_err(failed)?;
        if let Some(queue) = &self.queue {
            let examined = match self.at.engine {
                Engine::Lists => {
                    let queue = self.at.lists(queue, Limits::default(), environment)?;
                    examine_queue(&queue).await
                }
                Engine::Plain => {
                    let queue = Plain::new(&server, queue, Budgets::default()).map_err(failed)?;
                    examine_plain(&queue).await
                }
                Engine::Streams => {
                    let name = QueueName::new(queue).map_err(failed)?;
                    examine_streams(&Streams::new(&server, &name, Budgets::default())).await
                }
            };
            findings.extend(examined.map_err(failed)?);
        }
        let wrong = findings.iter().filter(|finding| finding.level == Level::Wrong).count();
        let json = json!({
            "wrong": wrong,
            "findings": findings.iter().map(as_json).collect::<Vec<_>>(),
        });
        self.at.print(&json, || {
            let rows = findings.iter().map(|finding| {
                [finding.level.name().to_owned(), finding.subject.to_owned(), finding.text.clone()]
            });
            output::table(["LEVEL", "ABOUT", "FINDING"], rows)
        })?;
        if wrong > 0 {
            let things = if wrong == 1 { "one thing is" } else { "several things are" };
            return Err(Failure::new(Exit::Failed, format_args!("{things} wrong")));
        }
        Ok(())
    }
}

fn as_json(finding: &Finding) -> Value {
    json!({
        "level": finding.level.name(),
        "subject": finding.subject,
        "text": finding.text,
    })
}
