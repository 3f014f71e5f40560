use crate::harness::{ADMIN_TOKEN, Server, Settings};

const CALLS: [(&str, &str); 9] = [
    ("GET", "/admin/topics"),
    ("POST", "/admin/topics"),
    ("PUT", "/admin/topics/1"),
    ("GET", "/admin/bans"),
    ("POST", "/admin/bans"),
    ("DELETE", "/admin/bans/1"),
    ("GET", "/admin/queues"),
    ("GET", "/admin/rooms"),
    ("POST", "/admin/rooms/0197f3a1-5b2c-7d4e-8f90-a1b2c3d4e5f6/close"),
];

#[tokio::test]
async fn without_an_admin_token_there_are_no_routes_of_operators() {
    let server = Server::with(Settings::new().unset("admin_token")).await;
    let clients = [
        server.client.clone(),
        server.client.bearer(ADMIN_TOKEN),
        server.client.bearer(""),
        server.person().await.client,
    ];
    for (method, path) in CALLS {
        for client in &clients {
            client.call(method, path, None).await.refused(404, "not_found");
            client.call(method, path, Some("{".into())).await.refused(404, "not_found");
            // Nor is there a method that another one could be wrong for.
            let answer = client.call("OPTIONS", path, None).await;
            answer.refused(404, "not_found");
            assert_eq!(answer.header("allow"), None, "{answer:?}");
        }
    }
}

#[tokio::test]
async fn a_wrong_or_missing_admin_token_is_refused_whatever_is_sent() {
    let server = Server::start().await;
    let person = server.person().await;
    let clients = [
        server.client.clone(),
        server.client.bearer("wrong"),
        server.client.bearer(&ADMIN_TOKEN[1..]),
        server.client.bearer(&format!("{ADMIN_TOKEN}x")),
        server.client.bearer(&ADMIN_TOKEN.to_uppercase()),
        server.client.cookie(ADMIN_TOKEN),
        person.client,
    ];
    for (method, path) in CALLS {
        for client in &clients {
            let answer = client.call(method, path, Some("{".into())).await;
            answer.refused(401, "unauthenticated");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
    }
    // The token of operators is nobody's session.
    server.admin().get("/api/matching").await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn the_bodies_of_operators_are_checked_like_everybody_elses() {
    let server = Server::start().await;
    server.topic("t").await;
    let admin = server.admin();
    for (method, path) in
        [("POST", "/admin/topics"), ("PUT", "/admin/topics/1"), ("POST", "/admin/bans")]
    {
        for body in ["", "{", "[]", "null", r#"{"title":1}"#, r#"["t",true]"#] {
            // A ban has no title, and ignores one.
            if path != "/admin/bans" || body != r#"{"title":1}"# {
                let answer = admin.call(method, path, Some(body.into())).await;
                answer.refused(400, "invalid_body");
            }
        }
        let text = admin.with("content-type", "text/plain");
        let answer = text.call(method, path, Some("{}".into())).await;
        answer.refused(415, "unsupported_media_type");
        let answer = admin.call(method, path, Some(format!("\"{}\"", "x".repeat(17_000))));
        answer.await.refused(413, "body_too_large");
    }
}
