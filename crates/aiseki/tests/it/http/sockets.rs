use std::time::Duration;

use serde_json::json;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

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

/// Bytes on a WebSocket whose handshake is written by hand, and what comes back until its end.
async fn raw(server: &Server, person: &Person, path: &str, frame: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.client.address()).await.expect("a connection");
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        person.token
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(frame).await.expect("sent");
    let mut answer = Vec::new();
    within(Duration::from_secs(5), "the socket ends", stream.read_to_end(&mut answer)).await.ok();
    answer
}

#[tokio::test]
async fn a_close_is_answered_and_what_breaks_the_protocol_is_told_so() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 2).await;
    for path in ["/ws/matching".to_owned(), format!("/ws/rooms/{room}")] {
        // A masked close with a code; a frame without a mask; one with a reserved bit; an odd opcode.
        for (frame, code) in [
            (&[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8][..], 1000_u16),
            (&[0x88, 0x82, 0, 0, 0, 0, 0x0f, 0xa0], 4000),
            (&[0x81, 0x01, b'x'], 1002),
            (&[0xc1, 0x81, 0, 0, 0, 0, b'x'], 1002),
            (&[0x83, 0x81, 0, 0, 0, 0, b'x'], 1002),
        ] {
            let answer = raw(&server, &people[0], &path, frame).await;
            let mut close = vec![0x88, 2];
            close.extend(code.to_be_bytes());
            // A close may carry a reason as well.
            let told = answer.windows(4).any(|it| it[0] == 0x88 && it[2..] == close[2..]);
            assert!(told, "{path} {frame:x?}: {:?}", String::from_utf8_lossy(&answer));
        }
    }
}
