//! How each kind of value is read. Every error is one clause that says what is expected.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use aiseki_lobby::Millis;
use ipnet::IpNet;
use tracing_subscriber::filter::{LevelFilter, Targets};

use crate::duration as durations;
use crate::rate_limit::RateLimit;

/// The fewest characters of an admin token.
const SHORTEST_TOKEN: usize = 16;
/// The most items in a list.
const LONGEST_LIST: usize = 1_000;

/// A text that no log, error or `Debug` output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// This text.
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The text itself. Compare it in constant time.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A closed set of words as a value, with the words in one place.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word),+ })
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text.trim() {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(format!("expected {}", [$($word),+].join(" or "))),
                }
            }
        }
    };
}

words! {
    /// What to do about a Redis that may throw waiting people away.
    Eviction {
        /// Do not start on it.
        Refuse = "refuse",
        /// Start, and lose them.
        Accept = "accept",
    }
}

words! {
    /// What survives a power cut.
    Durability {
        /// Everything but the last moments; nothing is ever corrupt.
        Normal = "normal",
        /// Everything that was answered: each group of commits is synced.
        Full = "full",
    }
}

words! {
    /// How the log is written.
    LogFormat {
        /// Lines for people.
        Text = "text",
        /// A JSON object a line, for programs.
        Json = "json",
    }
}

/// What is logged: a level, or levels by target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogFilter {
    text: String,
    targets: Targets,
}

impl LogFilter {
    /// The filter for a subscriber.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for LogFilter {
    type Err = String;

    /// A bare word must be a level: taken for a target, as `inof` would be, it would silence all else.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut targets = Targets::new();
        let mut parts = Vec::new();
        for part in text.split(',').map(str::trim) {
            let level = |word: &str| {
                let word = word.trim();
                // The parser also takes numbers, and no word at all.
                let named = !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphabetic());
                named.then(|| word.parse::<LevelFilter>().ok()).flatten()
            };
            let read = match part.split_once('=') {
                Some((target, word)) if !target.trim().is_empty() => {
                    level(word).map(|level| targets.clone().with_target(target.trim(), level))
                }
                Some(_) => None,
                None => level(part).map(|level| targets.clone().with_default(level)),
            };
            targets = read.ok_or(
                "expected a level (off, error, warn, info, debug, trace) \
                 or target=level pairs, such as warn,aiseki=debug",
            )?;
            parts.push(part);
        }
        Ok(Self { text: parts.join(","), targets })
    }
}

pub(super) fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an address and a port, such as 127.0.0.1:8080 or [::]:8080";
    text.trim().parse().map_err(|_| expected.into())
}

pub(super) fn directory(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() || text.contains('\0') {
        return Err("expected the name of a directory".into());
    }
    Ok(PathBuf::from(text))
}

pub(super) fn on_off(text: &str) -> Result<bool, String> {
    match text.trim() {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => Err("expected on or off".into()),
    }
}

pub(super) fn show_on_off(on: bool) -> String {
    if on { "on".into() } else { "off".into() }
}

pub(super) fn number(text: &str, bounds: RangeInclusive<usize>) -> Result<usize, String> {
    let text = text.trim();
    let number = text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    number.filter(|number| bounds.contains(number)).ok_or_else(|| {
        format!("expected a whole number from {} to {}", bounds.start(), bounds.end())
    })
}

pub(super) fn duration(text: &str, bounds: RangeInclusive<Millis>) -> Result<Millis, String> {
    durations::parse(text, bounds).map_err(|error| error.to_string())
}

pub(super) fn duration_or_off(
    text: &str,
    bounds: RangeInclusive<Millis>,
) -> Result<Option<Millis>, String> {
    if text.trim() == "off" { Ok(None) } else { duration(text.trim(), bounds).map(Some) }
}

pub(super) fn rate_limit(text: &str) -> Result<RateLimit, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// A name that is part of keys.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    let text = text.trim();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (1..=64).contains(&text.len()) && text.bytes().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("expected 1 to 64 letters, digits, dashes, dots or underscores".into())
    }
}

/// It must be sendable as `Authorization: Bearer`, so it is visible ASCII without spaces.
pub(super) fn admin_token(text: &str) -> Result<Secret, String> {
    if text.len() < SHORTEST_TOKEN || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(format!(
            "expected at least {SHORTEST_TOKEN} characters, all of them visible ASCII without spaces"
        ));
    }
    Ok(Secret(text.to_owned()))
}

/// Reads items with commas between; no text at all is an empty list. The same item twice is once.
pub(super) fn list<T: PartialEq>(
    text: &str,
    item: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut items = Vec::new();
    if text.trim().is_empty() {
        return Ok(items);
    }
    for part in text.split(',') {
        let part = part.trim();
        let read = item(part).map_err(|reason| format!("{part:?}: {reason}"))?;
        if !items.contains(&read) {
            items.push(read);
        }
        if items.len() > LONGEST_LIST {
            return Err(format!("expected at most {LONGEST_LIST} items"));
        }
    }
    Ok(items)
}

pub(super) fn address_block(text: &str) -> Result<IpNet, String> {
    let block = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    block
        .map(|block| block.trunc())
        .ok_or_else(|| "expected an address or a block, such as 10.0.0.0/8 or ::1".into())
}

/// An origin as a browser writes it: lower case, without the default port of its scheme.
pub(super) fn web_origin(text: &str) -> Result<String, String> {
    let expected =
        || String::from("expected an origin such as https://example.org or http://localhost:3000");
    let lower = text.to_ascii_lowercase();
    let (scheme, rest) = lower.split_once("://").ok_or_else(expected)?;
    let default_port = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return Err(expected()),
    };
    if rest.contains(['/', '?', '#']) {
        return Err("an origin has no path and no slash at its end".into());
    }
    if !rest.is_ascii() {
        return Err("expected the host in its ASCII form, as browsers send it (xn--…)".into());
    }
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let host = host_name(host).ok_or_else(expected)?;
    let port = match port {
        None => default_port,
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => {
            port.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(expected)?
        }
        Some(_) => return Err(expected()),
    };
    if port == default_port {
        Ok(format!("{scheme}://{host}"))
    } else {
        Ok(format!("{scheme}://{host}:{port}"))
    }
}

fn host_name(host: &str) -> Option<String> {
    if let Some(address) = host.strip_prefix('[') {
        let address: Ipv6Addr = address.strip_suffix(']')?.parse().ok()?;
        return Some(format!("[{address}]"));
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    // A name that ends in a number is an IPv4 address to a browser, and must be a whole one.
    let numeric = host.rsplit('.').next()?.bytes().all(|b| b.is_ascii_digit());
    let valid = if numeric { host.parse::<Ipv4Addr>().is_ok() } else { host.split('.').all(label) };
    (valid && host.len() <= 253).then(|| host.to_owned())
}

/// `/`, or segments with one slash before each. Only characters that need no escape in any place
/// where the path is written: a header, a cookie's attribute, a route, HTML.
pub(super) fn base_path(text: &str) -> Result<String, String> {
    let path = text.trim().trim_start_matches('/');
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() && text.trim().starts_with('/') {
        return Ok("/".into());
    }
    let segment = |segment: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
        !segment.is_empty() && segment != "." && segment != ".." && segment.bytes().all(plain)
    };
    if path.len() > 200 || !path.split('/').all(segment) {
        return Err("expected a path of letters, digits and - . _ ~, such as /talk".into());
    }
    Ok(format!("/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_normalised_as_browsers_write_them() {
        for (text, origin) in [
            ("https://example.org", "https://example.org"),
            ("HTTPS://Example.ORG:443", "https://example.org"),
            ("http://example.org:80", "http://example.org"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("https://example.org:80", "https://example.org:80"),
            ("http://127.0.0.1:5173", "http://127.0.0.1:5173"),
            ("http://[::1]", "http://[::1]"),
            ("http://[0:0::1]:8080", "http://[::1]:8080"),
            ("https://xn--r8jz45g.jp", "https://xn--r8jz45g.jp"),
        ] {
            assert_eq!(web_origin(text).as_deref(), Ok(origin), "{text}");
        }
        for text in [
            "",
            "*",
            "null",
            "example.org",
            "ftp://example.org",
            "https://",
            "https://:443",
            "https://example.org/",
            "https://example.org/path",
            "https://example.org?x",
            "https://user@example.org",
            "https://exa mple.org",
            "https://example.org:0",
            "https://example.org:99999",
            "https://example.org:",
            "https://例え.jp",
            "http://::1",
            "http://1.2.3",
            "https://example.org:+1",
            "https://.example.org",
            "https://*.example.org",
        ] {
            assert!(web_origin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_base_path_has_a_slash_before_it_and_none_after_it() {
        for (text, path) in [
            ("/", "/"),
            ("//", "/"),
            ("talk", "/talk"),
            ("/talk/", "/talk"),
            ("//talk", "/talk"),
            ("a/b-c/d.e/", "/a/b-c/d.e"),
            ("/..a", "/..a"),
        ] {
            assert_eq!(base_path(text).as_deref(), Ok(path), "{text:?}");
        }
        for text in [
            "", " ", "/..", "a/../b", "/a//b", "/a b", "/a?b", "/a#b", "/a\tb", "/猫", "/{x}",
            "/%2e", "/talk//", "\\",
        ] {
            assert!(base_path(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn proxies_are_addresses_or_blocks() {
        let blocks =
            list("10.1.2.3/8, 192.168.0.1,::1 ,fd00::/8,10.0.0.0/8", address_block).unwrap();
        let shown: Vec<_> = blocks.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.0.0.0/8", "192.168.0.1/32", "::1/128", "fd00::/8"]);
        for text in ["10.0.0.0/33", "localhost", "10.0.0.0/8,", "10.0.0.0-10.0.0.9"] {
            assert!(list(text, address_block).is_err(), "{text}");
        }
    }

    #[test]
    fn a_log_filter_names_levels() {
        for (text, shown) in [
            ("info", "info"),
            ("WARN", "WARN"),
            ("warn, aiseki=debug", "warn,aiseki=debug"),
            ("off", "off"),
        ] {
            assert_eq!(text.parse::<LogFilter>().unwrap().to_string(), shown);
        }
        for text in ["", "inof", "aiseki", "aiseki=", "=debug", "aiseki=loud", "info,", "3"] {
            assert!(text.parse::<LogFilter>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn addresses_numbers_words_and_tokens_say_what_is_expected() {
        assert!(socket_address("localhost:8080").unwrap_err().contains("such as 127.0.0.1:8080"));
        assert_eq!(socket_address("[::]:0").unwrap().port(), 0);
        assert_eq!(number("20000", 1..=50_000), Ok(20_000));
        for text in ["", "0", "-1", "+5", "1e3", "99999999999999999999999"] {
            assert_eq!(number(text, 1..=9), Err("expected a whole number from 1 to 9".into()));
        }
        assert_eq!("half".parse::<Durability>(), Err("expected normal or full".into()));
        assert_eq!(on_off("maybe"), Err("expected on or off".into()));
        assert!(
            admin_token("0123456789abcde").is_err() && admin_token("0123456789 abcdef").is_err()
        );
        assert!(directory("").is_err());
    }
}
