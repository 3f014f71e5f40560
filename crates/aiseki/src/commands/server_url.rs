//! The address of a running server.

use std::fmt;

use hyper::Uri;

use super::{Exit, Failure};
use crate::config::{Environment, SERVER_VARIABLE};

const DEFAULT: &str = "http://127.0.0.1:8080";

/// `http://host:port/base`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerUrl {
    authority: String,
    host: String,
    port: u16,
    /// Without a slash at its end; empty for the root.
    base: String,
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.base)
    }
}

impl ServerUrl {
    /// From the flag, the environment, or the default.
    pub(super) fn find(flag: Option<&str>, environment: &Environment) -> Result<Self, Failure> {
        let (source, text) = match flag {
            Some(text) => ("--server", text),
            None => (SERVER_VARIABLE, environment.get(SERVER_VARIABLE)?.unwrap_or(DEFAULT)),
        };
        Self::parse(text).map_err(|reason| {
            Failure::new(Exit::Usage, format_args!("{source} is {text:?}: {reason}"))
        })
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let expected = "expected a URL such as http://127.0.0.1:8080";
        let uri: Uri = text.trim().parse().map_err(|_| expected)?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err("this command speaks plain http only: run it where the server is, \
                     or through a tunnel (ssh -L 8080:127.0.0.1:8080 HOST)");
            }
            _ => return Err(expected),
        }
        let authority = uri.authority().ok_or(expected)?;
        if authority.as_str().contains('@') || uri.query().is_some() || uri.host() == Some("") {
            return Err(expected);
        }
        // A port that is there but cannot be read must not become the default one.
        let port = match (uri.port_u16(), authority.as_str().rsplit_once(':')) {
            (Some(port), _) => port,
            (None, Some((_, rest))) if !rest.ends_with(']') => return Err(expected),
            (None, _) => 80,
        };
        Ok(Self {
            authority: authority.to_string(),
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port,
            base: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    pub(super) fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// A route of the server, which begins with a slash.
    pub(super) fn path(&self, route: &str) -> String {
        format!("{}{route}", self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (text, host, port, route) in [
            ("http://127.0.0.1:8080", "127.0.0.1", 8080, "/admin"),
            ("http://localhost/", "localhost", 80, "/admin"),
            ("http://[::1]:9000/talk/", "::1", 9000, "/talk/admin"),
            ("http://[::1]", "::1", 80, "/admin"),
        ] {
            let url = ServerUrl::parse(text).unwrap();
            assert_eq!(url.host_and_port(), (host, port));
            assert_eq!(url.path("/admin"), route);
        }
    }

    #[test]
    fn what_is_no_address_of_a_server_is_refused() {
        for text in [
            "",
            "localhost",
            "localhost:8080",
            "127.0.0.1:8080",
            "ftp://host",
            "http://",
            "http://:80",
            "http://host:",
            "http://host:99999",
            "http://user@host",
            "http://host/?a",
            "http://a b",
        ] {
            let reason = ServerUrl::parse(text).unwrap_err();
            assert!(reason.starts_with("expected a URL"), "{text:?}");
        }
        assert!(ServerUrl::parse("https://host").unwrap_err().contains("tunnel"));
    }

    #[test]
    fn the_flag_beats_the_environment() {
        let environment = Environment::new([("AISEKI_SERVER", "http://b")]);
        let find = |flag, environment: &Environment| {
            ServerUrl::find(flag, environment).map(|url| url.to_string())
        };
        assert_eq!(find(Some("http://a"), &environment).unwrap(), "http://a");
        assert_eq!(find(None, &environment).unwrap(), "http://b");
        assert_eq!(find(None, &Environment::default()).unwrap(), DEFAULT);
        let environment = Environment::new([("AISEKI_SERVER", "b")]);
        let failure = find(None, &environment).unwrap_err();
        assert!(failure.message.starts_with("AISEKI_SERVER is \"b\": "), "{}", failure.message);
    }
}
