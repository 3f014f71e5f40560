//! `aiseki backup`: a copy of the embedded store.

use std::path::PathBuf;

use clap::Args;

use super::{Exit, Failure, output};
use crate::config::{Config, Environment, Flags};

/// Copy the embedded store into a file, while the server runs
#[derive(Args)]
#[command(after_help = "\
The copy holds everything up to one moment: places, rooms, topics, bans, and the secret by which sessions are \
signed, so that only its owner may read it. The server goes on meanwhile, or need not run at all.\n\n\
To use a copy, put it as aiseki.db into an empty directory and start the server with that --data-dir.\n\n\
Exit codes: 0 the copy is complete, 1 there is none, 2 wrong usage or a setting that cannot be used.")]
pub(super) struct Backup {
    /// The file to make; one that is there is never replaced
    file: PathBuf,

    /// The server's directory [default: that of the settings, ./aiseki-data]
    #[arg(long, value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,

    /// The configuration file [default: ./aiseki.toml, when it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
}

impl Backup {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let data_dir = match self.data_dir {
            Some(directory) => directory,
            None => Config::load(&Flags::of_operator(self.config, None), environment)?.data_dir,
        };
        let bytes = crate::app::backup(&data_dir, &self.file)
            .map_err(|error| Failure::new(Exit::Failed, format_args!("{error:#}")))?;
        output::print(&format!(
            "{}: {bytes} bytes\n",
            output::visible(&self.file.to_string_lossy())
        ))
    }
}
