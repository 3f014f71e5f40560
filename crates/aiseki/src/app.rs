//! A placeholder for the wiring, until the server is there.

use crate::config::Config;

/// Waits until the process is ended.
#[expect(clippy::unused_async, reason = "the real one is asynchronous")]
pub async fn serve(config: Config) -> anyhow::Result<()> {
    anyhow::bail!("there is no server on {} yet", config.listen)
}
