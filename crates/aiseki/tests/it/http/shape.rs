use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{Person, Server, Settings, within};

#[tokio::test]
async fn an_unknown_path_is_not_found_and_a_wrong_method_is_told_the_right_ones() {
    let server = Server::start().await;
    for path in [
        "/index.php",
        "/api",
        "/api/",
        "/api/matching/",
        "/API/matching",
        "//api/topics",
        "/x%FF",
        "/ws",
    ] {
        for method in ["GET", "POST", "DELETE", "OPTIONS", "BREW"] {
            server.client.call(method, path, None).await.refused(404, "not_found");
        }
    }
    for (method, path, allowed) in [
        ("PUT", "/api/matching", "DELETE,GET,HEAD,POST"),
        ("GET", "/api/session", "POST"),
        ("POST", "/api/topics", "GET,HEAD"),
        ("DELETE", "/healthz", "GET,HEAD"),
        ("GET", "/api/rooms/x/leave", "POST"),
        ("BREW", "/api/matching", "DELETE,GET,HEAD,POST"),
    ] {
        let answer = server.client.call(method, path, None).await;
        answer.refused(405, "method_not_allowed");
        let mut allow: Vec<_> = answer.header("allow").unwrap().split(',').map(str::trim).collect();
        allow.sort_unstable();
        assert_eq!(allow.join(","), allowed, "{answer:?}");
    }
}

#[tokio::test]
async fn no_answer_is_kept_by_anybody_or_guessed_at() {
    let server = Server::start().await;
    let ann = server.person().await;
    for path in ["/api/topics", "/api/matching", "/healthz", "/metrics", "/openapi.json"] {
        let answer = ann.client.get(path).await;
        assert_eq!(answer.status, 200);
        for (name, value) in [
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let server = Server::start().await;
    let answer = server.client.call("HEAD", "/api/topics", None).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
}

#[tokio::test]
async fn below_a_base_path_everything_stands_there_and_nothing_elsewhere() {
    let server = Server::with(Settings::new().set("base_path", "/talk/here")).await;
    let answer = server.client.call("POST", "/talk/here/api/session", None).await;
    let token = answer.expect(201)["token"].as_str().unwrap().to_owned();
    assert!(answer.header("set-cookie").unwrap().contains("; Path=/talk/here; "));
    let ann = server.client.bearer(&token);
    assert_eq!(ann.get("/talk/here/api/matching").await.expect(200)["status"], "idle");
    let mut socket = ann.socket("/talk/here/ws/matching").await.ok().unwrap();
    assert_eq!(socket.state().await["status"], "idle");
    server.client.get("/talk/here/healthz").await.expect(200);
    let described = server.client.get("/talk/here/openapi.json").await.expect(200);
    assert_eq!(described["servers"], json!([{ "url": "/talk/here" }]));
    for path in [
        "/",
        "/api/topics",
        "/healthz",
        "/talk",
        "/talk/",
        "/talk/here/nowhere",
        "/talk/hereapi/topics",
    ] {
        server.client.get(path).await.refused(404, "not_found");
    }
    let answer = server.client.call("PUT", "/talk/here/api/matching", None).await;
    answer.refused(405, "method_not_allowed");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_not_waited_for() {
    let server = Server::start().await;
    let ann = server.person().await;
    let head = format!(
        "POST /api/matching HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{{",
        ann.token
    );
    let answer = within(Duration::from_secs(15), "408", server.client.raw(head.as_bytes())).await;
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    assert!(answer.contains("content-type: application/problem+json\r\n"), "{answer}");
    assert!(answer.contains(r#""code":"request_timeout""#), "{answer}");
}

#[tokio::test]
async fn a_body_that_is_announced_too_large_is_refused_at_once() {
    let server = Server::start().await;
    let ann = server.person().await;
    for (length, expect) in
        [("10000000000", ""), ("16385", ""), ("16385", "Expect: 100-continue\r\n")]
    {
        let head = format!(
            "POST /api/matching HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n{expect}\
             Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n",
            ann.token
        );
        let answer =
            within(Duration::from_secs(5), "413", server.client.raw(head.as_bytes())).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{length} {expect}: {answer}");
        assert!(answer.contains(r#""code":"body_too_large""#), "{answer}");
    }
}

#[tokio::test]
async fn a_request_names_one_host() {
    let server = Server::start().await;
    for hosts in ["", "Host: x\r\nHost: y\r\n", "Host: x\r\nHost: x\r\n"] {
        for path in ["/healthz", "/api/topics", "/"] {
            let request = format!("GET {path} HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n");
            let answer = server.client.raw(request.as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
            assert!(answer.contains(r#""code":"invalid_request""#), "{answer}");
        }
    }
    // HTTP/1.0 knows no hosts, and load balancers ask with it how a server is.
    let answer = server.client.raw(b"GET /healthz HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
}

#[tokio::test]
async fn heads_that_are_too_large_or_no_http_are_refused() {
    let server = Server::start().await;
    let long = "x".repeat(20_000);
    let many = "a: b\r\n".repeat(200);
    for (request, status) in [
        (format!("GET /api/topics HTTP/1.1\r\nHost: x\r\nX: {long}\r\n\r\n"), 431),
        (format!("GET /api/topics HTTP/1.1\r\nHost: x\r\n{many}\r\n"), 431),
        (format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"), 431),
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHo st: x\r\n\r\n".to_owned(), 400),
    ] {
        let answer = server.client.raw(request.as_bytes()).await;
        let line = format!("HTTP/1.1 {status} ");
        // What is sent beyond the limit may reset the connection before the answer is read.
        let reset = answer.is_empty() && request.len() > 16 * 1024;
        assert!(answer.starts_with(&line) || reset, "{answer}");
    }
    server.client.get("/api/topics").await.expect(200);
}

#[tokio::test]
async fn a_body_in_chunks_is_read_like_any_other() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let ann = server.person().await;
    let head = format!(
        "POST /api/matching HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        ann.token
    );
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let body = [chunk("{\"topic_id\":"), chunk(&format!("{topic},\"room_type\":2}}")), chunk("")];
    let answer = server.client.raw((head.clone() + &body.concat()).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 202 Accepted\r\n"), "{answer}");
    let large = [chunk(&" ".repeat(10_000)), chunk(&" ".repeat(10_000)), chunk("")];
    let answer = server.client.raw((head + &large.concat()).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413 Payload Too Large\r\n"), "{answer}");
    assert!(answer.contains(r#""code":"body_too_large""#), "{answer}");
}

#[tokio::test]
async fn who_hangs_up_right_after_sending_has_joined_all_the_same() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    for _ in 0..20 {
        let ann: Person = server.person().await;
        let body = json!({ "topic_id": topic, "room_type": 2 }).to_string();
        let request = format!(
            "POST /api/matching HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            ann.token,
            body.len()
        );
        let mut stream = TcpStream::connect(server.client.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        drop(stream);
        crate::harness::eventually("the join happens", async || {
            (ann.state().await["status"] == "waiting").then_some(())
        })
        .await;
        ann.cancel().await.expect(204);
    }
}

#[tokio::test]
async fn several_requests_on_one_connection_are_answered_in_order() {
    let server = Server::start().await;
    let request = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n\
                   GET /api/topics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let mut stream = TcpStream::connect(server.client.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let statuses: Vec<_> =
        answer.match_indices("HTTP/1.1 ").map(|(i, _)| &answer[i + 9..i + 12]).collect();
    assert_eq!(statuses, ["200", "404", "200"]);
}
