//! What the parsers of requests must keep, as targets for fuzzing.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue, header};
use ipnet::IpNet;
use serde_json::Value;

use super::client::client_address;
use super::extract::{bearer, cookies, parse_object, subprotocols};
use super::matching::JoinBody;
use super::rooms::parse_room;

/// The body of a join: whatever is read is what stands there.
pub(crate) fn join_body(input: &[u8]) {
    let Ok(body) = parse_object::<JoinBody>(input) else { return };
    assert!(std::str::from_utf8(input).is_ok(), "JSON is UTF-8");
    // Half a surrogate in a member that nobody asks for is grammatical, and has no value.
    let Ok(value) = serde_json::from_slice::<Value>(input) else { return };
    let member = |name: &str| value[name].as_i64();
    let (topic_id, room_type) = body.asked();
    assert_eq!((member("topic_id"), member("room_type")), (Some(topic_id), Some(room_type)));
}

/// The headers that carry a token: no token holds what separates tokens.
pub(crate) fn cookie(input: &[u8]) {
    let Some(headers) = headers(&header::COOKIE, input) else { return };
    for token in cookies(&headers) {
        assert!(!token.contains(';') && token.len() <= input.len());
    }
    if let Some(headers) = self::headers(&header::AUTHORIZATION, input)
        && let Some(token) = bearer(&headers)
    {
        assert_eq!(token, token.trim());
    }
    if let Some(headers) = self::headers(&header::SEC_WEBSOCKET_PROTOCOL, input) {
        assert!(subprotocols(&headers).all(|protocol| !protocol.contains(',')));
    }
}

/// `X-Forwarded-For`: only what trusted proxies say is believed, and never one of them more than the
/// list has.
pub(crate) fn forwarded_for(input: &[u8]) {
    let name = header::HeaderName::from_static("x-forwarded-for");
    let Some(headers) = headers(&name, input) else { return };
    let trusted: [IpNet; 2] = ["10.0.0.0/8", "fd00::/8"].map(|net| net.parse().expect("a block"));
    let stranger: IpAddr = "203.0.113.9".parse().expect("an address");
    assert_eq!(client_address(stranger, &headers, &trusted), stranger);
    let proxy: IpAddr = "10.0.0.1".parse().expect("an address");
    let client = client_address(proxy, &headers, &trusted);
    assert_eq!(client, client.to_canonical());
    // What stands last is what the proxy itself saw: a stranger there is the client.
    let last = headers.get_all(&name).iter().next_back().and_then(|list| list.to_str().ok());
    let last = last.and_then(|list| list.rsplit(',').next()?.trim().parse::<IpAddr>().ok());
    if let Some(last) = last.map(|last| last.to_canonical())
        && !trusted.iter().any(|net| net.contains(&last))
    {
        assert_eq!(client, last);
    }
}

/// The id of a room: it is read as it is written, in either case, and in no other form.
pub(crate) fn room_id(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some(room) = parse_room(text) else { return };
    assert!(room.to_string().eq_ignore_ascii_case(text), "{text:?} is {room}");
}

/// A header on each line of the input.
fn headers(name: &header::HeaderName, input: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for line in input.split(|byte| *byte == b'\n') {
        headers.append(name, HeaderValue::from_bytes(line).ok()?);
    }
    Some(headers)
}
