//! `aiseki doctor`: what is wrong with the stores, and what to do about it.

use clap::Args;
use serde_json::{Value, json};

use super::{Exit, Failure, output};
use crate::app::Chapter;
use crate::config::{Config, Environment, Flags};
use crate::doctor::Level;

/// Look for what is wrong with the stores, and say what to do
#[derive(Args)]
#[command(after_help = "\
Takes the settings of `aiseki serve` and looks at the same stores, whether or not servers run. It changes \
nothing. Each line says what was found, what it means, and what to do.\n\n\
Exit codes: 0 nothing is wrong, 1 something is, 2 wrong usage or a setting that cannot be used.")]
pub(super) struct Doctor {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    flags: Flags,
}

impl Doctor {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let config = Config::load(&self.flags, environment)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(Exit::Failed, format_args!("no runtime: {error}")))?;
        let chapters = runtime.block_on(crate::app::examine(&config))?;
        let findings = || chapters.iter().flat_map(|chapter| &chapter.findings);
        let wrong = findings().filter(|finding| finding.level == Level::Wrong).count();
        output::print(&if self.json { as_json(&chapters, wrong) } else { as_table(&chapters) })?;
        match wrong {
            0 => Ok(()),
            1 => Err(Failure::new(Exit::Failed, "one thing is wrong")),
            wrong => Err(Failure::new(Exit::Failed, format_args!("{wrong} things are wrong"))),
        }
    }
}

fn as_table(chapters: &[Chapter]) -> String {
    let rows = chapters.iter().flat_map(|chapter| {
        chapter.findings.iter().map(|finding| {
            [
                finding.level.name().to_owned(),
                chapter.store.to_owned(),
                finding.subject.to_owned(),
                finding.text.clone(),
            ]
        })
    });
    output::table(["LEVEL", "STORE", "ABOUT", "FINDING"], rows)
}

fn as_json(chapters: &[Chapter], wrong: usize) -> String {
    let findings: Vec<Value> = chapters
        .iter()
        .flat_map(|chapter| {
            chapter.findings.iter().map(|finding| {
                json!({
                    "level": finding.level.name(),
                    "store": chapter.store,
                    "subject": finding.subject,
                    "text": finding.text,
                })
            })
        })
        .collect();
    format!("{}\n", json!({ "wrong": wrong, "findings": findings }))
}
