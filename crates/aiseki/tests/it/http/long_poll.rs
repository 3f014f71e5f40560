use std::time::Duration;

use serde_json::json;

use crate::harness::{Server, Settings, Since, eventually, within};

const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_long_poll_is_answered_the_moment_somebody_else_completes_the_room() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    ann.join(topic, 2).await.expect(202);
    let holding = tokio::spawn({
        let ann = ann.clone();
        async move { ann.long_poll(55).await.expect(200) }
    });
    server.subscriptions(1).await;
    let matched = bob.join(topic, 2).await.expect(200);
    let state = within(SOON, "the long poll is answered", holding).await.unwrap();
    assert_eq!(state, matched);
}

#[tokio::test]
async fn idle_and_matched_are_answered_at_once() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let ann = server.person().await;
    let idle = within(SOON, "idle", ann.long_poll(55)).await.expect(200);
    assert_eq!(idle, json!({ "status": "idle" }));
    let (people, room) = server.seated(topic, 2).await;
    let matched = within(SOON, "matched", people[0].long_poll(55)).await.expect(200);
    assert_eq!(matched["room_id"], room);
}

#[tokio::test]
async fn a_long_poll_is_held_for_as_long_as_was_asked_and_the_server_allows() {
    let server = Server::start().await;
    let short = Server::with(Settings::new().set("max_wait", "1s")).await;
    for (server, wait) in [(&server, 1), (&short, 55)] {
        let topic = server.topic("t").await;
        let ann = server.person().await;
        ann.join(topic, 2).await.expect(202);
        let since = Since::now();
        let state = within(SOON, "the end of the wait", ann.long_poll(wait)).await.expect(200);
        assert_eq!(state["status"], "waiting");
        assert!((950..4000).contains(&since.millis()), "{} ms", since.millis());
    }
}

#[tokio::test]
async fn a_wait_out_of_bounds_is_refused() {
    let server = Server::start().await;
    let ann = server.person().await;
    for wait in ["0", "56", "-1", "1.5", "", "ten", "99999999999999999999", "1&wait=2"] {
        let answer = ann.client.get(&format!("/api/matching?wait={wait}")).await;
        answer.refused(400, "invalid_query");
    }
    ann.client.get("/api/matching?other=x").await.expect(200);
}

#[tokio::test]
async fn every_kind_of_end_answers_a_long_poll() {
    let settings = Settings::new().set("wait_timeout", "500ms").set("fallback_after", "400ms");
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let ann = server.person().await;
    ann.join(topic, 2).await.expect(202);
    let state = within(SOON, "the wait ends", ann.long_poll(55)).await.expect(200);
    assert_eq!(state, json!({ "status": "idle", "reason": "wait_expired" }));

    let server = Server::start().await;
    let topic = server.topic("t").await;
    let ends: [(&str, &str); 3] =
        [("cancel", "left"), ("topic", "topic_closed"), ("ban", "banned")];
    for (end, reason) in ends {
        let ann = server.person().await;
        ann.join(topic, 2).await.expect(202);
        let holding = tokio::spawn({
            let ann = ann.clone();
            async move { ann.long_poll(55).await.expect(200) }
        });
        server.subscriptions(1).await;
        let admin = server.admin();
        let topic = format!("/admin/topics/{topic}");
        match end {
            "cancel" => assert_eq!(ann.cancel().await.status, 204),
            "topic" => {
                admin.put(&topic, &json!({ "active": false })).await.expect(200);
                admin.put(&topic, &json!({ "active": true })).await.expect(200);
            }
            _ => {
                admin.post("/admin/bans", &json!({ "session": ann.token })).await.expect(201);
            }
        }
        let state = within(SOON, end, holding).await.unwrap();
        assert_eq!(state, json!({ "status": "idle", "reason": reason }));
    }
}

#[tokio::test]
async fn a_session_may_hold_eight_connections_and_no_more() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    ann.join(topic, 2).await.expect(202);
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(ann.client.stream("/api/matching/events").await);
    }
    let mut sockets = Vec::new();
    for _ in 0..4 {
        sockets.push(ann.client.socket("/ws/matching").await.unwrap_or_else(|e| panic!("{e:?}")));
    }
    for answer in [
        ann.long_poll(1).await,
        ann.client.get("/api/matching/events").await,
        ann.client.socket("/ws/matching").await.err().expect("a ninth connection"),
    ] {
        answer.refused(429, "too_many_connections");
        assert_eq!(answer.retry_after(), 1);
    }
    // Nobody else's connections are touched, nor is a poll that is not held.
    assert_eq!(bob.long_poll(1).await.expect(200)["status"], "idle");
    assert_eq!(ann.state().await["status"], "waiting");
    drop(streams.pop());
    eventually("there is room again", async || {
        (ann.long_poll(1).await.status == 200).then_some(())
    })
    .await;
}
