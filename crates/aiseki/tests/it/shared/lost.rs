use aiseki_testkit::Redis;
use futures_util::future::join_all;
use serde_json::json;

use super::deaths::across;
use crate::harness::{Pair, Person, Plan, SETTLED, eventually, within};

/// Redis forgets what it had by `forget`: whoever sits by the records still does, nobody sits twice,
/// and what was lost is at most a wait.
async fn forgets(mut pair: Pair, forget: impl AsyncFnOnce(&mut Pair)) {
    let topic = pair.topic("t").await;
    let (seated, room) = pair.seated(topic, 3).await;
    let waiting = pair.person(0).await;
    waiting.join(topic, 3).await.expect(202);
    forget(&mut pair).await;
    // At once, with no time for anybody to read anything back.
    let other = across(&pair, &seated);
    for person in [&seated[0], &other[1]] {
        let answer = eventually("it answers", async || {
            let body = json!({ "topic_id": topic, "room_type": 3 }).to_string();
            let answer = person.client.try_call("POST", "/api/matching", Some(body)).await.ok()?;
            (answer.status != 503).then_some(answer)
        })
        .await;
        let conflict = answer.refused(409, "already_matched");
        assert_eq!(conflict["state"]["room_id"], room);
    }
    let state =
        eventually("it says where somebody sits", async || other[2].try_state().await).await;
    assert_eq!(state["room_id"], room, "{state}");
    let again = pair.at(1, &waiting);
    let status = again.join(topic, 3).await.status;
    assert_eq!(status, 202);
    let rest = pair.people(2).await;
    join_all(rest.iter().map(|person| person.join(topic, 3))).await;
    let all = [again, rest[0].clone(), rest[1].clone()];
    let rooms = within(SETTLED, "the others are seated", pair.matched(&all)).await;
    assert!(rooms.iter().all(|other| *other == rooms[0] && *other != room), "{rooms:?}");
    seated[0].leave(&room).await.expect(204);
    other[0].join(topic, 3).await.expect(202);
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_was_flushed_costs_a_wait_and_no_seat() {
    forgets(Plan::new().start().await, async |pair| {
        pair.ask("FLUSHALL");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_starts_empty_costs_a_wait_and_no_seat() {
    forgets(Plan::new().start().await, async |pair| {
        pair.redis.kill();
        pair.redis.boot().expect("it starts again");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_lacks_the_last_writes_costs_a_wait_and_no_seat() {
    let pair = Plan::new().start().await;
    let replica = Redis::start().expect("a Redis");
    replica.command(&format!("REPLICAOF 127.0.0.1 {}", pair.redis.port())).expect("a replica");
    eventually("it has everything", async || {
        let info = replica.command("INFO replication").ok()?;
        info.contains("master_link_status:up").then_some(())
    })
    .await;
    // It hears nothing of what comes now.
    replica.command("REPLICAOF NO ONE").expect("a primary");
    forgets(pair, async |pair| {
        pair.redis.kill();
        for link in &pair.redis_links {
            link.lead_to(replica.port());
            link.cut();
        }
        pair.redis = replica;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_with_a_log_of_every_write_forgets_nothing() {
    let plan = Plan::new().redis(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut pair = plan.start().await;
    let topic = pair.topic("t").await;
    let (seated, room) = pair.seated(topic, 2).await;
    let (ann, bob) = (pair.person(0).await, pair.person(1).await);
    let waiting = ann.join(topic, 2).await.expect(202);
    pair.redis.kill();
    pair.redis.boot().expect("it starts again");
    let state = eventually("it answers again", async || ann.try_state().await).await;
    assert_eq!(state, waiting);
    let state = eventually("it answers", async || seated[0].try_state().await).await;
    assert_eq!(state["room_id"], room);
    bob.join(topic, 2).await;
    pair.matched(&[ann, bob]).await;
    pair.sound().await;
}

/// What Redis holds of one key, as it was, put into it again under the same name.
fn remember(pair: &Pair, key: &str) {
    assert_eq!(pair.ask(&format!("COPY {key} kept:{key} REPLACE")), ":1");
}

fn bring_back(pair: &Pair, key: &str) {
    assert_eq!(pair.ask(&format!("COPY kept:{key} {key} REPLACE")), ":1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seat_in_a_room_that_has_ended_comes_back_for_a_moment_at_most() {
    let pair = Plan::new().start().await;
    let topic = pair.topic("t").await;
    let (people, room) = pair.seated(topic, 2).await;
    let keys = people.iter().map(|person| person.session().simple().to_string());
    let keys: Vec<String> = keys.map(|id| format!("NS:matching:room:{id}")).collect();
    for key in &keys {
        remember(&pair, &key.replace("NS:", "{aiseki}:"));
    }
    people[0].leave(&room).await.expect(204);
    for key in &keys {
        bring_back(&pair, &key.replace("NS:", "{aiseki}:"));
    }
    for person in &people {
        let state = person.becomes("idle").await;
        assert!(["left", "room_closed"].contains(&state["reason"].as_str().unwrap()), "{state}");
    }
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_30_everything_is_restarted_and_places_are_kept() {
    let plan = Plan::new().set("presence_timeout", "3s").set("reservation_ttl", "1s");
    let plan = plan.redis(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut pair = plan.dies(0, "after-form").start().await;
    let topic = pair.topic("t").await;
    let (ann, bob) = (pair.person(1).await, pair.person(1).await);
    let first = ann.join(topic, 3).await.expect(202);
    bob.join(topic, 3).await.expect(202);
    // Everything ends, the second server without a word.
    pair.terminate(0).await;
    pair.kill(1).await;
    pair.redis.kill();
    pair.postgres.stop_immediate();
    // Longer than somebody may be silent, and than a reservation lasts.
    crate::harness::pass(std::time::Duration::from_secs(4)).await;
    pair.redis.boot().expect("it starts again");
    pair.postgres.start_again().expect("it starts again");
    pair.start(1).await;
    let (ann, bob) = (pair.at(1, &ann), pair.at(1, &bob));
    assert_eq!(ann.state().await["waiting_since"], first["waiting_since"]);
    assert_eq!(bob.state().await["status"], "waiting");
    let cem: Person = pair.person(1).await;
    cem.join(topic, 3).await;
    let rooms = pair.matched(&[ann, bob, cem]).await;
    assert!(rooms.iter().all(|room| *room == rooms[0]));
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_that_no_server_wrote_in_time_is_undone_by_whoever_looks_next() {
    let mut pair = Plan::new().set("reservation_ttl", "1s").dies(0, "before-insert").prepare();
    pair.start(0).await;
    let topic = pair.topic("t").await;
    let (ann, bob) = (pair.person(0).await, pair.person(0).await);
    let first = ann.join(topic, 2).await.expect(202);
    assert_eq!(bob.try_join(topic, 2).await, None);
    pair.died(0).await;
    let key = format!("EXISTS NS:matching:room:{}", ann.session().simple());
    eventually("the reservation is over", async || (pair.ask(&key) == ":0").then_some(())).await;
    pair.start(1).await;
    let (ann, bob) = (pair.at(1, &ann), pair.at(1, &bob));
    let state = ann.state().await;
    assert!(state["status"] == "matched" || state["waiting_since"] == first["waiting_since"]);
    let rooms = within(SETTLED, "they are seated", pair.matched(&[ann, bob])).await;
    assert_eq!(rooms[0], rooms[1]);
    assert_eq!(pair.sql("SELECT count(*) FROM conversations WHERE ended_at IS NULL"), "1");
    pair.sound().await;
}

/// All servers were dead, or Redis was away, for hours: whatever ended in the records is not repeated
/// by how lately it was.
const HOURS_AGO: &str = "UPDATE participants SET left_at = left_at - interval '9 hours',
        joined_at = joined_at - interval '9 hours';
    UPDATE conversations SET ended_at = ended_at - interval '9 hours',
        created_at = created_at - interval '9 hours'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_leaves_while_redis_is_away_for_hours_has_no_seat_when_it_is_back() {
    let plan = Plan::new().redis(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut pair = plan.start().await;
    let topic = pair.topic("t").await;
    let (two, ended) = pair.seated(topic, 2).await;
    let (three, goes_on) = pair.seated(topic, 3).await;
    pair.redis.kill();
    for (person, room) in [(&two[0], &ended), (&three[0], &goes_on)] {
        assert_eq!(person.leave(room).await.status, 503);
    }
    assert_eq!(pair.sql("SELECT count(*) FROM participants WHERE left_at IS NULL"), "2");
    pair.sql(HOURS_AGO);
    pair.redis.boot().expect("it starts again");
    for (person, reason) in [(&two[0], "left"), (&two[1], "room_closed"), (&three[0], "left")] {
        let state = person.becomes("idle").await;
        assert_eq!(state, json!({ "status": "idle", "reason": reason }));
    }
    for person in &three[1..] {
        assert_eq!(person.becomes("matched").await["room_id"], goes_on);
    }
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_starts_takes_seats_that_ended_while_all_were_dead() {
    let mut pair = Plan::new().start().await;
    let topic = pair.topic("t").await;
    let (people, _) = pair.seated(topic, 2).await;
    let (others, room) = pair.seated(topic, 2).await;
    pair.kill(0).await;
    pair.kill(1).await;
    let people_of = people.iter().map(|person| format!("'{}'", person.session()));
    let people_of = people_of.collect::<Vec<_>>().join(", ");
    pair.sql(&format!(
        "UPDATE participants SET left_at = now(), left_reason = 'room_closed'
             WHERE session_id IN ({people_of});
         UPDATE conversations SET ended_at = now() WHERE id IN
             (SELECT conversation_id FROM participants WHERE left_at IS NOT NULL)"
    ));
    pair.sql(HOURS_AGO);
    pair.start(1).await;
    for person in &people {
        let state = pair.at(1, person).becomes("idle").await;
        assert_eq!(state, json!({ "status": "idle", "reason": "room_closed" }));
    }
    assert_eq!(pair.at(1, &others[0]).becomes("matched").await["room_id"], room);
    pair.sound().await;
}
