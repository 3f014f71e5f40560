use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Metrics, Server, Settings};

#[tokio::test]
async fn health_and_readiness_say_that_all_is_well() {
    let server = Server::start().await;
    assert_eq!(server.client.get("/healthz").await.expect(200), json!({ "status": "ok" }));
    let ready = json!({ "status": "ready", "checks": { "store": "ok", "records": "ok" } });
    assert_eq!(server.client.get("/readyz").await.expect(200), ready);
}

#[tokio::test]
async fn metrics_count_what_happened() {
    let settings = Settings::new().set("fallback_after", "200ms");
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 2).await;
    server.seated(topic, 3).await;
    people[0].leave(&room).await.expect(204);
    let (ann, bob, cem) = (server.person().await, server.person().await, server.person().await);
    cem.join(topic, 2).await.expect(202);
    cem.cancel().await.expect(204);
    ann.join(topic, 3).await.expect(202);
    bob.join(topic, 3).await.expect(202);
    crate::harness::eventually("the fallback", async || {
        (ann.state().await["status"] == "matched").then_some(())
    })
    .await;
    ann.leave(ann.state().await["room_id"].as_str().unwrap()).await.expect(204);
    ann.join(topic, 3).await.expect(202);
    bob.join(topic, 2).await.expect(202);
    crate::harness::eventually("the merge", async || {
        (ann.state().await["status"] == "matched").then_some(())
    })
    .await;
    let elsewhere = server.topic("u").await;
    cem.join(elsewhere, 3).await.expect(202);
    server.client.get("/nowhere/secret").await.refused(404, "not_found");
    server.client.call("BREW", "/api/topics", None).await.refused(405, "method_not_allowed");

    let metrics = Metrics::of(&server.client).await;
    for (series, value) in [
        ("aiseki_rooms_formed_total{kind=\"full\"}", 2.0),
        ("aiseki_rooms_formed_total{kind=\"fallback\"}", 1.0),
        ("aiseki_rooms_formed_total{kind=\"merge\"}", 1.0),
        ("aiseki_rooms_ended_total", 2.0),
        ("aiseki_joins_total", 11.0),
        ("aiseki_waits_dropped_total{reason=\"left\"}", 1.0),
        ("aiseki_time_to_match_seconds_count", 9.0),
        ("aiseki_waiting_people{room_type=\"2\"}", 0.0),
        ("aiseki_waiting_people{room_type=\"3\"}", 1.0),
        ("aiseki_store_available", 1.0),
        ("aiseki_push_subscriptions", 0.0),
        (
            "aiseki_http_requests_total{method=\"DELETE\",route=\"/api/matching\",status=\"204\"}",
            1.0,
        ),
        ("aiseki_http_requests_total{method=\"GET\",route=\"unknown\",status=\"404\"}", 1.0),
        ("aiseki_http_requests_total{method=\"other\",route=\"/api/topics\",status=\"405\"}", 1.0),
    ] {
        assert!(
            (metrics.value(series) - value).abs() < 0.001,
            "{series}: {}",
            metrics.value(series)
        );
    }
    let oldest = metrics.value("aiseki_oldest_wait_seconds{room_type=\"3\"}");
    assert!(oldest > 0.0 && oldest < 60.0, "{oldest}");
    assert!(metrics.value("aiseki_http_connections") >= 1.0);
    assert!(metrics.value("aiseki_store_commit_seconds_count") >= 10.0);
    // A client's text is no label, and a room is not one either: series would never end.
    let leaked = metrics.names().find(|name| name.contains("secret") || name.contains(&room));
    assert_eq!(leaked, None);
}

#[tokio::test]
async fn the_description_of_the_interface_is_the_committed_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi.json");
    let committed = std::fs::read_to_string(path).expect("openapi.json at the root");
    let server = Server::start().await;
    let description = server.client.get("/openapi.json").await.expect(200);
    let committed: Value = serde_json::from_str(&committed).expect("JSON");
    assert!(
        description == committed,
        "openapi.json is out of date: \
         cargo run -p aiseki --example openapi > openapi.json, and read what has changed"
    );
}

#[tokio::test]
async fn the_description_names_every_refusal_that_a_call_makes() {
    let server = Server::start().await;
    let description = server.client.get("/openapi.json").await.expect(200);
    let paths = description["paths"].as_object().unwrap();
    for (path, methods) in paths {
        for (method, call) in methods.as_object().unwrap() {
            let responses = call["responses"].as_object().unwrap();
            let name = format!("{method} {path}");
            assert!(!call["summary"].as_str().unwrap_or_default().is_empty(), "{name}");
            let secured = call["security"].as_array().is_some_and(|all| {
                all.iter().all(|one| one.as_object().is_some_and(|schemes| !schemes.is_empty()))
            });
            assert!(!secured || responses.contains_key("401"), "{name}");
            if call.get("requestBody").is_some() {
                for status in ["400", "408", "413", "415"] {
                    assert!(responses.contains_key(status), "{name}: {status}");
                }
            }
        }
    }
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
}
