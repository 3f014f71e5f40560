//! `aiseki export` and `aiseki import`: from one machine to many.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{Exit, Failure, output};
use crate::app::{self, Origin};
use crate::config::{Asked, Config, Environment, Flags};

/// Write what the embedded store holds as lines of JSON, for `aiseki import`
#[derive(Args)]
#[command(after_help = "\
Session keys, topics, bans, conversations with their people, blocks and reports, as they were at one moment. The server goes on \
meanwhile, or need not run at all; what comes after that moment is not in the export, so stop it first when you \
move. Who waits is not in it. The file holds the secret by which sessions are signed, so that only its owner may \
read it; one that is there is never replaced.\n\n\
Exit codes: 0 the export is complete, 1 there is none, 2 wrong usage or a setting that cannot be used.")]
pub(super) struct Export {
    /// The file to make, or - for standard output
    file: PathBuf,

    /// The server's directory, or that of a backup [default: that of the settings, ./aiseki-data]
    #[arg(long, value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,

    /// The configuration file [default: ./aiseki.toml, when it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
}

impl Export {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let data_dir = match self.data_dir {
            Some(directory) => directory,
            None => Config::load(&Flags::of_operator(self.config, None), environment)?.data_dir,
        };
        if self.file == Path::new("-") {
            app::export(&data_dir, &mut BufWriter::new(io::stdout().lock()))?;
            return Ok(());
        }
        let refused = |error: io::Error| {
            let text = match error.kind() {
                io::ErrorKind::AlreadyExists => "is there already: choose another name".to_owned(),
                _ => error.to_string(),
            };
            Failure::new(Exit::Failed, format_args!("{}: {text}", self.file.display()))
        };
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.file);
        let file = file.map_err(&refused)?;
        let exported = app::export(&data_dir, &mut BufWriter::new(&file))
            .map_err(Failure::from)
            .and_then(|end| file.sync_all().map(|()| end).map_err(&refused));
        // Half an export is none.
        let end = exported.inspect_err(|_| drop(fs::remove_file(&self.file)))?;
        output::print(&format!(
            "{}: {} topics, {} bans, {} conversations, {} blocks, {} reports\n",
            output::visible(&self.file.to_string_lossy()),
            end.topics,
            end.bans,
            end.conversations,
            end.blocks,
            end.reports
        ))
    }
}

/// Bring an export into the PostgreSQL of many servers
#[derive(Args)]
#[command(after_help = "\
Do it before the first server starts on that database: topics, bans and session keys keep their numbers, and an \
import that meets something else under one of them changes nothing and says so. The tables are made if need be. \
Doing it twice changes nothing. Live conversations stay live, and people's tokens stay valid.\n\n\
Exit codes: 0 everything is there, 1 nothing was imported, 2 wrong usage or a setting that cannot be used.")]
pub(super) struct Import {
    /// The export, or - for standard input
    #[arg(required_unless_present = "from")]
    file: Option<PathBuf>,

    /// Take the embedded store of this directory instead, in one step
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "file")]
    from: Option<PathBuf>,

    /// The database [default: that of the settings]
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,

    /// The file that holds what --database-url would say
    #[arg(long, value_name = "FILE", conflicts_with = "database_url")]
    database_url_file: Option<String>,

    /// The configuration file [default: ./aiseki.toml, when it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
}

impl Import {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let flags = Flags::of_import(self.config, self.database_url, self.database_url_file);
        let Some(url) = Asked::gather(&flags, environment)?.database_url()? else {
            return Err(Failure::new(
                Exit::Usage,
                "no database: name it with --database-url, AISEKI_DATABASE_URL or \
                 AISEKI_DATABASE_URL_FILE",
            ));
        };
        let origin = match (self.from, self.file) {
            (Some(directory), _) => Origin::Store(directory),
            (None, Some(file)) if file != Path::new("-") => {
                let opened = File::open(&file).map_err(|error| {
                    Failure::new(Exit::Failed, format_args!("{}: {error}", file.display()))
                })?;
                Origin::Lines(Box::new(BufReader::new(opened)))
            }
            _ => Origin::Lines(Box::new(BufReader::new(io::stdin()))),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(Exit::Failed, format_args!("no runtime: {error}")))?;
        let done = runtime.block_on(app::import(origin, url.expose()))?;
        let (added, read) = (&done.added, &done.read);
        output::print(&format!(
            "session keys: {} of {} new\ntopics: {} of {} new\nbans: {} of {} new\n\
             conversations: {} of {} new\nblocks: {} of {} new\nreports: {} of {} new\n",
            added.session_keys,
            read.session_keys,
            added.topics,
            read.topics,
            added.bans,
            read.bans,
            added.conversations,
            read.conversations,
            added.blocks,
            read.blocks,
            added.reports,
            read.reports
        ))
    }
}
