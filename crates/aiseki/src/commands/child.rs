//! A server of our own as a process of its own, in a directory that goes with it.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use super::server_url::ServerUrl;
use crate::app::Offline;
use crate::config::{Config, Environment};

/// Opening a file with a million people in it may take a while.
const READY: Duration = Duration::from_mins(1);
const END: Duration = Duration::from_secs(10);
/// What a server logs when it can be reached.
const LISTENING: &str = "listening on ";

/// A directory that is removed when it is dropped.
pub(super) struct Temporary(PathBuf);

impl Temporary {
    pub(super) fn new() -> anyhow::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("aiseki-{}-{count}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => bail!("{}: {error}", path.display()),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running server.
pub(super) struct Served {
    process: Child,
    pub(super) url: ServerUrl,
    pub(super) pid: u32,
}

/// Its people are few, come again and again, and only sit there.
const OFF: [&str; 5] = ["--rate-limit", "off", "--rematch-after", "off", "--no-rooms"];

/// Starts a server of our own with so many topics, in a directory that goes with it: limits off,
/// without rooms to talk in (its people only sit there), and with these flags beside.
pub(super) async fn serve(
    directory: &Temporary,
    topics: usize,
    flags: &[&str],
) -> anyhow::Result<Served> {
    let mut config = Config { data_dir: directory.path().join("data"), ..Config::default() };
    config.rate_limits = None;
    let offline = Offline::open(&config).await?;
    for number in 1..=topics {
        offline.add_topic(format!("話題 {number}")).await?;
    }
    offline.close().await;
    serve_again(directory, flags).await
}

/// The same on what is there already.
pub(super) async fn serve_again(directory: &Temporary, flags: &[&str]) -> anyhow::Result<Served> {
    let fixed = ["serve", "--listen", "127.0.0.1:0", "--data-dir", "data", "--no-demo"];
    let arguments = [&fixed[..], &OFF, flags].concat();
    start(directory.path(), &arguments).await
}

/// Starts this program with these arguments, and waits until it can be reached. It is given no
/// environment and no configuration file but what stands in the arguments.
pub(super) async fn start(directory: &Path, arguments: &[&str]) -> anyhow::Result<Served> {
    start_program(&std::env::current_exe()?, directory, arguments).await
}

async fn start_program(
    program: &Path,
    directory: &Path,
    arguments: &[&str],
) -> anyhow::Result<Served> {
    let mut process = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{} does not start", program.display()))?;
    let pid = process.id().context("the server ended at once")?;
    let log = process.stderr.take().context("the server has no log")?;
    let mut log = BufReader::new(log).lines();
    let url = timeout(READY, listening(&mut log)).await.context("the server is not ready")??;
    // A log that nobody reads would stop whoever writes it.
    tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
    Ok(Served { process, url, pid })
}

async fn listening(log: &mut Lines<BufReader<ChildStderr>>) -> anyhow::Result<ServerUrl> {
    let mut last = String::from("it said nothing");
    while let Some(line) = log.next_line().await? {
        if let Some((_, rest)) = line.split_once(LISTENING) {
            let url = rest.split_whitespace().next().unwrap_or_default();
            return ServerUrl::find(Some(url), &Environment::default())
                .map_err(|failure| anyhow::anyhow!(failure.message));
        }
        last = line;
    }
    bail!("the server ended before it could be reached: {last}")
}

impl Served {
    /// Ends it as an operator would.
    pub(super) async fn stop(mut self) {
        if let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        if timeout(END, self.process.wait()).await.is_err() {
            let _ = self.process.kill().await;
        }
    }
}
