use std::time::Duration;

use serde_json::json;

use crate::harness::{Frame, Server, within};

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
