//! HTTP/1.1 as the load generator speaks it.
//!
//! A general client costs more for each request than the server that is measured, and shares its
//! cores: the client would be measured. This one writes bytes that are made beforehand, keeps its
//! connection, and reads no more of an answer than where it ends.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::commands::server_url::ServerUrl;

/// The largest answer that is taken.
const LARGEST: usize = 1 << 20;

/// A connection.
pub(super) struct Wire {
    stream: TcpStream,
    read: Vec<u8>,
    /// The bytes of the answer before, to be dropped.
    used: usize,
}

/// An answer, in the buffer of its connection.
pub(super) struct Reply<'a> {
    pub(super) status: u16,
    pub(super) body: &'a [u8],
}

impl Wire {
    pub(super) async fn connect(url: &ServerUrl) -> io::Result<Self> {
        let stream = TcpStream::connect(url.host_and_port()).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::with_capacity(1024), used: 0 })
    }

    /// Sends a request and reads its answer.
    pub(super) async fn ask(&mut self, request: &[u8]) -> io::Result<Reply<'_>> {
        self.send(request).await?;
        self.answer().await
    }

    pub(super) async fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request).await
    }

    pub(super) async fn answer(&mut self) -> io::Result<Reply<'_>> {
        self.read.drain(..self.used);
        self.used = 0;
        let head = loop {
            if let Some(head) = head_length(&self.read) {
                break head;
            }
            self.more().await?;
        };
        let status = status(&self.read[..head])?;
        let length = content_length(&self.read[..head])?;
        while self.read.len() < head + length {
            self.more().await?;
        }
        self.used = head + length;
        Ok(Reply { status, body: &self.read[head..head + length] })
    }

    /// Reads an answer without an end until `mark` has come.
    pub(super) async fn read_until(&mut self, mark: &[u8]) -> io::Result<()> {
        loop {
            if self.read.windows(mark.len()).any(|window| window == mark) {
                return Ok(());
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> io::Result<()> {
        if self.read.len() > LARGEST {
            return Err(io::Error::other("an answer is too large"));
        }
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn head_length(read: &[u8]) -> Option<usize> {
    read.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

fn status(head: &[u8]) -> io::Result<u16> {
    let digits = head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
    digits
        .filter(|_| head.starts_with(b"HTTP/1.1 "))
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| io::Error::other("this is no HTTP/1.1"))
}

fn content_length(head: &[u8]) -> io::Result<usize> {
    const NAME: &[u8] = b"content-length:";
    for line in head.split(|byte| *byte == b'\n') {
        if line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME) {
            let digits = std::str::from_utf8(&line[NAME.len()..]).ok();
            return digits
                .and_then(|digits| digits.trim().parse().ok())
                .ok_or_else(|| io::Error::other("an answer has no length"));
        }
    }
    Ok(0)
}

/// The bytes of a request.
pub(super) fn request(
    url: &ServerUrl,
    method: &str,
    route: &str,
    token: Option<&str>,
    body: &str,
) -> Vec<u8> {
    let (path, host) = (url.path(route), url.authority());
    let authorization =
        token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let content = match body {
        "" if method == "GET" || method == "DELETE" => String::new(),
        "" => "content-length: 0\r\n".into(),
        body => {
            format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len())
        }
    };
    format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n{authorization}{content}\r\n{body}")
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_an_answer_is_read() {
        let head = b"HTTP/1.1 202 Accepted\r\nContent-Length: 17\r\ndate: x\r\n\r\n{}";
        let length = head_length(head).unwrap();
        assert_eq!(&head[length..], b"{}");
        assert_eq!(status(&head[..length]).unwrap(), 202);
        assert_eq!(content_length(&head[..length]).unwrap(), 17);
        assert_eq!(content_length(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap(), 0);
        assert!(content_length(b"content-length: x\r\n").is_err());
        assert!(status(b"SSH-2.0-x\r\n").is_err());
        assert_eq!(head_length(b"HTTP/1.1 200 OK\r\n"), None);
    }
}
