use aiseki::config::Config;
use serde_json::json;

use crate::harness::{Person, Server, Settings, eventually};

/// Somebody who shows no sign of life is dropped after a second, and one who closed the connection
/// after a third of one.
async fn server() -> Server {
    let settings = Settings::new().set("presence_timeout", "1s");
    Server::configured(settings, |config: &mut Config| config.policy.closed_grace = 300).await
}

/// Waits until several presence times have passed, by the drop of somebody who is not there.
async fn several_presence_times(server: &Server) {
    for _ in 0..3 {
        let (absent, topic) = (server.person().await, server.topic("elsewhere").await);
        absent.join(topic, 2).await.expect(202);
        server.emptied(topic).await;
        assert_eq!(absent.state().await, json!({ "status": "idle", "reason": "absent" }));
    }
}

async fn waits(person: &Person) -> bool {
    person.state().await["status"] == "waiting"
}

#[tokio::test]
async fn who_is_only_there_through_an_open_connection_stays() {
    let server = server().await;
    let (ann, bob, cem) = (server.person().await, server.person().await, server.person().await);
    for person in [&ann, &bob, &cem] {
        person.join(server.topic("own").await, 2).await.expect(202);
    }
    let polling = tokio::spawn({
        let ann = ann.clone();
        async move { ann.long_poll(55).await }
    });
    let mut stream = bob.client.stream("/api/matching/events").await;
    let mut socket = cem.client.socket("/ws/matching").await.ok().unwrap();
    let first = (stream.state().await, socket.state().await);
    several_presence_times(&server).await;
    assert!(!polling.is_finished(), "the long poll is still held");
    for (person, since) in [(&bob, &first.0), (&cem, &first.1)] {
        let state = person.state().await;
        assert_eq!(state["waiting_since"], since["waiting_since"]);
    }
    assert!(waits(&ann).await);
    drop((polling, stream, socket));
}

#[tokio::test]
async fn who_closes_the_last_connection_is_dropped_after_the_grace() {
    let settings = Settings::new().set("presence_timeout", "10m");
    let server =
        Server::configured(settings, |config: &mut Config| config.policy.closed_grace = 300).await;
    let topic = server.topic("t").await;
    for kind in ["poll", "stream", "socket", "socket, closed"] {
        let ann = server.person().await;
        ann.join(topic, 2).await.expect(202);
        match kind {
            "poll" => {
                let ann = ann.clone();
                let polling = tokio::spawn(async move { ann.long_poll(55).await });
                server.subscriptions(1).await;
                polling.abort();
            }
            "stream" => drop(ann.client.stream("/api/matching/events").await),
            _ => {
                let mut socket = ann.client.socket("/ws/matching").await.ok().unwrap();
                socket.state().await;
                if kind == "socket, closed" {
                    socket.close().await;
                }
            }
        }
        server.emptied(topic).await;
        let state = ann.state().await;
        assert_eq!(state, json!({ "status": "idle", "reason": "absent" }), "{kind}");
    }
}

#[tokio::test]
async fn closing_one_of_two_connections_or_coming_back_in_time_drops_nobody() {
    let settings = Settings::new().set("presence_timeout", "10m");
    let server =
        Server::configured(settings, |config: &mut Config| config.policy.closed_grace = 600).await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    ann.join(topic, 3).await.expect(202);
    bob.join(topic, 3).await.expect(202);
    let first = ann.client.stream("/api/matching/events").await;
    let _second = ann.client.stream("/api/matching/events").await;
    drop(first);
    drop(bob.client.stream("/api/matching/events").await);
    server.subscriptions(1).await;
    let _again = bob.client.stream("/api/matching/events").await;
    // Somebody who closes now and does not come back is dropped when the grace of the others is over.
    let cem = server.person().await;
    let elsewhere = server.topic("u").await;
    cem.join(elsewhere, 2).await.expect(202);
    drop(cem.client.stream("/api/matching/events").await);
    server.emptied(elsewhere).await;
    assert!(waits(&ann).await && waits(&bob).await);
}

#[tokio::test]
async fn the_end_of_a_long_poll_that_was_answered_is_no_farewell() {
    let settings = Settings::new().set("presence_timeout", "10m");
    let server =
        Server::configured(settings, |config: &mut Config| config.policy.closed_grace = 100).await;
    let (topic, elsewhere) = (server.topic("t").await, server.topic("u").await);
    let (ann, bob) = (server.person().await, server.person().await);
    ann.join(topic, 2).await.expect(202);
    assert_eq!(ann.long_poll(1).await.expect(200)["status"], "waiting");
    bob.join(elsewhere, 2).await.expect(202);
    drop(bob.client.stream("/api/matching/events").await);
    server.emptied(elsewhere).await;
    assert!(waits(&ann).await);
}

#[tokio::test]
async fn polling_keeps_somebody_and_silence_does_not() {
    let server = server().await;
    let (topic, elsewhere) = (server.topic("t").await, server.topic("u").await);
    let (ann, bob) = (server.person().await, server.person().await);
    ann.join(topic, 2).await.expect(202);
    bob.join(elsewhere, 2).await.expect(202);
    eventually("the silent one is dropped", async || {
        assert!(waits(&ann).await);
        (server.waiting(elsewhere).await == 0).then_some(())
    })
    .await;
    assert_eq!(bob.state().await, json!({ "status": "idle", "reason": "absent" }));
}

#[tokio::test]
async fn fallback_comes_in_time_for_people_who_only_hold_a_connection() {
    let settings = Settings::new().set("fallback_after", "400ms").set("presence_timeout", "300ms");
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    let mut stream = ann.client.stream("/api/matching/events").await;
    let mut socket = bob.client.socket("/ws/matching").await.ok().unwrap();
    assert_eq!(
        (stream.state().await, socket.state().await["status"].clone()),
        (json!({ "status": "idle" }), json!("idle"))
    );
    ann.join(topic, 3).await.expect(202);
    bob.join(topic, 3).await.expect(202);
    assert_eq!(stream.state().await["status"], "waiting");
    assert_eq!(socket.state().await["status"], "waiting");
    let (seen, heard) = (stream.state().await, socket.state().await);
    assert_eq!((&seen["status"], &seen["room_type"]), (&json!("matched"), &json!(2)));
    assert_eq!(seen["room_id"], heard["room_id"]);
}
