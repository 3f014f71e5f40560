use serde_json::json;

use crate::harness::{Server, Settings};

#[tokio::test]
async fn joining_waits_and_the_second_is_matched_at_once() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    let waiting = ann.join(topic, 2).await.expect(202);
    assert_eq!(waiting["status"], "waiting");
    assert_eq!((&waiting["topic_id"], &waiting["room_type"]), (&json!(topic), &json!(2)));
    assert_eq!((&waiting["ahead"], &waiting["poll_after_ms"]), (&json!(0), &json!(2000)));
    let since = waiting["waiting_since"].as_str().unwrap();
    assert!(since.len() == 24 && since.ends_with('Z'), "{since}");
    assert!(waiting["expires_at"].as_str().unwrap() > since);
    assert!(waiting.get("fallback_at").is_none(), "rooms of two fall back to nothing");

    let matched = bob.join(topic, 2).await.expect(200);
    assert_eq!(matched["status"], "matched");
    assert_eq!((&matched["topic_id"], &matched["room_type"]), (&json!(topic), &json!(2)));
    assert_eq!(matched["requested_room_type"], 2);
    assert!(matched["matched_at"].as_str().unwrap() >= since);
    assert_eq!(ann.state().await, matched);
}

#[tokio::test]
async fn a_room_type_with_a_fallback_says_when_it_falls_back() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let waiting = server.person().await.join(topic, 3).await.expect(202);
    let (since, fallback) = (&waiting["waiting_since"], &waiting["fallback_at"]);
    assert!(fallback.as_str().unwrap() > since.as_str().unwrap());
    assert!(waiting["expires_at"].as_str().unwrap() > fallback.as_str().unwrap());
}

#[tokio::test]
async fn a_body_that_is_not_of_this_shape_is_refused_before_the_session_is_asked() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let ann = server.person().await;
    for client in [&server.client, &ann.client] {
        for body in [
            "",
            "{",
            "null",
            "42",
            "[]",
            "{}",
            "\u{feff}{}",
            r#"{"topic_id":1}"#,
            r#"{"room_type":2}"#,
            r#"{"topic_id":"1","room_type":2}"#,
            r#"{"topic_id":1.5,"room_type":2}"#,
            r#"{"topic_id":1,"room_type":2.0}"#,
            r#"{"topic_id":null,"room_type":2}"#,
            r#"{"topic_id":99999999999999999999,"room_type":2}"#,
            r#"{"topic_id":1,"room_type":2} x"#,
            r#"{"topic_id":1,"topic_id":1,"room_type":2}"#,
            "[1,2]",
        ] {
            let answer = client.call("POST", "/api/matching", Some(body.into())).await;
            answer.refused(400, "invalid_body");
        }
        let fits = format!(r#"{{"topic_id":{topic},"room_type":2,"x":"{}"}}"#, "y".repeat(16_000));
        let answer = client.call("POST", "/api/matching", Some(fits)).await;
        assert!([202, 401].contains(&answer.status), "{answer:?}");
        for length in [16 * 1024 + 1, 100_000, 4_000_000] {
            let body = format!("{{\"x\":\"{}\"}}", "y".repeat(length));
            let answer = client.call("POST", "/api/matching", Some(body)).await;
            answer.refused(413, "body_too_large");
        }
        let body = json!({ "topic_id": topic, "room_type": 2 });
        for other in ["text/plain", "application/x-www-form-urlencoded", "json", ""] {
            let client = client.with("content-type", other);
            client.post("/api/matching", &body).await.refused(415, "unsupported_media_type");
        }
        for json in ["application/json", "Application/JSON; charset=utf-8", "application/x+json"] {
            let answer = client.with("content-type", json).post("/api/matching", &body).await;
            assert!([202, 401].contains(&answer.status), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn unknown_members_of_the_body_are_ignored() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let ann = server.person().await;
    let body = json!({ "topic_id": topic, "room_type": 2, "mood": { "good": true } });
    ann.client.post("/api/matching", &body).await.expect(202);
}

#[tokio::test]
async fn each_check_answers_before_those_after_it() {
    let settings = Settings::new().set("rate_limit", "9/1h").set("address_rate_limit", "1000/1h");
    let server = Server::with(settings).await;
    let (open, other) = (server.topic("open").await, server.topic("other").await);
    let closed = server.topic("closed").await;
    let admin = server.admin();
    admin.put(&format!("/admin/topics/{closed}"), &json!({ "active": false })).await.expect(200);
    let unknown = 4711;

    // The room type comes before the limit: none of these counts, however many there are.
    let ann = server.person().await;
    for room_type in [0, 1, 4, 8, 255] {
        for topic in [open, unknown] {
            ann.join(topic, room_type).await.refused(400, "invalid_room_type");
        }
    }
    for room_type in [-1, 256, 258, i64::MAX] {
        let body = json!({ "topic_id": open, "room_type": room_type });
        ann.client.post("/api/matching", &body).await.refused(400, "invalid_room_type");
    }
    // The topic comes before the conflicts.
    ann.join(open, 3).await.expect(202);
    ann.join(unknown, 2).await.refused(400, "unknown_topic");
    ann.join(closed, 2).await.refused(400, "inactive_topic");
    let waiting = ann.state().await;
    let conflict = ann.join(other, 2).await.refused(409, "already_waiting");
    assert_eq!(conflict["state"], waiting);
    ann.join(open, 2).await.refused(409, "already_waiting");
    // A retry is no attempt.
    for _ in 0..20 {
        let again = ann.join(open, 3).await.expect(202);
        assert_eq!(again["waiting_since"], waiting["waiting_since"]);
    }
    let (bob, cem) = (server.person().await, server.person().await);
    bob.join(open, 3).await.expect(202);
    let matched = cem.join(open, 3).await.expect(200);
    let conflict = ann.join(open, 3).await.refused(409, "already_matched");
    assert_eq!(
        conflict["state"],
        json!({ "status": "matched", "room_id": matched["room_id"],
        "topic_id": open, "room_type": 3, "requested_room_type": 3,
        "matched_at": matched["matched_at"] })
    );
    ann.join(other, 2).await.refused(409, "already_matched");
    ann.join(unknown, 2).await.refused(400, "unknown_topic");

    // The ban comes before the topic, and the limit before the ban: eight attempts were counted.
    let ban = json!({ "session": ann.token, "reason": "test" });
    admin.post("/admin/bans", &ban).await.expect(201);
    ann.join(unknown, 2).await.refused(403, "banned");
    ann.join(unknown, 9).await.refused(400, "invalid_room_type");
    let limited = ann.join(unknown, 2).await;
    limited.refused(429, "rate_limited");
    assert!((390..=400).contains(&limited.retry_after()), "{limited:?}");
    // The shape of the body, and the session, come before everything.
    ann.client.call("POST", "/api/matching", Some("{".into())).await.refused(400, "invalid_body");
}

#[tokio::test]
async fn the_limit_of_an_address_counts_all_its_people() {
    let settings = Settings::new().set("rate_limit", "30/1m").set("address_rate_limit", "4/1h");
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    ann.join(topic, 3).await.expect(202);
    bob.join(topic, 3).await.expect(202);
    ann.join(topic, 3).await.expect(202);
    let limited = bob.join(topic, 2).await;
    limited.refused(429, "rate_limited");
    // One of four comes back in a quarter of an hour.
    assert!((890..=900).contains(&limited.retry_after()), "{limited:?}");
    // Polling and cancelling are not limited.
    for _ in 0..10 {
        assert_eq!(bob.state().await["status"], "waiting");
    }
    assert_eq!(bob.cancel().await.status, 204);
}

#[tokio::test]
async fn the_limit_lets_the_burst_through_and_then_as_many_as_refill() {
    let settings = Settings::new().set("rate_limit", "2/2s").set("address_rate_limit", "1000/1s");
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let ann = server.person().await;
    ann.join(topic, 2).await.expect(202);
    ann.join(topic, 3).await.refused(409, "already_waiting");
    let limited = ann.join(topic, 3).await;
    limited.refused(429, "rate_limited");
    assert_eq!(limited.retry_after(), 1, "parts of a second are rounded up");
    crate::harness::eventually("the limit refills", async || {
        (ann.join(topic, 3).await.status == 409).then_some(())
    })
    .await;
}
