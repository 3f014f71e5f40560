use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::harness::{Frame, Person, Server, within};

#[tokio::test]
async fn a_socket_tells_the_present_state_first_and_then_every_change() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    let waiting = ann.join(topic, 2).await.expect(202);
    let mut socket = ann.client.socket("/ws/matching").await.ok().unwrap();
    assert_eq!(socket.protocol, None);
    let changes = async {
        assert_eq!(socket.state().await, waiting);
        // Nothing is to be said here, and whatever is said is a mere sign of life.
        socket.say("hello").await;
        let matched = bob.join(topic, 2).await.expect(200);
        assert_eq!(socket.state().await, matched);
        ann.leave(matched["room_id"].as_str().unwrap()).await.expect(204);
        assert_eq!(socket.state().await, json!({ "status": "idle", "reason": "left" }));
        assert_eq!(socket.next().await, Frame::Ping);
    };
    within(Duration::from_secs(25), "every change is told", changes).await;
}

#[tokio::test]
async fn a_subprotocol_carries_the_token_and_one_of_them_is_agreed_to() {
    let server = Server::start().await;
    let (ann, bob) = (server.person().await, server.person().await);
    let token = format!("aiseki.token.{}", ann.token);
    for (offered, agreed) in [
        (token.clone(), token.as_str()),
        (format!("aiseki, {token}"), "aiseki"),
        (format!("{token}, aiseki"), "aiseki"),
    ] {
        let client = server.client.with("sec-websocket-protocol", &offered);
        let mut socket = client.socket("/ws/matching").await.ok().unwrap();
        assert_eq!(socket.protocol.as_deref(), Some(agreed));
        assert_eq!(socket.state().await["status"], "idle");
    }
    let bad = server.client.with("sec-websocket-protocol", "aiseki.token.nonsense");
    let refused = bad.cookie(&bob.token).socket("/ws/matching").await.err().unwrap();
    refused.refused(401, "unauthenticated");
}

#[tokio::test]
async fn what_is_no_websocket_is_told_so() {
    let server = Server::start().await;
    let ann = server.person().await;
    let answer = ann.client.get("/ws/matching").await;
    answer.refused(426, "upgrade_required");
}

#[tokio::test]
async fn a_frame_that_is_too_large_ends_the_socket_and_nothing_else() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let ann = server.person().await;
    ann.join(topic, 2).await.expect(202);
    let mut socket = ann.client.socket("/ws/matching").await.ok().unwrap();
    socket.state().await;
    socket.say(&"x".repeat(10_000)).await;
    let ended = within(Duration::from_secs(5), "the socket ends", socket.next()).await;
    assert!(matches!(ended, Frame::Closed(_) | Frame::Broken), "{ended:?}");
    assert_eq!(ann.state().await["status"], "waiting");
}

/// Opens a socket by hand, sends bytes as they are, and returns the code of the closing frame.
async fn closed_by(person: &Person, path: &str, frame: &[u8]) -> Option<u16> {
    let mut stream = tokio::net::TcpStream::connect(person.client.address()).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        person.token
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    stream.write_all(frame).await.unwrap();
    loop {
        let Ok(first) = stream.read_u8().await else { return None };
        let length = match stream.read_u8().await.unwrap() {
            126 => usize::from(stream.read_u16().await.unwrap()),
            short => usize::from(short),
        };
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await.unwrap();
        if first == 0x88 {
            return Some(payload.first_chunk().map_or(1005, |code| u16::from_be_bytes(*code)));
        }
    }
}

#[tokio::test]
async fn a_close_is_answered_and_a_broken_frame_is_told_so_on_both_sockets() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 2).await;
    let ann = &people[0];
    for path in ["/ws/matching".to_owned(), format!("/ws/rooms/{room}")] {
        for (what, frame, code) in [
            ("a close with a code", &[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8][..], 1000),
            ("a close without one", &[0x88, 0x80, 0, 0, 0, 0], 1005),
            ("a frame without a mask", &[0x81, 0x02, b'h', b'i'], 1002),
            ("a reserved bit", &[0xc1, 0x80, 0, 0, 0, 0], 1002),
            ("an unknown opcode", &[0x83, 0x80, 0, 0, 0, 0], 1002),
            ("a ping in parts", &[0x09, 0x80, 0, 0, 0, 0], 1002),
        ] {
            let ended = closed_by(ann, &path, frame);
            let ended = within(Duration::from_secs(8), what, ended).await;
            assert_eq!(ended, Some(code), "{what} at {path}");
        }
    }
}
