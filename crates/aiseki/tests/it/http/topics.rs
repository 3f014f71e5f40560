use serde_json::{Value, json};

use crate::harness::{Server, eventually};

#[tokio::test]
async fn active_topics_are_listed_with_those_who_wait() {
    let server = Server::start().await;
    assert_eq!(server.client.get("/api/topics").await.expect(200), json!({ "topics": [] }));
    let (first, second) = (server.topic("one").await, server.topic("two").await);
    server.person().await.join(second, 3).await.expect(202);
    server.person().await.join(second, 3).await.expect(202);
    server.person().await.join(second, 2).await.expect(202);
    let expected = json!({ "topics": [
        { "id": first, "title": "one", "waiting": { "2": 0, "3": 0 } },
        { "id": second, "title": "two", "waiting": { "2": 1, "3": 2 } },
    ] });
    // A count is used again for a moment, so that asking for it costs little.
    eventually("the count is that of now", async || {
        (server.client.get("/api/topics").await.expect(200) == expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_topic_that_is_switched_off_loses_its_people_and_takes_no_others() {
    let server = Server::start().await;
    let (topic, other) = (server.topic("t").await, server.topic("u").await);
    let admin = server.admin();
    let (ann, bob, cem) = (server.person().await, server.person().await, server.person().await);
    let (seated, room) = server.seated(topic, 3).await;
    ann.join(topic, 2).await.expect(202);
    bob.join(topic, 3).await.expect(202);
    cem.join(other, 2).await.expect(202);
    let path = format!("/admin/topics/{topic}");
    let off = admin.put(&path, &json!({ "active": false })).await.expect(200);
    assert_eq!(off, json!({ "id": topic, "title": "t", "active": false }));
    assert_eq!(ann.state().await, json!({ "status": "idle", "reason": "topic_closed" }));
    assert_eq!(cem.state().await["status"], "waiting");
    assert_eq!(bob.state().await, json!({ "status": "idle", "reason": "topic_closed" }));
    // Who has a seat keeps it.
    assert_eq!(seated[2].state().await["room_id"], room);
    ann.join(topic, 2).await.refused(400, "inactive_topic");
    let listed = server.client.get("/api/topics").await.expect(200);
    assert_eq!(listed["topics"].as_array().unwrap().len(), 1);
    let all = admin.get("/admin/topics").await.expect(200);
    assert_eq!(
        all["topics"][0],
        json!({ "id": topic, "title": "t", "active": false,
        "waiting": { "2": 0, "3": 0 } })
    );

    let on = json!({ "title": "t again", "active": true });
    assert_eq!(admin.put(&path, &on).await.expect(200)["title"], "t again");
    ann.join(topic, 2).await.expect(202);
    // What is left out stays.
    let same = admin.put(&path, &json!({})).await.expect(200);
    assert_eq!(same, json!({ "id": topic, "title": "t again", "active": true }));
    assert_eq!(ann.state().await["status"], "waiting");
}

#[tokio::test]
async fn a_topic_can_be_made_switched_off_and_its_number_is_its_own() {
    let server = Server::start().await;
    let admin = server.admin();
    let off = json!({ "title": "later", "active": false });
    let topic = admin.post("/admin/topics", &off).await.expect(201);
    assert_eq!(topic["active"], false);
    let id = topic["id"].as_i64().unwrap();
    server.person().await.join(id, 2).await.refused(400, "inactive_topic");
    assert!(server.topic("next").await > id);
    for id in ["4711", "0", "-1", "x", "1.0", "%31x", "%FF", "99999999999999999999"] {
        let answer = admin.put(&format!("/admin/topics/{id}"), &json!({})).await;
        answer.refused(404, "not_found");
    }
}

#[tokio::test]
async fn queues_show_who_waits_where_and_since_when() {
    let server = Server::start().await;
    let (topic, other) = (server.topic("t").await, server.topic("u").await);
    let admin = server.admin();
    assert_eq!(admin.get("/admin/queues").await.expect(200), json!({ "queues": [] }));
    let first = server.person().await.join(other, 3).await.expect(202);
    server.person().await.join(other, 3).await.expect(202);
    server.person().await.join(topic, 2).await.expect(202);
    let queues = admin.get("/admin/queues").await.expect(200)["queues"].clone();
    let [small, large] = &queues.as_array().unwrap()[..] else { panic!("{queues}") };
    assert_eq!((&small["topic_id"], &small["room_type"]), (&json!(topic), &json!(2)));
    assert_eq!((&large["title"], &large["waiting"]), (&json!("u"), &json!(2)));
    assert_eq!(large["oldest_waiting_since"], first["waiting_since"]);
    assert!(large["oldest_wait_ms"].as_u64().unwrap() < 60_000);
}

#[tokio::test]
async fn titles_are_kept_exactly_or_refused() {
    let server = Server::start().await;
    let admin = server.admin();
    let long = "あ".repeat(200);
    let kept =
        ["e\u{301}", "\u{e9}", "👩‍👩‍👧", "\u{200f}שלום", "42:3", "..%2F", " a ", "'\"<&\\", &long];
    for title in kept {
        let topic = admin.post("/admin/topics", &json!({ "title": title })).await.expect(201);
        assert_eq!(topic["title"], title);
    }
    for title in ["", "  ", "a\nb", "a\u{0}", &"あ".repeat(201), &"x".repeat(1024)] {
        let answer = admin.post("/admin/topics", &json!({ "title": title })).await;
        answer.refused(400, "invalid_title");
    }
    let server = server.restart().await;
    let listed: Value = server.client.get("/api/topics").await.expect(200);
    let titles = listed["topics"].as_array().unwrap().iter().map(|topic| &topic["title"]);
    assert!(titles.eq(kept.iter()));
}
