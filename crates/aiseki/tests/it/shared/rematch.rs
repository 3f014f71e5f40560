use crate::harness::Plan;

#[tokio::test]
async fn who_shared_a_room_is_seated_with_somebody_else_at_any_server() {
    let pair = Plan::new().set("rematch_after", "10m").start().await;
    let topic = pair.topic("t").await;
    let (people, room) = pair.seated(topic, 2).await;
    people[0].leave(&room).await.expect(204);
    // Each comes back at the other server.
    let (ann, bob) = (pair.at(1, &people[0]), pair.at(0, &people[1]));
    assert_eq!(ann.becomes("idle").await["reason"], "left");
    assert_eq!(bob.becomes("idle").await["reason"], "room_closed");
    ann.join(topic, 2).await.expect(202);
    bob.join(topic, 2).await.expect(202);
    for person in [&ann, &bob] {
        assert_eq!(person.state().await["status"], "waiting");
    }
    assert_eq!(pair.ask(&format!("HLEN NS:matching:parted:{}", ann.session().simple())), ":1");
    let left = pair.ask(&format!("PTTL NS:matching:parted:{}", bob.session().simple()));
    let left: u64 = left.trim_start_matches(':').parse().unwrap();
    assert!((500_000..=600_000).contains(&left), "{left}");
    let (cem, dora) = (pair.person(0).await, pair.person(1).await);
    for newcomer in [&cem, &dora] {
        newcomer.join(topic, 2).await;
    }
    let rooms = pair.matched(&[ann, cem, bob, dora]).await;
    assert!(rooms[0] == rooms[1] && rooms[2] == rooms[3] && rooms[0] != rooms[2], "{rooms:?}");
    pair.sound().await;
}

#[tokio::test]
async fn without_rooms_to_talk_in_people_part_all_the_same() {
    let plan = Plan::new().set("rematch_after", "10m").set("rooms", "off");
    let pair = plan.start().await;
    let topic = pair.topic("t").await;
    let (people, room) = pair.seated(topic, 3).await;
    people[1].leave(&room).await.expect(204);
    pair.admin(1)
        .post(&format!("/admin/rooms/{room}/close"), &serde_json::Value::Null)
        .await
        .expect(204);
    for person in &people {
        person.becomes("idle").await;
        person.join(topic, 2).await.expect(202);
    }
    for person in &people {
        assert_eq!(person.state().await["status"], "waiting");
    }
}
