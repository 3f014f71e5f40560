//! The real server as a process, and a client of few lines.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::program::Program;

/// A running server, ended when it is dropped.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
}

impl Server {
    /// Starts on a free port, with these flags beside.
    pub(crate) fn start(program: &Program, flags: &[&str]) -> Self {
        let arguments = [&["serve", "--listen", "127.0.0.1:0"], flags].concat();
        let mut process = program.command(&arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = log.find_map(|line| {
            let line = line.ok()?;
            let (_, rest) = line.split_once("listening on http://")?;
            Some(rest.split(['/', ' ']).next()?.to_owned())
        });
        // A log that nobody reads would stop whoever writes it.
        std::thread::spawn(move || log.for_each(drop));
        Self { process, address: address.expect("it listens") }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// One request on a connection of its own.
    pub(crate) fn ask(&self, method: &str, path: &str, token: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer \
             {token}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}",
            self.address
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// A new session's token.
    pub(crate) fn session(&self) -> String {
        let (status, body) = self.ask("POST", "/api/session", "", "");
        assert_eq!(status, 201, "{body}");
        body["token"].as_str().unwrap().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
