use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::harness::{Person, Server, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_1_one_session_that_posts_twice_at_once_waits_once() {
    let server = Server::start().await;
    for _ in 0..100 {
        let topic = server.topic("t").await;
        let ann = server.person().await;
        let (first, second) = tokio::join!(ann.join(topic, 2), ann.join(topic, 2));
        assert_eq!(first.expect(202), second.expect(202));
        // Join, cancel, join, join: each sent without waiting for the answer before it.
        let bob = server.person().await;
        tokio::join!(bob.join(topic, 3), bob.cancel(), bob.join(topic, 3), bob.join(topic, 3));
        let queues = server.admin().get("/admin/queues").await.expect(200);
        for queue in queues["queues"].as_array().unwrap() {
            assert_eq!(queue["waiting"], 1, "{queue}");
        }
        assert_ne!(bob.state().await["status"], "matched");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_2_a_join_against_a_cancel_seats_both_or_neither() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (mut both, mut neither) = (0, 0);
    for n in 0..400_u64 {
        let (ann, bob) = (server.person().await, server.person().await);
        ann.join(topic, 2).await.expect(202);
        // Offsets of up to three milliseconds, either way.
        let (early, late) = (n * 7 % 31, n * 11 % 31);
        let after = |tenths| tokio::time::sleep(Duration::from_micros(tenths * 100));
        let (joined, cancelled) = tokio::join!(
            async {
                after(early).await;
                bob.join(topic, 2).await
            },
            async {
                after(late).await;
                ann.cancel().await
            },
        );
        match (joined.status, cancelled.status) {
            (202, 204) => {
                neither += 1;
                assert_eq!(ann.state().await, json!({ "status": "idle", "reason": "left" }));
                let state = bob.state().await;
                assert_eq!(state["waiting_since"], joined.json()["waiting_since"]);
                bob.cancel().await.expect(204);
            }
            (200, 409) => {
                both += 1;
                let conflict = cancelled.refused(409, "already_matched");
                assert_eq!(conflict["state"]["room_id"], joined.json()["room_id"]);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(both > 0 && neither > 0, "{both} and {neither}: the calls never crossed");
}

#[tokio::test]
async fn case_6_the_same_token_finds_the_same_wait_and_the_same_room() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    let waiting = ann.join(topic, 2).await.expect(202);
    // The connection is lost; another device returns with the cookie.
    let again = Person { client: server.client.cookie(&ann.token), token: ann.token.clone() };
    assert_eq!(again.state().await, waiting);
    assert_eq!(again.join(topic, 2).await.expect(202), waiting);
    let matched = bob.join(topic, 2).await.expect(200);
    assert_eq!(again.state().await, matched);
    let conflict = again.join(topic, 2).await.refused(409, "already_matched");
    assert_eq!(conflict["state"], matched);
    let mut stream = again.client.stream("/api/matching/events").await;
    assert_eq!(stream.state().await, matched);
}

#[tokio::test]
async fn case_16_a_join_whose_answer_was_lost_is_repeated_without_harm() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (ann, bob) = (server.person().await, server.person().await);
    let body = json!({ "topic_id": topic, "room_type": 2 }).to_string();
    let request = format!(
        "POST /api/matching HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        ann.token,
        body.len()
    );
    let mut lost = tokio::net::TcpStream::connect(server.client.address).await.unwrap();
    lost.write_all(request.as_bytes()).await.unwrap();
    drop(lost);
    let waiting = eventually("the join happens", async || {
        Some(ann.state().await).filter(|state| state["status"] == "waiting")
    })
    .await;
    assert_eq!(ann.join(topic, 2).await.expect(202), waiting);
    let matched = bob.join(topic, 2).await.expect(200);
    let conflict = ann.join(topic, 2).await.refused(409, "already_matched");
    assert_eq!(conflict["state"], matched);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_26_two_of_three_who_leave_at_the_same_instant_free_the_third() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    for _ in 0..50 {
        let (people, room) = server.seated(topic, 3).await;
        let left = join_all([people[0].leave(&room), people[2].leave(&room)]).await;
        assert!(left.iter().all(|answer| answer.status == 204), "{left:?}");
        let third = people[1].state().await;
        assert_eq!(third, json!({ "status": "idle", "reason": "room_closed" }));
        assert_eq!(people[1].room(&room).await.expect(200)["status"], "ended");
    }
}
