use crate::harness::{Server, Settings};

#[tokio::test]
async fn a_new_session_is_a_token_and_a_cookie_of_the_same_value() {
    let server = Server::start().await;
    let answer = server.client.call("POST", "/api/session", None).await;
    let session = answer.expect(201);
    let token = session["token"].as_str().unwrap();
    assert!(session["expires_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(
        answer.header("set-cookie").unwrap(),
        format!("aiseki_session={token}; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax")
    );
    let state = server.client.cookie(token).get("/api/matching").await.expect(200);
    assert_eq!(state, serde_json::json!({ "status": "idle" }));
}

#[tokio::test]
async fn a_valid_session_is_renewed_and_stays_the_same_person() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let ann = server.person().await;
    ann.join(topic, 2).await.expect(202);
    for client in [ann.client.clone(), server.client.cookie(&ann.token)] {
        let answer = client.call("POST", "/api/session", None).await;
        let token = answer.expect(200)["token"].as_str().unwrap().to_owned();
        assert!(answer.header("set-cookie").unwrap().contains(&token));
        let state = server.client.bearer(&token).get("/api/matching").await.expect(200);
        assert_eq!(state["status"], "waiting");
    }
    // A token that is none makes a new person instead of an error: it is how a client starts over.
    let answer = server.client.bearer("v1.1.nonsense.x").call("POST", "/api/session", None).await;
    answer.expect(201);
}

#[tokio::test]
async fn the_cookie_is_secure_only_where_a_trusted_proxy_says_so() {
    let settings = Settings::new().set("trusted_proxies", "127.0.0.1");
    let (trusting, plain) = (Server::with(settings).await, Server::start().await);
    for (server, proto, secure) in [
        (&trusting, "https", true),
        (&trusting, "http, https", true),
        (&trusting, "http", false),
        (&plain, "https", false),
    ] {
        let client = server.client.with("x-forwarded-proto", proto);
        let answer = client.call("POST", "/api/session", None).await;
        let cookie = answer.header("set-cookie").unwrap();
        assert_eq!(cookie.ends_with("; Secure"), secure, "{proto}: {cookie}");
    }
}

#[tokio::test]
async fn a_bearer_token_beats_the_cookie_also_when_it_is_bad() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    ann.join(topic, 2).await.expect(202);
    let both = server.client.cookie(&ann.token).bearer(&bob.token);
    assert_eq!(both.get("/api/matching").await.expect(200)["status"], "idle");
    for authorization in ["Bearer nonsense", "Bearer ", "Bearer", "Basic YTpi", ""] {
        let client = server.client.cookie(&ann.token).with("authorization", authorization);
        client.get("/api/matching").await.refused(401, "unauthenticated");
    }
    let lower = server.client.with("authorization", &format!("bearer {}", ann.token));
    assert_eq!(lower.get("/api/matching").await.expect(200)["status"], "waiting");
}

#[tokio::test]
async fn of_several_cookies_the_valid_one_counts() {
    let server = Server::start().await;
    let ann = server.person().await;
    let list = format!("a=b; aiseki_session=stale; aiseki_session={}; c", ann.token);
    server.client.with("cookie", &list).get("/api/matching").await.expect(200);
}

#[tokio::test]
async fn without_a_valid_token_every_call_of_a_person_is_refused() {
    let server = Server::start().await;
    let room = "/api/rooms/0197f3a1-5b2c-7d4e-8f90-a1b2c3d4e5f6";
    let elsewhere = Server::start().await.person().await.token;
    let ann = server.person().await.token;
    let forged = format!("{}A", &ann[..ann.len() - 1]);
    let long = "v".repeat(4000);
    let clients = [
        server.client.clone(),
        server.client.bearer("nonsense"),
        server.client.bearer(&forged),
        server.client.bearer(&elsewhere),
        server.client.bearer(&long),
        server.client.cookie(&elsewhere),
    ];
    for client in clients {
        if client.clone().with("x", "y").get("/api/matching").await.status == 200 {
            // The last character may have been `A` already.
            assert_eq!(forged, ann);
            continue;
        }
        let body = serde_json::json!({ "topic_id": 1, "room_type": 2 });
        for answer in [
            client.get("/api/matching").await,
            client.get("/api/matching?wait=1").await,
            client.delete("/api/matching").await,
            client.post("/api/matching", &body).await,
            client.get("/api/matching/events").await,
            client.get("/ws/matching").await,
            client.get(room).await,
            client.call("POST", &format!("{room}/leave"), None).await,
        ] {
            answer.refused(401, "unauthenticated");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{answer:?}");
        }
        client.socket("/ws/matching").await.err().unwrap().refused(401, "unauthenticated");
    }
}

#[tokio::test]
async fn new_sessions_of_an_address_are_limited_and_renewals_are_not() {
    let settings = Settings::new().set("rate_limit", "30/1m").set("address_rate_limit", "3/1h");
    let server = Server::with(settings).await;
    let ann = server.person().await;
    let _ = (server.person().await, server.person().await);
    let refused = server.client.call("POST", "/api/session", None).await;
    refused.refused(429, "rate_limited");
    assert!((1190..=1200).contains(&refused.retry_after()), "{refused:?}");
    for _ in 0..10 {
        ann.client.call("POST", "/api/session", None).await.expect(200);
    }
}

#[tokio::test]
async fn sessions_are_limited_by_the_address_that_a_trusted_proxy_names() {
    let settings = Settings::new()
        .set("rate_limit", "30/1m")
        .set("address_rate_limit", "1/1h")
        .set("trusted_proxies", "127.0.0.0/8");
    let server = Server::with(settings).await;
    let from = |list: &'static str| {
        let client = server.client.with("x-forwarded-for", list);
        async move { client.call("POST", "/api/session", None).await }
    };
    from("192.0.2.1").await.expect(201);
    from("192.0.2.1").await.refused(429, "rate_limited");
    // What a client claims to be in front of it does not help.
    from("198.51.100.7, 192.0.2.1").await.refused(429, "rate_limited");
    from("192.0.2.2").await.expect(201);
    // All addresses of an IPv6 subscriber count as one.
    from("2001:db8::1").await.expect(201);
    from("2001:db8::2").await.refused(429, "rate_limited");
    from("2001:db8:0:1::1").await.expect(201);
}
