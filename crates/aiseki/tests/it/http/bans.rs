use serde_json::{Value, json};

use crate::harness::{Server, Settings};

async fn ban(server: &Server, body: Value) -> Value {
    server.admin().post("/admin/bans", &body).await.expect(201)
}

#[tokio::test]
async fn a_banned_session_is_taken_out_and_kept_out_until_the_ban_is_lifted() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    ann.join(topic, 2).await.expect(202);
    let made = ban(&server, json!({ "session": ann.token, "reason": "rude" })).await;
    assert_eq!((&made["reason"], &made["address"]), (&json!("rude"), &json!(null)));
    let session = made["session"].as_str().unwrap();
    assert_eq!(session.len(), 32);
    assert_eq!(ann.state().await, json!({ "status": "idle", "reason": "banned" }));
    ann.join(topic, 2).await.refused(403, "banned");
    bob.join(topic, 2).await.expect(202);

    let admin = server.admin();
    let listed = admin.get("/admin/bans").await.expect(200);
    assert_eq!(listed, json!({ "bans": [made] }));
    // The id of the list is as good as the token.
    let second = ban(&server, json!({ "session": session })).await;
    let path = |ban: &Value| format!("/admin/bans/{}", ban["id"]);
    admin.delete(&path(&made)).await.expect(204);
    ann.join(topic, 2).await.refused(403, "banned");
    admin.delete(&path(&second)).await.expect(204);
    admin.delete(&path(&second)).await.refused(404, "not_found");
    assert_eq!(ann.join(topic, 2).await.expect(200)["status"], "matched");
    let third = ban(&server, json!({ "session": session })).await;
    assert!(third["id"].as_i64() > second["id"].as_i64(), "a number is never used again");
    // Somebody banned is removed from the room as well.
    assert_eq!(ann.state().await, json!({ "status": "idle", "reason": "banned" }));
}

#[tokio::test]
async fn a_banned_network_covers_everybody_in_it() {
    let settings = Settings::new().set("trusted_proxies", "127.0.0.1");
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    for (banned, shown, inside, outside) in [
        ("192.0.2.7", "192.0.2.7", "192.0.2.7", "192.0.2.8"),
        ("192.0.2.7/24", "192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
        ("::ffff:192.0.2.7", "192.0.2.7", "192.0.2.7", "192.0.2.8"),
        ("::ffff:192.0.2.0/120", "192.0.2.0/24", "192.0.2.9", "192.0.3.0"),
        ("2001:db8::/64", "2001:db8::/64", "2001:db8::1:2", "2001:db8:0:1::"),
        ("2001:db8::1", "2001:db8::1", "2001:db8::1", "2001:db8::2"),
    ] {
        let (ann, bob, cem) = (server.person().await, server.person().await, server.person().await);
        let at = |person: &crate::harness::Person, address: &str| crate::harness::Person {
            client: person.client.with("x-forwarded-for", address),
            token: person.token.clone(),
        };
        let (ann, bob, cem) = (at(&ann, inside), at(&bob, outside), at(&cem, inside));
        ann.join(topic, 3).await.expect(202);
        bob.join(topic, 3).await.expect(202);
        let made = ban(&server, json!({ "address": banned })).await;
        assert_eq!(made["address"], shown);
        assert_eq!(ann.state().await["reason"], "banned", "{banned}");
        assert_eq!(bob.state().await["status"], "waiting", "{banned}");
        cem.join(topic, 3).await.refused(403, "banned");
        bob.cancel().await.expect(204);
        server.admin().delete(&format!("/admin/bans/{}", made["id"])).await.expect(204);
        cem.join(topic, 3).await.expect(202);
        cem.cancel().await.expect(204);
    }
}

#[tokio::test]
async fn the_address_that_counts_is_that_of_the_join_that_was_accepted() {
    let settings = Settings::new().set("trusted_proxies", "127.0.0.1");
    let server = Server::with(settings).await;
    let (topic, other) = (server.topic("t").await, server.topic("u").await);
    let ann = server.person().await;
    let from = |address| crate::harness::Person {
        client: ann.client.with("x-forwarded-for", address),
        token: ann.token.clone(),
    };
    from("192.0.2.1").join(topic, 2).await.expect(202);
    from("192.0.2.2").join(other, 2).await.refused(409, "already_waiting");
    ban(&server, json!({ "address": "192.0.2.2" })).await;
    assert_eq!(ann.state().await["status"], "waiting");
    ban(&server, json!({ "address": "192.0.2.1" })).await;
    assert_eq!(ann.state().await["reason"], "banned");
}

#[tokio::test]
async fn a_ban_ends_at_its_time() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let ann = server.person().await;
    let since = ann.join(topic, 2).await.expect(202)["waiting_since"].clone();
    let since: jiff::Timestamp = since.as_str().unwrap().parse().unwrap();
    let soon = (since + jiff::SignedDuration::from_secs(2)).to_string();
    let made = ban(&server, json!({ "session": ann.token, "expires_at": soon })).await;
    assert!(made["expires_at"].is_string());
    for end in ["9999-12-31T23:59:59Z", "9999-12-30T23:00:00Z", "9999-12-31T23:59:59.999+09:00"] {
        let made = ban(&server, json!({ "session": ann.token, "expires_at": end })).await;
        assert!(made["expires_at"].as_str().unwrap().starts_with("9999-12-3"), "{made}");
        server.admin().delete(&format!("/admin/bans/{}", made["id"])).await.expect(204);
    }
    ann.join(topic, 2).await.refused(403, "banned");
    crate::harness::eventually("the ban ends", async || {
        (ann.join(topic, 2).await.status == 202).then_some(())
    })
    .await;
    let listed = server.admin().get("/admin/bans").await.expect(200);
    assert_eq!(listed, json!({ "bans": [] }));
}

#[tokio::test]
async fn what_cannot_be_banned_is_refused() {
    let server = Server::start().await;
    let admin = server.admin();
    let id = "0123456789abcdef0123456789abcdef";
    for body in [
        json!({}),
        json!({ "reason": "x" }),
        json!({ "session": id, "address": "192.0.2.1" }),
        json!({ "session": "x" }),
        json!({ "session": &id[1..] }),
        json!({ "session": format!("+{}", &id[1..]) }),
        json!({ "address": "example.org" }),
        json!({ "address": "192.0.2.0/33" }),
        json!({ "address": "192.0.2.1:80" }),
        json!({ "address": "" }),
        json!({ "session": id, "reason": "x".repeat(501) }),
        json!({ "session": id, "expires_at": "tomorrow" }),
        json!({ "session": id, "expires_at": "9999-12-32T00:00:00Z" }),
        json!({ "session": id, "expires_at": "9999-12-31T25:00:00Z" }),
        json!({ "session": id, "expires_at": "2020-01-01T00:00:00Z" }),
        json!({ "session": id, "expires_at": "2020-01-01" }),
    ] {
        admin.post("/admin/bans", &body).await.refused(400, "invalid_ban");
    }
    assert_eq!(admin.get("/admin/bans").await.expect(200), json!({ "bans": [] }));
    for id in ["1", "x", "-1", "%FF"] {
        admin.delete(&format!("/admin/bans/{id}")).await.refused(404, "not_found");
    }
}
