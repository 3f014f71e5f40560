//! A running server, and people who call it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::thread;

use serde_json::Value;

use crate::program::{Ended, Program};

pub(crate) const TOKEN: &str = "correct-horse-battery";

/// The real program, serving on a free port until the test ends.
pub(crate) struct Running {
    program: Program,
    child: Child,
    address: String,
}

impl Running {
    /// A server with an admin token and no topics.
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_program(Program::new().variable("AISEKI_ADMIN_TOKEN", TOKEN), flags)
    }

    pub(crate) fn start_program(program: Program, flags: &[&str]) -> Self {
        let all = [&["serve", "--listen", "127.0.0.1:0", "--no-demo"], flags].concat();
        let mut child =
            program.command(&all).stderr(Stdio::piped()).spawn().expect("the program starts");
        let address = address(child.stderr.take().expect("a pipe"));
        Self { program, child, address }
    }

    /// The directory in which it runs, and its environment.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Where it listens: host and port.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Runs an operator command against it, with the server's own token.
    pub(crate) fn operate(&self, arguments: &[&str]) -> Ended {
        self.program.run(&[arguments, &["--server", &self.url()]].concat())
    }

    /// Runs one that must succeed, and returns what it printed.
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let ended = self.operate(arguments);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        ended.stdout
    }

    /// Runs a command that needs no server, in its directory; it must succeed.
    pub(crate) fn done_here(&self, arguments: &[&str]) {
        let ended = self.program.run(arguments);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }

    /// A new person's token.
    pub(crate) fn person(&self) -> String {
        let answer = self.call("POST", "/api/session", "", "");
        answer["token"].as_str().expect("a token").to_owned()
    }

    /// Asks for a room, and returns the state.
    pub(crate) fn join(&self, person: &str, topic: i64, room_type: u8) -> Value {
        let body = serde_json::json!({ "topic_id": topic, "room_type": room_type });
        self.call("POST", "/api/matching", person, &body.to_string())
    }

    /// One request on a connection of its own. Plain sockets are enough for it, and judge the server
    /// without the client that is under test.
    pub(crate) fn call(&self, method: &str, path: &str, token: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        let (address, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .expect("the server reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the server answers");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        if body.is_empty() {
            return Value::Null;
        }
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the log until it says where the server listens, and keeps reading so that it never blocks.
fn address(log: ChildStderr) -> String {
    let mut lines = BufReader::new(log).lines();
    let mut seen = Vec::new();
    let address = loop {
        let Some(Ok(line)) = lines.next() else { panic!("the server ended: {seen:#?}") };
        if let Some((_, rest)) = line.split_once("listening on http://") {
            break rest.split(['/', ' ']).next().unwrap_or_default().to_owned();
        }
        seen.push(line);
    };
    thread::spawn(move || lines.for_each(drop));
    address
}
