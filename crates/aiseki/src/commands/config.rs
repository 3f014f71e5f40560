//! `aiseki config`: what was decided, and where each value came from.

use std::io::Write as _;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Failure, output};
use crate::config::{
    Asked, Config, Environment, Flags, Form, Given, Role, SETTINGS, Setting, Source, markdown_table,
};

/// Show the settings that apply, and where each comes from
#[derive(Args)]
#[command(after_help = "\
Takes the flags of `aiseki serve`, reads the same variables and the same file, and starts nothing. \
Secrets are never shown.\n\n\
Exit codes: 0 the settings can be used, 2 they cannot (one line says why).")]
pub(super) struct ShowConfig {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,

    /// Print the table of settings for the README
    #[arg(long, hide = true)]
    markdown: bool,

    #[command(flatten)]
    flags: Flags,
}

impl ShowConfig {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        if self.markdown {
            return output::print(&markdown_table());
        }
        let asked = Asked::gather(&self.flags, environment)?;
        let config = Config::decide(&asked)?;
        let text = if self.json { as_json(&asked, &config)? } else { as_table(&asked, &config) };
        output::print(&text)?;
        for warning in config.warnings.iter().filter(|_| !self.json) {
            let _ = writeln!(std::io::stderr().lock(), "aiseki: warning: {warning}");
        }
        Ok(())
    }
}

/// The settings that exist in this version.
fn settings() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter()
}

fn as_table(asked: &Asked, config: &Config) -> String {
    let rows = settings().map(|setting| {
        let given = asked.given(setting);
        let value = match (setting.shown(config), given) {
            (Some(shown), _) if shown.is_empty() => "(none)".into(),
            (Some(shown), _) => shown,
            (None, Some(_)) => "(hidden)".into(),
            (None, None) => "(none)".into(),
        };
        let from = given.map_or("default".into(), |given| given.source.to_string());
        [setting.name.into(), value, from]
    });
    output::table(["SETTING", "VALUE", "FROM"], rows)
}

/// What `--json` prints.
#[derive(Serialize)]
struct Shown<'a> {
    file: Option<String>,
    settings: Vec<ShownSetting>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct ShownSetting {
    name: &'static str,
    /// Null for secrets, an array for lists, else the text that would be read.
    value: Value,
    secret: bool,
    from: Value,
}

fn as_json(asked: &Asked, config: &Config) -> anyhow::Result<String> {
    let shown = Shown {
        file: asked.file().map(|path| path.display().to_string()),
        settings: settings()
            .map(|setting| ShownSetting {
                name: setting.name,
                value: json_value(setting, config),
                secret: setting.role == Role::Secret,
                from: json_source(asked.given(setting)),
            })
            .collect(),
        warnings: &config.warnings,
    };
    Ok(serde_json::to_string_pretty(&shown)? + "\n")
}

fn json_value(setting: &Setting, config: &Config) -> Value {
    match (setting.shown(config), setting.form) {
        (None, _) => Value::Null,
        (Some(shown), Form::List(_)) if shown.is_empty() => json!([]),
        (Some(shown), Form::List(_)) => shown.split(',').collect(),
        (Some(shown), _) => Value::String(shown),
    }
}

fn json_source(given: Option<&Given>) -> Value {
    match given.map(|given| &given.source) {
        None => json!({ "kind": "default" }),
        Some(Source::Flag(name)) => json!({ "kind": "flag", "name": name }),
        Some(Source::Variable(name)) => json!({ "kind": "environment", "name": name }),
        Some(Source::File { path, key, line }) => {
            let path = path.display().to_string();
            json!({ "kind": "file", "name": key, "path": path, "line": line })
        }
    }
}
