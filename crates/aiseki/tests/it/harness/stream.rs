//! Server-sent events, read as a browser reads them.

use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap};
use serde_json::Value;

pub(crate) struct Stream {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    buffer: String,
}

/// What came on the stream.
#[derive(Debug, PartialEq)]
pub(crate) enum Event {
    State(Value),
    Comment(String),
}

impl Stream {
    pub(crate) fn new(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        let status = head.status.as_u16();
        Self { status, headers: head.headers, body, buffer: String::new() }
    }

    /// The next event or comment; `None` at a clean end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let block: String = self.buffer.drain(..end + 2).collect();
                return Some(parse(block.trim_end()));
            }
            let Some(frame) = self.body.frame().await else {
                assert_eq!(self.buffer, "", "an event was cut off");
                return None;
            };
            let frame = frame.expect("the stream ends cleanly");
            if let Ok(data) = frame.into_data() {
                self.buffer.push_str(std::str::from_utf8(&data).expect("UTF-8"));
            }
        }
    }

    /// The next state, with comments passed over.
    pub(crate) async fn state(&mut self) -> Value {
        loop {
            match self.next().await {
                Some(Event::State(state)) => return state,
                Some(Event::Comment(_)) => {}
                None => panic!("the stream ended"),
            }
        }
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok())
    }
}

fn parse(block: &str) -> Event {
    if let Some(comment) = block.strip_prefix(':') {
        return Event::Comment(comment.trim().to_owned());
    }
    let mut data = None;
    for line in block.lines() {
        match line.split_once(": ").unwrap_or((line, "")) {
            ("event", name) => assert_eq!(name, "state"),
            ("data", text) => data = Some(serde_json::from_str(text).expect("JSON")),
            other => panic!("an unknown field: {other:?}"),
        }
    }
    Event::State(data.expect("data"))
}
