use serde_json::{Value, json};

use crate::harness::Server;

#[tokio::test]
async fn a_report_keeps_what_was_said_and_leads_to_a_ban() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 2).await;
    let report = format!("/api/rooms/{room}/report");
    let mut socket = people[1].client.socket(&format!("/ws/rooms/{room}")).await.ok().unwrap();
    for n in 0..53 {
        let said = json!({ "type": "say", "id": n.to_string(), "text": format!("message {n}") });
        socket.say(&said.to_string()).await;
    }
    while socket.state().await["seq"] != 53 {}
    let body = json!({ "seat": 2, "reason": "rude 鮨" });
    for _ in 0..2 {
        let answer = people[0].client.post(&report, &body).await.expect(201);
        assert_eq!(answer, json!({ "messages": 50 }));
    }
    // The room has ended: there is nothing to keep, and the report is kept.
    people[1].leave(&room).await.expect(204);
    let late = json!({ "seat": 1, "reason": "late" });
    let answer = people[1].client.post(&report, &late).await.expect(201);
    assert_eq!(answer, json!({ "messages": 0 }));

    let admin = server.admin();
    let list = admin.get("/admin/reports?open=true").await.expect(200);
    let reports = list["reports"].as_array().unwrap();
    assert_eq!((reports.len(), &list["next"]), (2, &json!(null)));
    assert_eq!(reports[0]["reason"], "late");
    let first = &reports[1];
    assert_eq!((&first["reason"], &first["seat"]), (&json!("rude 鮨"), &json!(2)));
    assert_eq!(first["room_id"], room);
    let said = first["messages"].as_array().unwrap();
    assert_eq!((said.len(), &said[0]["seq"], &said[49]["seq"]), (50, &json!(4), &json!(53)));
    assert_eq!((&said[49]["text"], &said[49]["seat"]), (&json!("message 52"), &json!(2)));
    let page = admin.get("/admin/reports?limit=1").await.expect(200);
    let after = format!("/admin/reports?limit=1&after={}", page["next"]);
    let next = admin.get(&after).await.expect(200);
    assert_eq!((&next["reports"][0], &next["next"]), (first, &json!(null)));

    let one = format!("/admin/reports/{}", first["id"]);
    assert_eq!(&admin.get(&one).await.expect(200), first);
    let judge = format!("{one}/judge");
    let judged = admin.post(&judge, &json!({})).await.expect(200);
    assert!(judged["judged_at"].is_string() && judged["ban_id"].is_null());
    for _ in 0..2 {
        let banned = admin.post(&judge, &json!({ "ban": {} })).await.expect(200);
        assert_eq!(banned["judged_at"], judged["judged_at"]);
        assert!(banned["ban_id"].is_i64());
    }
    let bans = admin.get("/admin/bans").await.expect(200);
    assert_eq!(bans["bans"].as_array().unwrap().len(), 1);
    assert_eq!(bans["bans"][0]["session"], first["session"]);
    assert_eq!(bans["bans"][0]["reason"], "rude 鮨");
    people[1].join(topic, 2).await.refused(403, "banned");
    let open = admin.get("/admin/reports?open=true").await.expect(200);
    assert_eq!(open["reports"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_no_report_is_refused() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 2).await;
    let report = format!("/api/rooms/{room}/report");
    let body = |seat: Value, reason: &str| json!({ "seat": seat, "reason": reason });
    let refused = async |body: Value, status, code| {
        people[0].client.post(&report, &body).await.refused(status, code);
    };
    for seat in [0, 1, 3] {
        refused(body(json!(seat), "x"), 400, "invalid_seat").await;
    }
    for reason in ["", " ", "a\0", &"x".repeat(501)] {
        refused(body(json!(2), reason), 400, "invalid_reason").await;
    }
    for other in [json!({}), body(json!("2"), "x"), body(json!(-1), "x"), json!([])] {
        refused(other, 400, "invalid_body").await;
    }
    let good = body(json!(2), &"鮨".repeat(500));
    let stranger = server.person().await;
    stranger.client.post(&report, &good).await.refused(404, "not_found");
    people[0].client.post("/api/rooms/x/report", &good).await.refused(404, "not_found");
    for n in 0..10 {
        let body = body(json!(2), &n.to_string());
        people[0].client.post(&report, &body).await.expect(201);
    }
    refused(good, 429, "rate_limited").await;
    let admin = server.admin();
    for query in ["limit=0", "limit=101", "after=x", "open=perhaps"] {
        admin.get(&format!("/admin/reports?{query}")).await.refused(400, "invalid_query");
    }
    for id in ["4711", "x"] {
        admin.get(&format!("/admin/reports/{id}")).await.refused(404, "not_found");
        let judge = format!("/admin/reports/{id}/judge");
        admin.post(&judge, &json!({})).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn who_is_blocked_is_not_met_again() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 2).await;
    let [ann, bob] = &people[..] else { panic!("two") };
    let block = format!("/api/rooms/{room}/block");
    let bobs = json!({ "seat": 2 });
    for seat in [0, 1, 3] {
        let answer = ann.client.post(&block, &json!({ "seat": seat })).await;
        answer.refused(400, "invalid_seat");
    }
    server.person().await.client.post(&block, &bobs).await.refused(404, "not_found");
    server.client.post(&block, &bobs).await.refused(401, "unauthenticated");
    ann.leave(&room).await.expect(204);
    for _ in 0..2 {
        ann.client.post(&block, &bobs).await.expect(204);
    }
    bob.join(topic, 2).await.expect(202);
    ann.join(topic, 2).await.expect(202);
    let cem = server.person().await;
    cem.join(topic, 2).await.expect(200);
    assert_eq!(bob.state().await["status"], "matched", "first come, first served");
    assert_eq!(ann.state().await["status"], "waiting");
}
