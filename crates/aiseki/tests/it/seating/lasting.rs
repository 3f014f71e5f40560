use serde_json::json;

use crate::harness::{Server, Settings, eventually};

#[tokio::test]
async fn case_3_somebody_who_is_never_heard_of_again_is_in_nobodys_way() {
    let server = Server::with(Settings::new().set("presence_timeout", "400ms")).await;
    let (topic, witness) = (server.topic("t").await, server.topic("u").await);
    let ann = server.person().await;
    ann.join(topic, 2).await.expect(202);
    server.person().await.join(witness, 2).await.expect(202);
    server.emptied(witness).await;
    let (bob, cem) = (server.person().await, server.person().await);
    bob.join(topic, 2).await.expect(202);
    let matched = cem.join(topic, 2).await.expect(200);
    assert_eq!(bob.state().await, matched);
    assert_eq!(ann.state().await, json!({ "status": "idle", "reason": "absent" }));
}

#[tokio::test]
async fn case_5_waiting_always_means_a_live_place() {
    let settings = Settings::new().set("wait_timeout", "1500ms").set("fallback_after", "1s");
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let ann = server.person().await;
    let first = ann.join(topic, 2).await.expect(202);
    let server = server.restart().await;
    let ann = ann.at(&server.client);
    let idle = eventually("the wait ends", async || {
        let state = ann.state().await;
        if state["status"] == "waiting" {
            // The place is there: the queue is not empty, and it is the same wait.
            assert_eq!(state["waiting_since"], first["waiting_since"]);
            return None;
        }
        Some(state)
    })
    .await;
    assert_eq!(idle, json!({ "status": "idle", "reason": "wait_expired" }));
    let queues = server.admin().get("/admin/queues").await.expect(200);
    assert_eq!(queues, json!({ "queues": [] }));
    let server = server.restart().await;
    assert_eq!(ann.at(&server.client).state().await, idle);
}

#[tokio::test]
async fn case_12_age_never_hides_a_ticket() {
    let settings = Settings::new().set("fallback_after", "200ms");
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    ann.join(topic, 3).await.expect(202);
    let witness = server.topic("u").await;
    let (cem, dora) = (server.person().await, server.person().await);
    cem.join(witness, 3).await.expect(202);
    dora.join(witness, 3).await.expect(202);
    eventually("the fallback time has passed", async || {
        assert_eq!(ann.state().await["status"], "waiting");
        (cem.state().await["status"] == "matched").then_some(())
    })
    .await;
    let matched = bob.join(topic, 3).await.expect(200);
    assert_eq!(matched["room_type"], 2);
    assert_eq!(ann.state().await["room_id"], matched["room_id"]);
}

#[tokio::test]
async fn case_21_after_a_wait_has_ended_nothing_of_it_is_left() {
    let settings = Settings::new().set("wait_timeout", "300ms").set("fallback_after", "200ms");
    let server = Server::with(settings).await;
    let (topic, other) = (server.topic("t").await, server.topic("u").await);
    let ann = server.person().await;
    ann.join(topic, 2).await.expect(202);
    eventually("the wait ends", async || {
        let answer = ann.join(other, 3).await;
        (answer.status == 202).then_some(())
    })
    .await;
    assert_eq!(ann.state().await["topic_id"], other);
    let bob = server.person().await;
    bob.join(topic, 2).await.expect(202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_25_and_30_restarts_cost_nobody_the_place() {
    let settings = Settings::new().set("room_types", "2,8");
    let mut server = Server::with(settings).await;
    let mut people = Vec::new();
    for _ in 0..10 {
        let topic = server.topic("t").await;
        for _ in 0..7 {
            let person = server.person().await;
            let state = person.join(topic, 8).await.expect(202);
            people.push((person, state));
        }
    }
    for _ in 0..3 {
        server = server.restart().await;
        for (person, state) in &people {
            assert_eq!(person.at(&server.client).state().await, *state);
        }
    }
    let off = json!({ "active": false });
    server.admin().put("/admin/topics/1", &off).await.expect(200);
    let server = server.restart().await;
    for (n, (person, state)) in people.iter().enumerate() {
        let now = person.at(&server.client).state().await;
        match n < 7 {
            true => assert_eq!(now, json!({ "status": "idle", "reason": "topic_closed" })),
            false => assert_eq!(now, *state),
        }
    }
}
