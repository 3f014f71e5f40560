//! The real program as a process, with its log.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{ADMIN_TOKEN, Client, Person, Settings, eventually, within};

/// The limit to an orderly end, by the contract.
const SHUTDOWN: Duration = Duration::from_secs(10);

pub(crate) struct Program {
    running: Running,
    pub(crate) client: Client,
}

/// A process that ends with whoever holds it, also when a test fails while it waits for it.
pub(crate) struct Running {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

/// What a program that did not start left behind.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) lines: Vec<String>,
}

impl Program {
    /// Starts it and waits until it listens.
    pub(crate) async fn start(settings: &Settings) -> Self {
        Self::start_as(command(settings)).await
    }

    pub(crate) async fn start_as(command: Command) -> Self {
        let mut running = spawn(command);
        let address = eventually("the program listens", async || {
            if let Some(status) = running.child.try_wait().expect("a child") {
                panic!("it ended ({status}): {:?}", running.log());
            }
            running.log().iter().find_map(|line| address_in(line))
        })
        .await;
        Self { running, client: Client::new(address) }
    }

    /// Runs what is expected to end by itself.
    pub(crate) async fn refused(settings: &Settings) -> Ended {
        let mut running = Running::begin(settings);
        let status = eventually("the program refuses to start", async || {
            running.child.try_wait().expect("a child")
        })
        .await;
        // The log is complete once its reader has let go of it.
        let lines = eventually("the log is read", async || {
            (Arc::strong_count(&running.log) == 1).then(|| running.log())
        })
        .await;
        Ended { code: status.code(), lines }
    }

    pub(crate) fn admin(&self) -> Client {
        self.client.bearer(ADMIN_TOKEN)
    }

    pub(crate) async fn person(&self) -> Person {
        Person::new(&self.client).await
    }

    pub(crate) async fn topic(&self, title: &str) -> i64 {
        let topic = self.admin().post("/admin/topics", &json!({ "title": title })).await;
        topic.expect(201)["id"].as_i64().expect("a number")
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.running.child)
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.running.log()
    }

    /// As a power cut ends it.
    pub(crate) async fn kill(mut self) {
        self.running.child.kill().expect("killed");
        let status = self.end("the killed program is gone").await;
        assert_eq!(status.signal(), Some(9));
    }

    /// As an operator ends it: in time and well.
    pub(crate) async fn terminate(mut self) -> Vec<String> {
        self.tell(Signal::TERM);
        let status = within(SHUTDOWN, "it ends", self.end("it ends")).await;
        assert_eq!(status.code(), Some(0), "{:?}", self.log());
        self.log()
    }

    pub(crate) fn tell(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("a signal can be sent");
    }

    pub(crate) async fn end(&mut self, what: &str) -> ExitStatus {
        eventually(what, async || self.running.child.try_wait().expect("a child")).await
    }
}

impl Running {
    /// Starts it and waits for nothing.
    pub(crate) fn begin(settings: &Settings) -> Self {
        spawn(command(settings))
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl Drop for Running {
    #[expect(clippy::print_stderr, reason = "a failed test shows what the program said")]
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the log of the program:\n{}", self.log().join("\n"));
        }
    }
}

/// The program with these settings and no other environment.
fn command(settings: &Settings) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aiseki"));
    command.env_clear().envs(settings.variables().iter().map(|(name, value)| (name, value)));
    command
}

fn spawn(mut command: Command) -> Running {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let log = Arc::new(Mutex::new(Vec::new()));
    let (stderr, lines) = (child.stderr.take().expect("piped"), Arc::clone(&log));
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            lines.lock().unwrap().push(line);
        }
    });
    Running { child, log }
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("listening on http://")?;
    let end = rest.find(['/', ' ', '"']).unwrap_or(rest.len());
    rest[..end].parse().ok()
}
