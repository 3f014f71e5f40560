use std::time::Duration;

use serde_json::json;

use crate::harness::{Event, Server, within};

#[tokio::test]
async fn a_stream_tells_the_present_state_first_and_then_every_change() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    let mut stream = ann.client.stream("/api/matching/events").await;
    assert_eq!(stream.status, 200);
    assert_eq!(stream.content_type(), Some("text/event-stream"));
    assert_eq!(stream.headers["x-accel-buffering"], "no");
    let changes = async {
        assert_eq!(stream.state().await, json!({ "status": "idle" }));
        let waiting = ann.join(topic, 2).await.expect(202);
        assert_eq!(stream.state().await, waiting);
        ann.cancel().await.expect(204);
        assert_eq!(stream.state().await, json!({ "status": "idle", "reason": "left" }));
        ann.join(topic, 2).await.expect(202);
        assert_eq!(stream.state().await["status"], "waiting");
        let matched = bob.join(topic, 2).await.expect(200);
        assert_eq!(stream.state().await, matched);
        bob.leave(matched["room_id"].as_str().unwrap()).await.expect(204);
        assert_eq!(stream.state().await, json!({ "status": "idle", "reason": "room_closed" }));
    };
    within(Duration::from_secs(10), "every change is told", changes).await;
    // What changes nothing is not told: the next thing to come is the sign of life.
    ann.state().await;
    let next = within(Duration::from_secs(18), "the heartbeat", stream.next()).await;
    assert_eq!(next, Some(Event::Comment("alive".into())));
}

#[tokio::test]
async fn several_streams_and_sockets_of_a_session_hear_the_same() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let ann = server.person().await;
    let mut first = ann.client.stream("/api/matching/events").await;
    let mut second = ann.client.stream("/api/matching/events").await;
    let mut socket = ann.client.socket("/ws/matching").await.ok().unwrap();
    for state in [first.state().await, second.state().await, socket.state().await] {
        assert_eq!(state, json!({ "status": "idle" }));
    }
    let waiting = ann.join(topic, 3).await.expect(202);
    for state in [first.state().await, second.state().await, socket.state().await] {
        assert_eq!(state, waiting);
    }
}
