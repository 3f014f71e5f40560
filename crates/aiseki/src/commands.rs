//! The command line: a file per subcommand, and what they share.

mod backup;
mod bans;
mod bench;
mod child;
mod client;
mod config;
mod mq;
mod output;
mod queues;
mod reports;
mod rooms;
mod serve;
mod server_url;
mod simulate;
mod topics;

use std::ffi::OsString;
use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{ConfigError, Environment};

/// How a command ended, as its exit code says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The server refused, or something failed.
    Failed = 1,
    /// Wrong usage, or a setting that cannot be used.
    Usage = 2,
    /// No server answers.
    Unreachable = 3,
    /// The admin token is missing or wrong, or the server has none.
    Token = 4,
    /// What was named does not exist.
    Absent = 5,
}

/// Why a command did not do what it should: a line for people, and an exit code for programs.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// One line, without the program's name.
    pub message: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: message.to_string() }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::new(Exit::Usage, error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::new(Exit::Failed, format_args!("{error:#}"))
    }
}

#[derive(Parser)]
#[command(
    name = "aiseki",
    version,
    about = "Seats waiting people together in small rooms, first come, first served",
    after_help = "Without a subcommand the server starts, also with its flags: `aiseki --listen 0.0.0.0:80`.\n\
                  `aiseki serve --help` lists every setting."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
    Config(config::ShowConfig),
    Backup(backup::Backup),
    Bench(bench::Bench),
    BenchEmpty(bench::BenchEmpty),
    Simulate(simulate::Simulate),
    Topics(topics::Topics),
    Bans(bans::Bans),
    Queues(queues::Queues),
    Rooms(rooms::Rooms),
    Reports(reports::Reports),
    Mq(mq::Mq),
}

impl Command {
    fn run(self, environment: &Environment) -> Result<(), Failure> {
        match self {
            Self::Serve(command) => command.run(environment),
            Self::Config(command) => command.run(environment),
            Self::Backup(command) => command.run(environment),
            Self::Bench(command) => command.run(environment),
            Self::BenchEmpty(command) => command.run(),
            Self::Simulate(command) => command.run(environment),
            Self::Topics(command) => command.run(environment),
            Self::Bans(command) => command.run(environment),
            Self::Queues(command) => command.run(environment),
            Self::Rooms(command) => command.run(environment),
            Self::Reports(command) => command.run(environment),
            Self::Mq(command) => command.run(environment),
        }
    }
}

/// Runs the program with these arguments (the first is its name), and says how it ended.
pub fn main(arguments: impl IntoIterator<Item = OsString>, environment: &Environment) -> ExitCode {
    let cli = match Cli::try_parse_from(with_subcommand(arguments.into_iter().collect())) {
        Ok(cli) => cli,
        Err(error) => {
            // Help whose reader has gone needs no further words.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1));
        }
    };
    match cli.command.run(environment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { exit, message }) => {
            let _ = writeln!(std::io::stderr().lock(), "aiseki: {message}");
            ExitCode::from(exit as u8)
        }
    }
}

/// Puts `serve` where a subcommand is missing. Flags of the server thus need no copy at the top, and
/// a mistyped one is answered with the nearest flag of the server.
fn with_subcommand(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let about_the_program = ["-h", "--help", "-V", "--version"];
    let first = arguments.get(1).and_then(|argument| argument.to_str());
    let missing = match first {
        None => arguments.len() < 2,
        Some(first) => first.starts_with('-') && !about_the_program.contains(&first),
    };
    if missing {
        arguments.insert(arguments.len().min(1), "serve".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_server_starts_where_no_subcommand_is_named() {
        let with = |arguments: &[&str]| {
            let arguments = arguments.iter().map(OsString::from).collect();
            let full = with_subcommand(arguments);
            full.into_iter().map(|argument| argument.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(with(&["aiseki"]), ["aiseki", "serve"]);
        assert_eq!(with(&["aiseki", "--listen", "x"]), ["aiseki", "serve", "--listen", "x"]);
        assert_eq!(with(&["aiseki", "--help"]), ["aiseki", "--help"]);
        assert_eq!(with(&["aiseki", "config"]), ["aiseki", "config"]);
    }
}
