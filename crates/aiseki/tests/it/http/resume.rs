use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Answer, Person, Server, Settings, Socket, eventually, within};

on_both_stores![
    who_came_goes_back_to_the_front_with_the_wait_they_had,
    an_offer_for_another_queue_or_room_is_an_ordinary_join,
    where_everybody_had_come_nothing_is_offered,
];

/// Longer than anybody takes to come, and short enough to be waited for.
const AWAY: &str = "1500ms";

async fn resume(person: &Person, topic: i64, room_type: u8, room: &str) -> Answer {
    let body = json!({ "topic_id": topic, "room_type": room_type, "resume": room });
    person.client.post("/api/matching", &body).await
}

async fn comes(person: &Person, room: &str) -> Socket {
    let mut socket = person.client.socket(&format!("/ws/rooms/{room}")).await.ok().unwrap();
    let welcome = within(Duration::from_secs(20), "a welcome", socket.state()).await;
    assert_eq!(welcome["type"], "welcome", "{welcome}");
    socket
}

/// The state of somebody who came to a room in which the others never did, once it has ended.
async fn left_alone(person: &Person) -> Value {
    eventually("the room ends", async || {
        Some(person.state().await).filter(|state| state["status"] == "idle")
    })
    .await
}

/// The time by the store's clock: somebody joins.
async fn clock(server: &Server) -> i64 {
    let (topic, witness) = (server.topic("witness").await, server.person().await);
    millis(&witness.join(topic, 2).await.expect(202)["waiting_since"])
}

/// The state of somebody who waits.
async fn waits(person: &Person) -> Value {
    let state = person.state().await;
    assert_eq!(state["status"], "waiting", "{state}");
    state
}

fn millis(moment: &Value) -> i64 {
    moment.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// Three who are seated together, of whom only the first comes; and that one's offer.
async fn alone_of_three(server: &Server, topic: i64) -> (Vec<Person>, String, Value) {
    let (people, room) = server.seated(topic, 3).await;
    let _socket = comes(&people[0], &room).await;
    let state = left_alone(&people[0]).await;
    assert_eq!(state["reason"], "room_closed");
    (people, room, state["resume"].clone())
}

async fn who_came_goes_back_to_the_front_with_the_wait_they_had(settings: Settings) {
    let server = Server::with(settings.set("away_timeout", AWAY)).await;
    let topic = server.topic("t").await;
    let (ann, bob, cem) = (server.person().await, server.person().await, server.person().await);
    let first = ann.join(topic, 3).await.expect(202);
    crate::harness::pass(Duration::from_millis(700)).await;
    for person in [&bob, &cem] {
        person.join(topic, 3).await;
    }
    let matched = eventually("the three are seated", async || {
        Some(ann.state().await).filter(|state| state["status"] == "matched")
    })
    .await;
    let room = matched["room_id"].as_str().unwrap().to_owned();
    let mut socket = comes(&ann, &room).await;
    // Somebody else comes to the queue while the three are in their room.
    let dora = server.person().await;
    dora.join(topic, 3).await.expect(202);
    loop {
        let frame = within(Duration::from_secs(20), "a frame", socket.state()).await;
        if frame["type"] == "closed" {
            assert_eq!(frame["reason"], "away");
            break;
        }
    }
    let state = left_alone(&ann).await;
    let offer = &state["resume"];
    let waited = millis(&matched["matched_at"]) - millis(&first["waiting_since"]);
    assert_eq!(state["reason"], "room_closed");
    assert_eq!(
        (&offer["room_id"], &offer["topic_id"], &offer["room_type"], &offer["waited_ms"]),
        (&json!(room), &json!(topic), &json!(3), &json!(waited))
    );
    assert!(millis(&offer["until"]) > millis(&matched["matched_at"]) + 600_000);
    for person in [&bob, &cem] {
        assert_eq!(person.state().await, json!({ "status": "idle", "reason": "absent" }));
    }
    // A new server knows of it, on either store.
    let server = server.restart().await;
    let (ann, dora) = (ann.at(&server.client), dora.at(&server.client));
    assert_eq!(ann.state().await, state);
    assert_eq!(waits(&dora).await["ahead"], 0);

    let before = clock(&server).await;
    let waiting = resume(&ann, topic, 3, &room).await.expect(202);
    let after = clock(&server).await;
    assert_eq!((&waiting["ahead"], &waiting["room_type"]), (&json!(0), &json!(3)));
    assert_eq!(waits(&dora).await["ahead"], 1);
    let since = millis(&waiting["waiting_since"]);
    assert!((before..=after).contains(&(since + waited)), "{before} {since} + {waited} {after}");
    // Repeated, because the answer was lost: the same wait.
    assert_eq!(resume(&ann, topic, 3, &room).await.expect(202), waiting);
    let server = server.restart().await;
    let (ann, dora) = (ann.at(&server.client), dora.at(&server.client));
    assert_eq!(waits(&ann).await, waiting);
    assert_eq!(waits(&dora).await["ahead"], 1);

    // It was used up.
    ann.cancel().await.expect(204);
    assert_eq!(ann.state().await, json!({ "status": "idle", "reason": "left" }));
    let again = resume(&ann, topic, 3, &room).await.expect(202);
    assert_eq!(again["ahead"], 1);
    let later = millis(&again["waiting_since"]);
    assert!(later > since, "{later} is a new wait");
}

async fn an_offer_for_another_queue_or_room_is_an_ordinary_join(settings: Settings) {
    let server = Server::with(settings.set("away_timeout", AWAY)).await;
    let topic = server.topic("t").await;
    let (people, room, offer) = alone_of_three(&server, topic).await;
    let elsewhere = "0197f3a1-5b2c-7d4e-8f90-a1b2c3d4e5f6";
    // Refused calls leave it as it is.
    resume(&people[0], topic, 5, &room).await.refused(400, "invalid_room_type");
    resume(&people[0], topic + 1, 3, &room).await.refused(400, "unknown_topic");
    for odd in [json!(7), json!("?"), json!([room])] {
        let odd = json!({ "topic_id": topic, "room_type": 3, "resume": odd });
        people[0].client.post("/api/matching", &odd).await.refused(400, "invalid_body");
    }
    assert_eq!(people[0].state().await["resume"], offer);
    // Who never came has no place that could be taken up.
    for absent in &people[1..] {
        assert_eq!(absent.state().await.get("resume"), None);
    }
    // Nor has a stranger who knows the room.
    let stranger = server.person().await;
    resume(&stranger, topic, 3, &room).await.expect(202);
    stranger.cancel().await.expect(204);
    let before = server.person().await;
    before.join(topic, 3).await.expect(202);
    let state = resume(&people[0], topic, 3, elsewhere).await.expect(202);
    assert_eq!(state["ahead"], 1, "an ordinary join");
    people[0].cancel().await.expect(204);
    assert_eq!(people[0].state().await, json!({ "status": "idle", "reason": "left" }));
}

async fn where_everybody_had_come_nothing_is_offered(settings: Settings) {
    let server = Server::with(settings.set("away_timeout", AWAY)).await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 2).await;
    let _ann = comes(&people[0], &room).await;
    let bob = comes(&people[1], &room).await;
    drop(bob);
    let state = left_alone(&people[0]).await;
    assert_eq!(state, json!({ "status": "idle", "reason": "room_closed" }));
    assert_eq!(people[1].state().await["reason"], "absent");
}
