//! Who is at the other end: the address, and whether the way here was encrypted.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;

/// The peer of the connection, as a request extension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The address of the client. What a peer says of others is believed only of trusted proxies: their
/// list is read from its end, and the first address that is no trusted proxy is the client's.
pub(super) fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let mut client = peer.to_canonical();
    let lists: Vec<_> = headers.get_all(&FORWARDED_FOR).iter().collect();
    let entries = lists
        .iter()
        .rev()
        .map(|list| list.to_str().unwrap_or_default())
        .flat_map(|list| list.rsplit(','));
    for entry in entries {
        if !is_trusted(client, trusted) {
            break;
        }
        // A malformed entry proves nothing about what stands before it.
        let Some(address) = parse_forwarded(entry.trim()) else { break };
        client = address;
    }
    client
}

/// Whether the client's own connection was encrypted, as a trusted proxy says.
pub(super) fn is_https(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> bool {
    if !is_trusted(peer.to_canonical(), trusted) {
        return false;
    }
    let last = headers.get_all(&FORWARDED_PROTO).iter().next_back();
    let last = last.and_then(|value| value.to_str().ok()).and_then(|list| list.rsplit(',').next());
    last.is_some_and(|proto| proto.trim().eq_ignore_ascii_case("https"))
}

fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|network| network.contains(&address))
}

/// An address as proxies write it: bare, with a port, or in brackets.
fn parse_forwarded(entry: &str) -> Option<IpAddr> {
    let bracketed = || entry.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    entry
        .parse::<IpAddr>()
        .ok()
        .or_else(|| entry.parse::<SocketAddr>().ok().map(|address| address.ip()))
        .or_else(bracketed)
        .map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn client(peer: &str, lists: &[&str]) -> IpAddr {
        let trusted = ["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
        let mut headers = HeaderMap::new();
        for list in lists {
            headers.append(FORWARDED_FOR.clone(), list.parse().unwrap());
        }
        client_address(address(peer), &headers, &trusted)
    }

    #[test]
    fn only_trusted_proxies_are_believed_and_from_the_end_of_the_list() {
        for (peer, lists, expected) in [
            ("203.0.113.9", &["198.51.100.1"][..], "203.0.113.9"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["192.0.2.66, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["192.0.2.66", "198.51.100.1, 10.9.9.9"], "198.51.100.1"),
            ("::ffff:10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1"),
            ("::1", &["[2001:db8::7]:4711"], "2001:db8::7"),
            ("::1", &["[2001:db8::7]"], "2001:db8::7"),
            ("10.0.0.1", &["198.51.100.1, unknown"], "10.0.0.1"),
            ("10.0.0.1", &["", "  "], "10.0.0.1"),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ] {
            assert_eq!(client(peer, lists), address(expected), "{peer} {lists:?}");
        }
    }

    #[test]
    fn the_scheme_is_believed_of_trusted_proxies_alone() {
        let trusted: [IpNet; 1] = ["10.0.0.0/8".parse().unwrap()];
        let mut headers = HeaderMap::new();
        headers.insert(FORWARDED_PROTO.clone(), "https".parse().unwrap());
        assert!(is_https(address("10.0.0.1"), &headers, &trusted));
        assert!(!is_https(address("203.0.113.9"), &headers, &trusted));
        headers.insert(FORWARDED_PROTO.clone(), "https, http".parse().unwrap());
        assert!(!is_https(address("10.0.0.1"), &headers, &trusted));
    }
}
