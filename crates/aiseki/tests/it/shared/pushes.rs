use crate::harness::{Frame, Plan, Since, eventually, within};
use std::time::Duration;

/// Somebody at the first server, by long poll, stream and socket; somebody else at the second one
/// completes the room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_by_one_server_wakes_people_on_the_other() {
    let pair = Plan::new().start().await;
    let topic = pair.topic("t").await;
    for round in 0..10 {
        let (ann, bob) = (pair.person(0).await, pair.person(1).await);
        ann.join(topic, 2).await.expect(202);
        let mut stream = ann.client.stream("/api/matching/events").await;
        let mut socket = ann.client.socket("/ws/matching").await.ok().unwrap();
        assert_eq!(stream.state().await["status"], "waiting");
        assert_eq!(socket.state().await["status"], "waiting");
        let poll = ann.long_poll(30);
        let joined = async {
            eventually("everything is open", async || {
                let metrics = crate::harness::Metrics::of(pair.client(0)).await;
                (metrics.value("aiseki_push_subscriptions") > 2.5).then_some(())
            })
            .await;
            let cut = round % 2 == 1;
            if cut {
                // The announcement is missed, and the counter behind it tells so.
                pair.redis_links[0].cut();
            }
            let since = Since::now();
            bob.join(topic, 2).await;
            since
        };
        let (polled, since) = tokio::join!(poll, joined);
        let matched = polled.expect(200);
        assert_eq!(matched["status"], "matched");
        let limit = Duration::from_secs(5);
        let streamed = within(limit, "the stream tells", stream.state()).await;
        let told = within(limit, "the socket tells", socket.state()).await;
        assert_eq!((&streamed, &told), (&matched, &matched));
        assert!(since.millis() < 4_000, "told after {} ms", since.millis());
        socket.close().await;
    }
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_25_a_rolling_restart_costs_nobody_the_place() {
    let mut pair = Plan::new().set("room_types", "2,8").start().await;
    let (topic, closed) = (pair.topic("t").await, pair.topic("u").await);
    let mut people = Vec::new();
    for topic in [topic, closed] {
        for person in pair.people(7).await {
            let state = person.join(topic, 8).await.expect(202);
            people.push((person, state));
        }
    }
    let mut socket = pair.at(0, &people[0].0).client.socket("/ws/matching").await.ok().unwrap();
    socket.state().await;
    for server in [0, 1] {
        pair.terminate(server).await;
        if server == 0 {
            while let Frame::Ping | Frame::State(_) = socket.next().await {}
        }
        for (person, state) in &people {
            assert_eq!(
                pair.at(1 - server, person).state().await["waiting_since"],
                state["waiting_since"]
            );
        }
        pair.start(server).await;
    }
    let off = serde_json::json!({ "active": false });
    pair.admin(1).put(&format!("/admin/topics/{closed}"), &off).await.expect(200);
    let gone = serde_json::json!({ "status": "idle", "reason": "topic_closed" });
    for (person, _) in &people[7..] {
        assert_eq!(pair.at(0, person).becomes("idle").await, gone);
    }
    let last = pair.person(0).await;
    last.join(topic, 8).await;
    let mut all: Vec<_> = people[..7].iter().map(|(person, _)| pair.at(1, person)).collect();
    all.push(last);
    let rooms = pair.matched(&all).await;
    assert!(rooms.iter().all(|room| *room == rooms[0]));
    pair.sound().await;
}
