//! `aiseki serve`: the server.

use std::io::{self, IsTerminal as _};

use anyhow::Context as _;
use clap::Args;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer as _, Registry, fmt};

use super::Failure;
use crate::config::{Config, Environment, Flags, LogFormat};

/// Start the server
#[derive(Args)]
#[command(after_help = "\
Each flag is also a variable (AISEKI_WAIT_TIMEOUT for --wait-timeout) and a key of the configuration file, \
which is TOML (wait_timeout = \"5m\"). A flag beats the variable, which beats the file; the file is --config, \
or AISEKI_CONFIG, or ./aiseki.toml when it exists. `aiseki config` shows what applies and why.\n\n\
Durations are a whole number and a unit: 1500ms, 300s, 5m, 2h, 1d.\n\n\
Exit codes: 0 shut down as asked, 1 something failed, 2 wrong usage or a setting that cannot be used.")]
pub(super) struct Serve {
    #[command(flatten)]
    flags: Flags,
}

impl Serve {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let config = Config::load(&self.flags, environment)?;
        start_log(&config, environment)?;
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the runtime does not start")?;
        Ok(runtime.block_on(crate::app::serve(config))?)
    }
}

/// Sends the log to standard error. Colours are for a terminal whose user does not refuse them.
fn start_log(config: &Config, environment: &Environment) -> anyhow::Result<()> {
    let layer = match config.log_format {
        LogFormat::Json => fmt::layer().with_writer(io::stderr).json().boxed(),
        LogFormat::Text => {
            let colours = io::stderr().is_terminal() && !environment.no_color();
            fmt::layer().with_writer(io::stderr).with_ansi(colours).boxed()
        }
    };
    let subscriber = Registry::default().with(layer.with_filter(config.log.targets().clone()));
    tracing::subscriber::set_global_default(subscriber).context("the log does not start")
}
