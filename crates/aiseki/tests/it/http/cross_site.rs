use serde_json::json;

use crate::harness::{Client, Server, Settings};

const FRIEND: &str = "https://friend.example";

/// The headers of a request, with what they mean to a server that trusts [`FRIEND`].
fn origins(own: &str) -> Vec<(Vec<(&'static str, String)>, bool)> {
    let own = format!("http://{own}");
    let origin = |text: &str| ("origin", text.to_owned());
    let site = |text: &str| ("sec-fetch-site", text.to_owned());
    vec![
        (vec![], true),
        (vec![origin(&own)], true),
        (vec![origin(&own), site("same-origin")], true),
        (vec![site("same-origin")], true),
        (vec![site("none")], true),
        (vec![origin(FRIEND)], true),
        (vec![origin(FRIEND), site("cross-site")], true),
        (vec![origin("HTTPS://Friend.example")], true),
        (vec![origin("https://evil.example")], false),
        (vec![origin("https://evil.example"), site("cross-site")], false),
        (vec![origin("https://friend.example.evil.example")], false),
        (vec![origin("https://friend.example:444")], false),
        (vec![origin("http://friend.example")], false),
        (vec![origin("null")], false),
        (vec![origin("")], false),
        (vec![site("cross-site")], false),
        (vec![site("same-site")], false),
        (vec![origin(&own), site("same-site")], false),
    ]
}

fn with(client: &Client, headers: &[(&'static str, String)]) -> Client {
    headers.iter().fold(client.clone(), |client, (name, value)| client.with(name, value))
}

#[tokio::test]
async fn a_foreign_page_cannot_use_the_cookie() {
    let server = Server::with(Settings::new().set("allowed_origins", FRIEND)).await;
    let topic = server.topic("t").await;
    let ann = server.person().await;
    ann.join(topic, 2).await.expect(202);
    let cookie = server.client.cookie(&ann.token);
    for (headers, allowed) in origins(&server.client.address.to_string()) {
        let client = with(&cookie, &headers);
        let body = json!({ "topic_id": topic, "room_type": 2 });
        for answer in [
            client.post("/api/matching", &body).await,
            client.get("/api/matching").await,
            client.call("POST", "/api/session", None).await,
        ] {
            match allowed {
                true => assert!(answer.status < 300, "{headers:?}: {answer:?}"),
                false => drop(answer.refused(403, "cross_site")),
            }
        }
        if !allowed {
            client.delete("/api/matching").await.refused(403, "cross_site");
            client.get("/api/matching/events").await.refused(403, "cross_site");
            client.get("/nowhere").await.refused(403, "cross_site");
        }
        // With the token in a header it is the page's own doing.
        with(&ann.client, &headers).get("/api/matching").await.expect(200);
    }
    assert_eq!(ann.state().await["status"], "waiting");
}

#[tokio::test]
async fn a_foreign_page_cannot_replace_the_session_of_the_browser() {
    let server = Server::with(Settings::new().set("allowed_origins", FRIEND)).await;
    for (headers, allowed) in origins(&server.client.address.to_string()) {
        // A form of such a page: the browser sends no cookie with it, and would take one.
        let answer = with(&server.client, &headers).call("POST", "/api/session", None).await;
        answer.expect(201);
        assert_eq!(answer.header("set-cookie").is_some(), allowed, "{headers:?}");
    }
}

#[tokio::test]
async fn a_foreign_page_cannot_open_a_socket_with_whatever_it_has() {
    let server = Server::with(Settings::new().set("allowed_origins", FRIEND)).await;
    let ann = server.person().await;
    let offered = format!("aiseki.token.{}", ann.token);
    let offering = server.client.with("sec-websocket-protocol", &offered);
    for (headers, allowed) in origins(&server.client.address.to_string()) {
        for client in [&server.client.cookie(&ann.token), &offering, &ann.client] {
            let socket = with(client, &headers).socket("/ws/matching").await;
            match socket {
                Ok(mut socket) => {
                    assert!(allowed, "{headers:?}");
                    assert_eq!(socket.state().await["status"], "idle");
                }
                Err(answer) => {
                    assert!(!allowed, "{headers:?}");
                    answer.refused(403, "cross_site");
                }
            }
        }
    }
}

#[tokio::test]
async fn pages_of_allowed_origins_may_read_the_answers_and_others_may_not() {
    let server = Server::with(Settings::new().set("allowed_origins", FRIEND)).await;
    let ann = server.person().await;
    let preflight = |origin: &str| {
        let client = server
            .client
            .with("origin", origin)
            .with("access-control-request-method", "POST")
            .with("access-control-request-headers", "authorization,content-type");
        async move { client.call("OPTIONS", "/api/matching", None).await }
    };
    let answer = preflight(FRIEND).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), Some(FRIEND));
    assert_eq!(answer.header("access-control-allow-credentials"), Some("true"));
    for (name, words) in [
        ("access-control-allow-methods", &["GET", "POST", "PUT", "DELETE"][..]),
        ("access-control-allow-headers", &["authorization", "content-type"]),
    ] {
        let value = answer.header(name).unwrap().to_owned();
        assert!(words.iter().all(|word| value.contains(word)), "{value}");
    }
    let refused = preflight("https://evil.example").await;
    assert_eq!(refused.header("access-control-allow-origin"), None);

    // Refusals can be read too, or a page could not tell what is wrong.
    let friend = server.client.with("origin", FRIEND);
    for answer in [
        ann.client.with("origin", FRIEND).get("/api/matching").await,
        friend.get("/api/matching").await,
        friend.get("/nowhere").await,
        friend.call("PATCH", "/api/matching", None).await,
    ] {
        assert_eq!(answer.header("access-control-allow-origin"), Some(FRIEND), "{answer:?}");
        assert_eq!(answer.header("access-control-allow-credentials"), Some("true"));
        let vary = answer.headers.get_all("vary").iter();
        let vary: Vec<_> = vary.map(|value| value.to_str().unwrap().to_lowercase()).collect();
        assert!(vary.join(",").contains("origin"), "{answer:?}");
    }
    let evil = ann.client.with("origin", "https://evil.example").get("/api/matching").await;
    assert_eq!((evil.status, evil.header("access-control-allow-origin")), (200, None));
}

#[tokio::test]
async fn without_allowed_origins_nothing_is_said_of_them() {
    let server = Server::start().await;
    let client = server.client.with("origin", FRIEND).with("access-control-request-method", "POST");
    let answer = client.call("OPTIONS", "/api/matching", None).await;
    answer.refused(405, "method_not_allowed");
    assert_eq!(answer.header("access-control-allow-origin"), None);
}
