use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::deaths::across;
use crate::harness::{Pair, Person, Plan, SETTLED, Since, eventually, within};

/// One person waits alone before the database goes away, and another comes while it is; nobody is
/// taken from the queue until it is back.
async fn waits_for_it(mut pair: Pair, away: impl FnOnce(&mut Pair), back: impl FnOnce(&mut Pair)) {
    let topic = pair.topic("t").await;
    let (ann, bob, cem) = (pair.person(0).await, pair.person(1).await, pair.person(0).await);
    let first = ann.join(topic, 2).await.expect(202);
    away(&mut pair);
    pair.ready(0, "degraded").await;
    pair.ready(1, "degraded").await;
    // The last word that somebody can write counts for three seconds.
    eventually("no room is formed any more", async || {
        (pair.ask("EXISTS NS:recorder") == ":0").then_some(())
    })
    .await;
    let second = bob.join(topic, 2).await.expect(202);
    for (person, before) in [(&ann, &first), (&bob, &second)] {
        let state = person.state().await;
        assert_eq!(state["status"], "waiting");
        assert_eq!(state["waiting_since"], before["waiting_since"]);
    }
    assert_eq!(pair.ask(&format!("ZCARD NS:matching:queue:{topic}:2")), ":2");
    // Cancelling needs no database.
    cem.join(topic, 3).await.expect(202);
    cem.cancel().await.expect(204);
    back(&mut pair);
    let rooms = within(SETTLED, "they are seated", pair.matched(&[ann, bob])).await;
    assert_eq!(rooms[0], rooms[1]);
    pair.ready(0, "ready").await;
    pair.ready(1, "ready").await;
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_has_crashed_costs_nobody_the_place() {
    let pair = Plan::new().start().await;
    waits_for_it(
        pair,
        |pair| pair.postgres.stop_immediate(),
        |pair| pair.postgres.start_again().expect("it starts again"),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_refuses_costs_nobody_the_place() {
    let pair = Plan::new().start().await;
    let refuse = |pair: &mut Pair, on| {
        for link in &pair.postgres_links {
            link.refuse(on);
            link.cut();
        }
    };
    waits_for_it(pair, |pair| refuse(pair, true), |pair| refuse(pair, false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_silent_costs_nobody_the_place() {
    let pair = Plan::new().start().await;
    waits_for_it(pair, |pair| pair.postgres.freeze(), |pair| pair.postgres.thaw()).await;
}

/// From now on the database refuses every room of this person.
fn refuse_person(pair: &Pair, person: &Person) {
    let body = "BEGIN IF NEW.session_id = '{ID}' THEN RAISE EXCEPTION 'not this one'; END IF; \
                RETURN NEW; END";
    let body = body.replace("{ID}", &person.session().to_string());
    pair.sql(&format!(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$; \
         CREATE TRIGGER refuse BEFORE INSERT ON participants \
         FOR EACH ROW EXECUTE FUNCTION refuse()"
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_28_a_room_that_is_always_refused_keeps_no_other_from_being_written() {
    let pair = Plan::new().start().await;
    let topic = pair.topic("t").await;
    let (ann, bob) = (pair.person(0).await, pair.person(1).await);
    refuse_person(&pair, &ann);
    let first = ann.join(topic, 2).await.expect(202);
    bob.join(topic, 2).await.expect(202);
    let lucky = pair.topic("u").await;
    for _ in 0..3 {
        let people = pair.people(10).await;
        join_all(people.iter().map(|person| person.join(lucky, 2))).await;
        pair.matched(&people).await;
        let state = ann.state().await;
        if state["status"] == "waiting" {
            assert_eq!(state["waiting_since"], first["waiting_since"]);
        }
    }
    // One second, two, four, eight between them: the fifth refusal is the last.
    let limit = Duration::from_mins(1);
    let failed = json!({ "status": "idle", "reason": "failed" });
    for person in [&ann, &bob] {
        let patiently = async {
            loop {
                let state = person.long_poll(5).await.expect(200);
                if state["status"] != "waiting" {
                    return state;
                }
            }
        };
        assert_eq!(within(limit, "it is given up", patiently).await, failed);
    }
    let tombstones = "SELECT count(*) FROM conversations WHERE topic_id = ";
    assert_eq!(pair.sql(&format!("{tombstones}{topic}")), "5");
    bob.join(topic, 2).await.expect(202);
    let cem = pair.person(0).await;
    cem.join(topic, 2).await;
    pair.matched(&[bob, cem]).await;
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_who_sits_already_by_the_records_is_not_seated_twice() {
    let pair = Plan::new().start().await;
    let topic = pair.topic("t").await;
    let (ann, bob, cem) = (pair.person(0).await, pair.person(1).await, pair.person(0).await);
    ann.join(topic, 2).await.expect(202);
    let (room, other) = ("01970000-0000-7000-8000-000000000001", uuid::Uuid::now_v7());
    let session = ann.session();
    pair.sql(&format!(
        "INSERT INTO conversations (id, topic_id, size, created_at) VALUES ('{room}', 7, 2, now()); \
         INSERT INTO participants VALUES ('{room}', '{session}', 1, 2, now()), \
            ('{room}', '{other}', 2, 2, now())"
    ));
    let waiting = bob.join(topic, 2).await.expect(202);
    let seated = ann.becomes("matched").await;
    assert_eq!(seated["room_id"], room);
    let state = bob.state().await;
    assert_eq!(state["waiting_since"], waiting["waiting_since"], "{state}");
    cem.join(topic, 2).await;
    let rooms = pair.matched(&[bob, cem]).await;
    assert_eq!(rooms[0], rooms[1]);
    ann.join(topic, 2).await.refused(409, "already_matched");
    pair.sound().await;
}

/// Holds a lock on the rooms until it is dropped, so that nothing is written.
struct Lock {
    _client: tokio_postgres::Client,
}

impl Lock {
    async fn take(pair: &Pair) -> Self {
        let url = pair.postgres.url();
        let (client, connection) =
            tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("it is there");
        tokio::spawn(connection);
        let sql = "BEGIN; LOCK TABLE participants IN ACCESS EXCLUSIVE MODE";
        client.batch_execute(sql).await.expect("locked");
        Self { _client: client }
    }
}

/// People whose rooms are being written while the database hangs.
async fn caught(pair: &Pair, topic: i64, n: usize) -> (Vec<Person>, Vec<Value>) {
    let people = pair.people(n).await;
    let mut states = Vec::new();
    for person in &people {
        states.push(person.join(topic, 2).await.expect(202));
    }
    (people, states)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_7_and_27_a_lock_of_twenty_seconds_costs_nobody_the_place() {
    let pair = Plan::new().set("reservation_ttl", "6s").start().await;
    let (topic, other) = (pair.topic("t").await, pair.topic("u").await);
    let lock = Lock::take(&pair).await;
    let locked = Since::now();
    let (people, states) = caught(&pair, topic, 20).await;
    let all = across(&pair, &people);
    within(Duration::from_secs(40), "twenty seconds pass", async {
        while locked.millis() < 20_000 {
            for ((person, before), i) in all.iter().zip(&states).zip(0..) {
                let state = person.state().await;
                assert_eq!(state["status"], "waiting", "{state}");
                assert_eq!(state["waiting_since"], before["waiting_since"]);
                if i % 7 == 0 {
                    person.join(other, 2).await.refused(409, "already_waiting");
                }
            }
        }
    })
    .await;
    drop(lock);
    let freed = Since::now();
    let mut rooms = within(SETTLED, "they are seated", pair.matched(&people)).await;
    assert!(freed.millis() < 8_000, "normal again only after {} ms", freed.millis());
    rooms.sort();
    for two in rooms.chunks(2) {
        assert_eq!(two[0], two[1], "a room of one");
    }
    rooms.dedup();
    assert_eq!(rooms.len(), people.len() / 2);
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_29_a_cancel_during_the_writing_of_a_room_that_fails_is_a_cancel() {
    let pair = Plan::new().set("reservation_ttl", "3s").start().await;
    let topic = pair.topic("t").await;
    let lock = Lock::take(&pair).await;
    let (people, states) = caught(&pair, topic, 2).await;
    let (ann, bob) = (&people[0], &people[1]);
    let conflict = ann.cancel().await.refused(409, "already_matched");
    assert_eq!(conflict["state"]["status"], "waiting");
    // Held until the reservation is over and the room has been given up.
    let idle = ann.becomes("idle").await;
    assert_eq!(idle, json!({ "status": "idle", "reason": "left" }));
    drop(lock);
    let state = bob.state().await;
    assert_eq!(state["waiting_since"], states[1]["waiting_since"], "{state}");
    let cem = pair.person(0).await;
    cem.join(topic, 2).await;
    let rooms = pair.matched(&[bob.clone(), cem]).await;
    assert_eq!(rooms[0], rooms[1]);
    assert_eq!(ann.state().await, idle);
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_14_with_the_database_away_for_longer_than_a_reservation_places_are_kept() {
    let mut pair = Plan::new().set("reservation_ttl", "2s").start().await;
    let topic = pair.topic("t").await;
    // Formed, and then nobody can write it.
    pair.postgres.freeze();
    let (people, states) = caught(&pair, topic, 6).await;
    pair.ready(0, "degraded").await;
    eventually("everybody is back in the queue", async || {
        let queue = pair.ask(&format!("ZCARD NS:matching:queue:{topic}:2"));
        for person in &people {
            assert_eq!(person.state().await["status"], "waiting");
        }
        (queue == ":6").then_some(())
    })
    .await;
    for (person, before) in across(&pair, &people).iter().zip(&states) {
        assert_eq!(person.state().await["waiting_since"], before["waiting_since"]);
    }
    pair.postgres.thaw();
    let rooms = within(SETTLED, "they are seated", pair.matched(&people)).await;
    for two in rooms.chunks(2) {
        assert_eq!(two[0], two[1], "the first two come first");
    }
    pair.sound().await;
    pair.terminate(0).await;
    pair.terminate(1).await;
}
