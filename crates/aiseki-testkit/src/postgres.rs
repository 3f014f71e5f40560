//! One PostgreSQL server of a test's own.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::scratch::{Scratch, free_port};
use crate::wait::eventually_blocking;
use crate::warden::Warden;

const START_DEADLINE: Duration = Duration::from_secs(30);
const START_ATTEMPTS: usize = 5;
/// Where Debian keeps the programs of each version.
const PROGRAMS: &str = "/usr/lib/postgresql";
/// PostgreSQL refuses to run as root; the package brings this account.
const ACCOUNT: &str = "postgres";

/// What a server is started with.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Whether commits wait for the disk.
    pub fsync: bool,
    /// Further settings, such as `max_connections=20`.
    pub settings: Vec<String>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self { fsync: true, settings: Vec::new() }
    }
}

/// A running server; it ends with this value, and with the run in any case. Everybody on this machine
/// may connect as `postgres` without a password, for as long as it lives.
#[derive(Debug)]
pub struct Postgres {
    warden: Option<Warden>,
    options: PostgresOptions,
    programs: PathBuf,
    port: u16,
    databases: AtomicU32,
    scratch: Scratch,
}

impl Postgres {
    /// A server whose commits wait for the disk.
    pub fn start() -> Result<Self> {
        Self::with(PostgresOptions::default())
    }

    /// A server whose commits do not wait for the disk, for tests that stop no machine.
    pub fn without_fsync() -> Result<Self> {
        Self::with(PostgresOptions { fsync: false, ..PostgresOptions::default() })
    }

    /// The server that all tests of this process share, each with a [`Postgres::fresh_database`] of its
    /// own. Its commits do not wait for the disk, and nobody stops it.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        // It is never dropped: its warden ends it with the process.
        SHARED.get_or_init(|| Self::without_fsync().expect("PostgreSQL starts"))
    }

    /// A server started with these options.
    pub fn with(options: PostgresOptions) -> Result<Self> {
        let programs = programs()?;
        let scratch = Scratch::new("postgres")?;
        let template = template(&programs)?;
        copy(&template, &scratch.path().join("data"))?;
        let databases = AtomicU32::new(0);
        let mut server = Self { warden: None, options, programs, port: 0, databases, scratch };
        // Between choosing a port and binding it, another process may take it: choose again.
        for _ in 0..START_ATTEMPTS {
            server.port = free_port()?;
            if server.start_again().is_ok() {
                return Ok(server);
            }
        }
        let log = fs::read_to_string(server.scratch.path().join("server.log"));
        bail!("the server does not start: {}", log.unwrap_or_default())
    }

    /// Starts the server on the same port and files, after [`Postgres::stop`] or
    /// [`Postgres::stop_immediate`].
    pub fn start_again(&mut self) -> Result<()> {
        let data = self.data();
        let mut arguments = ["-D", &data.display().to_string()].map(str::to_owned).to_vec();
        let mut settings = vec![
            // Tests that share the server have a pool each.
            "max_connections=300".to_owned(),
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            "unix_socket_directories=".to_owned(),
            "logging_collector=off".to_owned(),
        ];
        if !self.options.fsync {
            // Commits still reach the kernel, so that stopping the server loses none of them.
            let careless = ["fsync=off", "full_page_writes=off"];
            settings.extend(careless.map(str::to_owned));
        }
        settings.extend(self.options.settings.iter().cloned());
        arguments.extend(settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]));
        let (program, arguments) = unprivileged(&self.programs.join("postgres"), arguments);
        // SIGQUIT lets the server take its own processes and shared memory with it.
        let warden = Warden::ending_with("QUIT", &program, &arguments, self.scratch.path())?;
        let id = warden.server_id();
        let gone = PathBuf::from(format!("/proc/{id}/exe"));
        self.warden = Some(warden);
        let mut ready = false;
        eventually_blocking(START_DEADLINE, || {
            ready = status(&data) == Some((id, "ready".to_owned()));
            // A server that has ended has no program any more.
            ready || fs::read_link(&gone).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
        });
        if ready {
            return Ok(());
        }
        self.warden = None;
        bail!("the server is not ready")
    }

    /// Stops the server in order; connections are ended, what was committed is on the disk.
    pub fn stop(&mut self) {
        if let Some(warden) = &self.warden {
            warden.signal(Signal::INT);
            eventually_blocking(START_DEADLINE, || status(&self.data()).is_none());
        }
        self.warden = None;
    }

    /// Stops the server as if it had crashed: nothing is finished, and the next start recovers.
    pub fn stop_immediate(&mut self) {
        self.thaw();
        self.warden = None;
    }

    /// Stops the server in order and starts it again.
    pub fn restart(&mut self) -> Result<()> {
        self.stop();
        self.start_again()
    }

    /// Freezes the server and all its processes: connections stay open and nothing is answered.
    pub fn freeze(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Ends [`Postgres::freeze`].
    pub fn thaw(&self) {
        self.signal_all(Signal::CONT);
    }

    fn signal_all(&self, signal: Signal) {
        let Some(warden) = &self.warden else { return };
        // The parent first, so that it starts no process that would be missed.
        warden.signal(signal);
        let id = warden.server_id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        for child in children.unwrap_or_default().split_whitespace() {
            if let Some(child) = child.parse().ok().and_then(Pid::from_raw) {
                let _ = kill_process(child, signal);
            }
        }
    }

    /// `postgres://…` of the database that is always there.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// Makes an empty database and returns its URL.
    pub fn fresh_database(&self) -> Result<String> {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        // A test's own database has no need for the checkpoint that copying files asks for.
        let sql = format!("CREATE DATABASE {name} TEMPLATE template0 STRATEGY wal_log");
        self.psql(&self.url(), &sql)?;
        Ok(self.url_of(&name))
    }

    fn url_of(&self, database: &str) -> String {
        format!("postgres://{ACCOUNT}@127.0.0.1:{}/{database}", self.port)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// Runs SQL through `psql` on a connection of its own and returns what it printed, without
    /// headings and alignment.
    pub fn psql(&self, url: &str, sql: &str) -> Result<String> {
        let output = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql])
            .output()
            .context("psql does not start")?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "psql: {}", text.trim());
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    fn data(&self) -> PathBuf {
        self.scratch.path().join("data")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop_immediate();
    }
}

/// The folder of the newest version that is installed.
fn programs() -> Result<PathBuf> {
    let versions =
        fs::read_dir(PROGRAMS).with_context(|| format!("no PostgreSQL in {PROGRAMS}"))?;
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    versions
        .flatten()
        .map(|each| each.path())
        .filter(|path| path.join("bin/initdb").exists())
        .max_by_key(|path| number(path))
        .map(|path| path.join("bin"))
        .with_context(|| format!("no version in {PROGRAMS} has an initdb"))
}

/// The same command under an account that PostgreSQL accepts.
fn unprivileged(program: &Path, arguments: Vec<String>) -> (PathBuf, Vec<String>) {
    if !geteuid().is_root() {
        return (program.to_owned(), arguments);
    }
    let account = ["--reuid", ACCOUNT, "--regid", ACCOUNT, "--init-groups", "--"];
    let mut all = account.map(str::to_owned).to_vec();
    all.push(program.display().to_string());
    all.extend(arguments);
    (PathBuf::from("setpriv"), all)
}

/// The process and the state that a server has written into its folder.
fn status(data: &Path) -> Option<(u32, String)> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let id = text.lines().next()?.trim().parse().ok()?;
    Some((id, text.lines().nth(7).unwrap_or_default().trim().to_owned()))
}

/// A folder as `initdb` makes it, which takes seconds: it is made once and kept beside the tests'
/// programs, for each version and account.
fn template(programs: &Path) -> Result<PathBuf> {
    let version = Command::new(programs.join("postgres")).arg("--version").output()?;
    let version = String::from_utf8_lossy(&version.stdout);
    let version = version.split_whitespace().nth(2).unwrap_or("unknown").to_owned();
    let own = std::env::current_exe()?;
    let built = own.ancestors().nth(2).context("a test's program lies in a folder")?;
    let kept = built.join(format!("postgres-{version}-{}", geteuid().as_raw()));
    if kept.exists() {
        return Ok(kept);
    }
    // Made where the account may write, and then put in place in one step: other tests do the same.
    let scratch = Scratch::new("initdb")?;
    if geteuid().is_root() {
        let entry = Command::new("id").args(["-u", ACCOUNT]).output()?;
        let user: u32 = String::from_utf8_lossy(&entry.stdout).trim().parse()?;
        chown(scratch.path(), Some(user), None)?;
    }
    let data = scratch.path().join("data");
    let arguments = ["--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"];
    let mut arguments = arguments.map(str::to_owned).to_vec();
    arguments.extend(["--username", ACCOUNT, "-D"].map(str::to_owned));
    arguments.push(data.display().to_string());
    let (program, arguments) = unprivileged(&programs.join("initdb"), arguments);
    let output = Command::new(program).args(arguments).current_dir("/").output()?;
    ensure!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
    let made =
        kept.with_extension(format!("{}.{}", std::process::id(), fs::metadata(&data)?.ino()));
    copy(&data, &made)?;
    if fs::rename(&made, &kept).is_err() {
        let _ = fs::remove_dir_all(&made);
    }
    ensure!(kept.exists(), "cannot make {}", kept.display());
    Ok(kept)
}

/// Copies a folder with its owners and permissions.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").args(["-a", "--reflink=auto"]).args([from, to]).status()?;
    ensure!(status.success(), "cannot copy {} to {}", from.display(), to.display());
    Ok(())
}
