use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::deaths::across;
use crate::harness::{Person, Plan, eventually, pass};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_1_the_same_calls_through_two_servers_are_one_wait() {
    let pair = Plan::new().start().await;
    let topic = pair.topic("t").await;
    for _ in 0..30 {
        let ann = pair.person(0).await;
        let there = pair.at(1, &ann);
        let (first, second) = tokio::join!(ann.join(topic, 2), there.join(topic, 2));
        assert_eq!(first.expect(202)["waiting_since"], second.expect(202)["waiting_since"]);
        tokio::join!(ann.join(topic, 2), there.cancel(), ann.join(topic, 2), there.join(topic, 2));
        let queues = pair.admin(0).get("/admin/queues").await.expect(200);
        for queue in queues["queues"].as_array().unwrap() {
            assert_eq!(queue["waiting"], 1, "{queue}");
        }
        assert_ne!(ann.state().await["status"], "matched");
        ann.cancel().await.expect(204);
    }
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_2_a_join_here_against_a_cancel_there_seats_both_or_neither() {
    let pair = Plan::new().start().await;
    let topic = pair.topic("t").await;
    let (mut both, mut neither) = (0, 0);
    for n in 0..150_u64 {
        let (ann, bob) = (pair.person(0).await, pair.person(1).await);
        ann.join(topic, 2).await.expect(202);
        // Offsets of up to three milliseconds, either way.
        let (early, late) = (n * 7 % 31, n * 11 % 31);
        let (joined, cancelled) = tokio::join!(
            async {
                pass(Duration::from_micros(early * 100)).await;
                bob.join(topic, 2).await
            },
            async {
                pass(Duration::from_micros(late * 100)).await;
                ann.cancel().await
            },
        );
        match (joined.status, cancelled.status) {
            (202, 204) => {
                neither += 1;
                assert_eq!(ann.state().await, json!({ "status": "idle", "reason": "left" }));
                bob.cancel().await.expect(204);
            }
            // The writing may take longer than an answer is held back for.
            (200 | 202, 409) => {
                both += 1;
                cancelled.refused(409, "already_matched");
                let rooms = pair.matched(&[ann, bob]).await;
                assert_eq!(rooms[0], rooms[1]);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(both > 0 && neither > 0, "{both} and {neither}: the calls never crossed");
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_3_somebody_who_vanished_at_a_server_that_died_is_in_nobodys_way() {
    let mut pair = Plan::new().set("presence_timeout", "1500ms").start().await;
    let topic = pair.topic("t").await;
    let ann = pair.person(1).await;
    ann.join(topic, 2).await.expect(202);
    pair.kill(1).await;
    eventually("she is swept although nobody polls", async || {
        (pair.ask(&format!("ZCARD NS:matching:queue:{topic}:2")) == ":0").then_some(())
    })
    .await;
    let (bob, cem) = (pair.person(0).await, pair.person(0).await);
    bob.join(topic, 2).await.expect(202);
    cem.join(topic, 2).await;
    pair.matched(&[bob, cem]).await;
    let state = pair.at(0, &ann).state().await;
    assert_eq!(state, json!({ "status": "idle", "reason": "absent" }));
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_5_and_21_a_wait_that_ends_is_told_everywhere_and_leaves_nothing() {
    let plan = Plan::new().set("wait_timeout", "2s").set("fallback_after", "1s");
    let mut pair = plan.start().await;
    let (topic, other) = (pair.topic("t").await, pair.topic("u").await);
    let ann = pair.person(0).await;
    let first = ann.join(topic, 2).await.expect(202);
    pair.terminate(0).await;
    let there = pair.at(1, &ann);
    let idle = eventually("the wait ends", async || {
        let state = there.state().await;
        if state["status"] == "waiting" {
            assert_eq!(state["waiting_since"], first["waiting_since"]);
            return None;
        }
        Some(state)
    })
    .await;
    assert_eq!(idle, json!({ "status": "idle", "reason": "wait_expired" }));
    pair.start(0).await;
    assert_eq!(pair.at(0, &ann).state().await, idle);
    let again = there.join(other, 3).await.expect(202);
    assert_eq!(again["topic_id"], other);
    let bob = pair.person(0).await;
    assert_eq!(bob.join(topic, 2).await.expect(202)["ahead"], 0);
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_6_the_same_token_finds_the_same_wait_on_the_other_server() {
    let pair = Plan::new().start().await;
    let topic = pair.topic("t").await;
    for _ in 0..10 {
        let (ann, bob) = (pair.person(0).await, pair.person(0).await);
        let there = pair.at(1, &ann);
        let waiting = ann.join(topic, 2).await.expect(202);
        assert_eq!(there.state().await["waiting_since"], waiting["waiting_since"]);
        // Asked while the match is being made: the old wait, or the room.
        let (joined, during) = tokio::join!(bob.join(topic, 2), there.state());
        assert!(
            during["status"] == "matched" || during["waiting_since"] == waiting["waiting_since"],
            "{during}"
        );
        assert!([200, 202].contains(&joined.status), "{joined:?}");
        let rooms = pair.matched(&[ann, there.clone(), bob]).await;
        assert!(rooms.iter().all(|room| *room == rooms[0]));
        let conflict = there.join(topic, 2).await.refused(409, "already_matched");
        assert_eq!(conflict["state"]["room_id"], rooms[0].as_str());
    }
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_10_two_who_join_two_servers_at_once_meet() {
    let pair = Plan::new().start().await;
    let mut rooms = 0;
    for _ in 0..5 {
        let mut topics = Vec::new();
        for n in 0..20 {
            topics.push(pair.topic(&format!("t{n}")).await);
        }
        let people = pair.people(2 * topics.len()).await;
        let joins = people.iter().enumerate().map(|(i, person)| person.join(topics[i / 2], 2));
        for answer in join_all(joins).await {
            assert!([200, 202].contains(&answer.status), "{answer:?}");
        }
        for two in pair.matched(&people).await.chunks(2) {
            assert_eq!(two[0], two[1]);
            rooms += 1;
        }
    }
    assert_eq!(pair.sql("SELECT count(*) FROM conversations"), rooms.to_string());
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_12_age_never_hides_a_ticket() {
    let pair = Plan::new().set("fallback_after", "500ms").start().await;
    let (topic, witness) = (pair.topic("t").await, pair.topic("u").await);
    let (ann, bob) = (pair.person(0).await, pair.person(1).await);
    ann.join(topic, 3).await.expect(202);
    let pair_of = pair.people(2).await;
    for person in &pair_of {
        person.join(witness, 3).await;
    }
    // Their fallback, which comes with nobody asking, is later than hers.
    let poll = join_all(pair_of.iter().map(|person| person.long_poll(20))).await;
    assert!(poll.iter().all(|answer| answer.json()["status"] == "matched"), "{poll:?}");
    assert_eq!(ann.state().await["status"], "waiting");
    bob.join(topic, 3).await;
    let state = ann.becomes("matched").await;
    assert_eq!((&state["room_type"], &state["requested_room_type"]), (&json!(2), &json!(3)));
    assert_eq!(bob.becomes("matched").await["room_id"], state["room_id"]);
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_16_a_join_whose_answer_was_lost_is_repeated_at_the_other_server() {
    let pair = Plan::new().start().await;
    let topic = pair.topic("t").await;
    let (ann, bob) = (pair.person(0).await, pair.person(0).await);
    let body = json!({ "topic_id": topic, "room_type": 2 }).to_string();
    let request = format!(
        "POST /api/matching HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        ann.token,
        body.len()
    );
    let mut lost = tokio::net::TcpStream::connect(ann.client.address).await.unwrap();
    lost.write_all(request.as_bytes()).await.unwrap();
    let there = pair.at(1, &ann);
    let waiting = there.becomes("waiting").await;
    // Nobody has read the answer.
    drop(lost);
    let again = there.join(topic, 2).await.expect(202);
    assert_eq!(again["waiting_since"], waiting["waiting_since"]);
    // The answer of Redis is lost as well: the server repeats the call, and nobody waits twice.
    pair.redis_links[1].lose_reply_to(bob.session().simple().to_string().as_bytes());
    let joined = pair.at(1, &bob).join(topic, 2).await;
    assert!([200, 202, 409].contains(&joined.status), "{joined:?}");
    assert_eq!(pair.redis_links[1].lost_replies(), 1);
    let rooms = pair.matched(&[there.clone(), bob]).await;
    assert_eq!(rooms[0], rooms[1]);
    let conflict = there.join(topic, 2).await.refused(409, "already_matched");
    assert_eq!(conflict["state"]["room_id"], rooms[0].as_str());
    assert_eq!(pair.sql("SELECT count(*) FROM conversations"), "1");
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_on_two_servers_meets_in_whole_rooms() {
    let pair = Plan::new().start().await;
    let topic = pair.topic("t").await;
    let people = pair.people(60).await;
    let joins = people.iter().map(|person: &Person| person.join(topic, 3));
    for answer in join_all(joins).await {
        assert!([200, 202].contains(&answer.status), "{answer:?}");
    }
    let mut rooms = pair.matched(&across(&pair, &people)).await;
    rooms.sort();
    rooms.dedup();
    assert_eq!(rooms.len(), 20);
    pair.sound().await;
}
