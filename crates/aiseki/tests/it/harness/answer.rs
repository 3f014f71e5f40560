//! What was answered, and what every answer has to look like.

use std::fmt;

use hyper::header::{self, AsHeaderName};
use hyper::{HeaderMap, StatusCode};
use serde_json::Value;

#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) call: String,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, status, headers, body } = self;
        write!(f, "{call} was answered {status} {headers:?} {body}")
    }
}

impl Answer {
    pub(crate) fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a text"))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("no JSON ({e}): {self:?}"))
    }

    /// The JSON of an answer that has to have this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        match self.body.as_str() {
            "" => Value::Null,
            _ => self.json(),
        }
    }

    /// A refusal: a problem document with exactly this status and code.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header(header::CONTENT_TYPE), Some("application/problem+json"), "{self:?}");
        assert_eq!(self.header(header::CACHE_CONTROL), Some("no-store"), "{self:?}");
        assert_eq!(self.header(header::X_CONTENT_TYPE_OPTIONS), Some("nosniff"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{self:?}");
        assert_eq!(problem["status"], status, "{self:?}");
        assert_eq!(problem["type"], "about:blank", "{self:?}");
        let title = StatusCode::from_u16(status).unwrap().canonical_reason();
        assert_eq!(problem["title"].as_str(), title, "{self:?}");
        assert!(!problem["detail"].as_str().unwrap_or_default().is_empty(), "{self:?}");
        problem
    }

    /// The seconds after which the call may be repeated.
    #[track_caller]
    pub(crate) fn retry_after(&self) -> u64 {
        let seconds = self.header(header::RETRY_AFTER).and_then(|text| text.parse().ok());
        seconds.filter(|seconds| *seconds >= 1).unwrap_or_else(|| panic!("{self:?}"))
    }
}
