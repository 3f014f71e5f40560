use serde_json::json;

use crate::harness::{Server, Settings, eventually};

#[tokio::test]
async fn cancelling_is_idempotent_and_leaves_its_reason() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    assert_eq!(ann.cancel().await.expect(204), json!(null));
    assert_eq!(ann.state().await, json!({ "status": "idle" }), "nothing has ended");
    ann.join(topic, 2).await.expect(202);
    for _ in 0..3 {
        ann.cancel().await.expect(204);
        assert_eq!(ann.state().await, json!({ "status": "idle", "reason": "left" }));
    }
    assert_eq!(bob.join(topic, 2).await.expect(202)["ahead"], 0);
    // The old wait is over: a new one begins anew, and is not served before those who came meanwhile.
    assert_eq!(ann.join(topic, 2).await.expect(200)["status"], "matched");
}

#[tokio::test]
async fn cancelling_after_the_match_is_refused_with_the_room() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 2).await;
    let conflict = people[0].cancel().await.refused(409, "already_matched");
    assert_eq!(conflict["state"]["room_id"], room);
    assert_eq!(people[0].state().await["status"], "matched");
}

#[tokio::test]
async fn those_before_one_in_the_queue_are_counted() {
    let settings = Settings::new().set("room_types", "5");
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let mut people = Vec::new();
    for ahead in 0..4 {
        let person = server.person().await;
        assert_eq!(person.join(topic, 5).await.expect(202)["ahead"], ahead);
        people.push(person);
    }
    people[1].cancel().await.expect(204);
    assert_eq!(people[3].state().await["ahead"], 2);
}

#[tokio::test]
async fn somebody_who_has_waited_for_the_fallback_time_is_seated_with_fewer() {
    let settings = Settings::new().set("fallback_after", "300ms");
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    ann.join(topic, 3).await.expect(202);
    bob.join(topic, 3).await.expect(202);
    let matched = eventually("the fallback", async || {
        Some(ann.state().await).filter(|state| state["status"] == "matched")
    })
    .await;
    assert_eq!((&matched["room_type"], &matched["requested_room_type"]), (&json!(2), &json!(3)));
    assert_eq!(bob.state().await["room_id"], matched["room_id"]);
}

#[tokio::test]
async fn a_wait_ends_in_time_and_the_person_may_join_again() {
    let settings = Settings::new().set("wait_timeout", "300ms").set("fallback_after", "200ms");
    let server = Server::with(settings).await;
    let (topic, other) = (server.topic("t").await, server.topic("u").await);
    let ann = server.person().await;
    ann.join(topic, 2).await.expect(202);
    let idle = eventually("the wait ends", async || {
        Some(ann.state().await).filter(|state| state["status"] == "idle")
    })
    .await;
    assert_eq!(idle, json!({ "status": "idle", "reason": "wait_expired" }));
    assert_eq!(ann.join(other, 2).await.expect(202)["topic_id"], other);
}
