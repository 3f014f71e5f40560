use std::time::Duration;

use serde_json::Value;

use crate::harness::{Directory, Pair, Person, Plan, pass};

/// How far a moment that was told is from the time of the stores, in milliseconds.
fn away_from_now(pair: &Pair, moment: &Value) -> u64 {
    let moment = moment.as_str().expect("a moment");
    let sql =
        format!("SELECT abs(extract(epoch FROM now() - '{moment}'::timestamptz) * 1000)::int");
    pair.sql(&sql).parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_18_a_server_whose_clock_is_wrong_changes_nothing_for_anybody() {
    let directory = Directory::new();
    let clock = directory.path().join("clock");
    let set = |skew: &str| std::fs::write(&clock, skew).expect("written");
    set("+65s");
    // The wrong server is asked for what is due before anything else is.
    let pair = Plan::new().wrong_clock(&clock).start().await;
    let logged = pair.log(1)[0].split(' ').next().expect("a moment").into();
    assert!(away_from_now(&pair, &logged) > 50_000, "its clock is wrong: {logged}");
    let topic = pair.topic("t").await;
    let (ann, bob) = (pair.person(1).await, pair.person(0).await);
    let first = ann.join(topic, 3).await.expect(202);
    let second = bob.join(topic, 3).await.expect(202);
    for state in [&first, &second] {
        let wrong_by = away_from_now(&pair, &state["waiting_since"]);
        assert!(wrong_by < 10_000, "{wrong_by} ms: {state}");
    }
    assert!(first["waiting_since"].as_str() <= second["waiting_since"].as_str());
    // Beyond the fallback time, beyond the end of a wait, and back by ten minutes.
    for skew in ["+65s", "+301s", "-600s"] {
        set(skew);
        pass(Duration::from_millis(2_500)).await;
        for server in [1, 0] {
            for (person, joined, ahead) in [(&ann, &first, 0), (&bob, &second, 1)] {
                let state = pair.at(server, person).state().await;
                assert_eq!(state["status"], "waiting", "{skew}: {state}");
                assert_eq!(state["waiting_since"], joined["waiting_since"], "{skew}");
                assert_eq!(state["ahead"], ahead, "{skew}: {state}");
            }
        }
        // Whoever comes at the wrong server is neither first nor refused.
        let dan = pair.person(1).await;
        let waits = dan.join(topic, 2).await.expect(202);
        assert!(away_from_now(&pair, &waits["waiting_since"]) < 10_000, "{skew}: {waits}");
        dan.cancel().await.expect(204);
    }
    let cem = pair.person(1).await;
    cem.join(topic, 3).await;
    let people: [Person; 3] = [ann, bob, cem];
    let rooms = pair.matched(&people).await;
    assert!(rooms.iter().all(|room| *room == rooms[0]), "{rooms:?}");
    let matched = people[2].state().await;
    assert!(away_from_now(&pair, &matched["matched_at"]) < 10_000, "{matched}");
    let seats = "SELECT string_agg(session_id::text, ' ' ORDER BY seat) FROM participants";
    let ids: Vec<String> = people.iter().map(|person| person.session().to_string()).collect();
    assert_eq!(pair.sql(seats), ids.join(" "), "seats are in the order of arrival");
    pair.sound().await;
}
