use serde_json::json;

use crate::harness::Server;

#[tokio::test]
async fn a_room_is_seen_by_its_members_and_by_operators_alone() {
    let server = Server::start().await;
    let topic = server.topic("Whatever it is").await;
    let (people, room) = server.seated(topic, 3).await;
    for (seat, person) in people.iter().enumerate() {
        let view = person.room(&room).await.expect(200);
        assert_eq!(view["me"], seat + 1);
        assert_eq!((&view["room_id"], &view["topic_id"]), (&json!(room), &json!(topic)));
        assert_eq!((&view["topic"], &view["room_type"]), (&json!("Whatever it is"), &json!(3)));
        assert_eq!((&view["status"], &view["ended_at"]), (&json!("live"), &json!(null)));
        let seats = json!([{ "seat": 1, "state": "away" }, { "seat": 2, "state": "away" },
            { "seat": 3, "state": "away" }]);
        assert_eq!(view["seats"], seats);
    }
    let of_operator = server.admin().get(&format!("/api/rooms/{room}")).await.expect(200);
    assert_eq!((&of_operator["me"], &of_operator["room_type"]), (&json!(null), &json!(3)));
    server.person().await.room(&room).await.refused(404, "not_found");
    // A room id is an id in either case, and nothing else is one.
    people[0].room(&room.to_uppercase()).await.expect(200);
    for other in
        ["nonsense", "0197f3a1-5b2c-7d4e-8f90-a1b2c3d4e5f6", "%00", "%FF", "..%2F", "a%20b"]
    {
        people[0].room(other).await.refused(404, "not_found");
        people[0].leave(other).await.refused(404, "not_found");
        server.admin().get(&format!("/api/rooms/{other}")).await.refused(404, "not_found");
        let close = format!("/admin/rooms/{other}/close");
        server.admin().call("POST", &close, None).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn who_leaves_is_free_and_the_others_stay_until_one_is_left() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 3).await;
    let [ann, bob, cem] = &people[..] else { panic!("three") };
    server.person().await.leave(&room).await.refused(404, "not_found");
    for _ in 0..3 {
        assert_eq!(bob.leave(&room).await.expect(204), json!(null));
    }
    assert_eq!(bob.state().await, json!({ "status": "idle", "reason": "left" }));
    let view = bob.room(&room).await.expect(200);
    assert_eq!((&view["me"], &view["status"]), (&json!(2), &json!("live")));
    assert_eq!(view["seats"][1], json!({ "seat": 2, "state": "left" }));
    let state = ann.state().await;
    assert_eq!((&state["room_id"], &state["room_type"]), (&json!(room), &json!(3)));

    ann.leave(&room).await.expect(204);
    assert_eq!(ann.state().await["reason"], "left");
    assert_eq!(cem.state().await, json!({ "status": "idle", "reason": "room_closed" }));
    let view = cem.room(&room).await.expect(200);
    assert_eq!(view["status"], "ended");
    assert!(view["ended_at"].as_str().unwrap() >= view["created_at"].as_str().unwrap());
    assert!(view["seats"].as_array().unwrap().iter().all(|seat| seat["state"] == "left"));
    // Leaving what is over changes nothing, also not the room of today.
    let (others, today) = {
        cem.join(topic, 2).await.expect(202);
        let dora = server.person().await;
        let matched = dora.join(topic, 2).await.expect(200);
        (dora, matched["room_id"].as_str().unwrap().to_owned())
    };
    for _ in 0..2 {
        cem.leave(&room).await.expect(204);
    }
    assert_eq!(cem.state().await["room_id"], today);
    assert_eq!(others.state().await["room_id"], today);
}

#[tokio::test]
async fn operators_list_live_rooms_in_pages_and_close_them() {
    let server = Server::start().await;
    let (topic, other) = (server.topic("t").await, server.topic("u").await);
    let admin = server.admin();
    let mut rooms = Vec::new();
    let mut people = Vec::new();
    for of in [topic, other, topic, topic, topic] {
        let (seated, room) = server.seated(of, 2).await;
        people.push(seated);
        rooms.push(room);
    }
    let all = admin.get("/admin/rooms").await.expect(200);
    let ids = |list: &serde_json::Value| -> Vec<String> {
        let rooms = list["rooms"].as_array().unwrap().iter();
        rooms.map(|room| room["room_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&all), rooms);
    assert_eq!(all["next"], json!(null));
    let first = &all["rooms"][0];
    assert_eq!((&first["topic_id"], &first["room_type"]), (&json!(topic), &json!(2)));
    let seat = &first["seats"][1];
    assert_eq!((&seat["seat"], &seat["requested_room_type"]), (&json!(2), &json!(2)));
    // Whether somebody is here or away is not in the record, and nothing is said that may be wrong.
    assert_eq!((&seat["state"], seat["session"].as_str().unwrap().len()), (&json!(null), 32));

    let mut pages = Vec::new();
    let mut after = String::new();
    for size in [2, 2] {
        let path = format!("/admin/rooms?topic={topic}&limit={size}{after}");
        let page = admin.get(&path).await.expect(200);
        pages.extend(ids(&page));
        after = page["next"].as_str().map(|next| format!("&after={next}")).unwrap_or_default();
    }
    assert_eq!((pages.len(), after.as_str()), (4, ""));
    assert!(!pages.contains(&rooms[1]));
    for query in ["limit=0", "limit=1001", "limit=x", "after=x", "topic=x", "after=%FF"] {
        let answer = admin.get(&format!("/admin/rooms?{query}")).await;
        answer.refused(400, "invalid_query");
    }

    for _ in 0..2 {
        let close = format!("/admin/rooms/{}/close", rooms[2]);
        admin.call("POST", &close, None).await.expect(204);
    }
    for person in &people[2] {
        assert_eq!(person.state().await, json!({ "status": "idle", "reason": "room_closed" }));
    }
    assert_eq!(ids(&admin.get("/admin/rooms").await.expect(200)).len(), 4);
    assert_eq!(people[0][0].state().await["status"], "matched");
}
