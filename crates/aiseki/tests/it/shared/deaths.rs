use futures_util::future::join_all;
use serde_json::json;

use crate::harness::{Pair, Person, Plan, SETTLED, eventually, within};

/// People meet in pairs at the first server until it dies of it; then all of them are seated by the
/// other one.
async fn survives(place: &'static str) {
    let mut pair = Plan::new().dies(0, place).start().await;
    let topic = pair.topic("t").await;
    let mut people = Vec::new();
    eventually("somebody's join is not answered", async || {
        let (ann, bob) = (pair.person(0).await, pair.person(0).await);
        people.extend([ann.clone(), bob.clone()]);
        let (ann, bob) = (ann.try_join(topic, 2).await, bob.try_join(topic, 2).await);
        (ann.is_none() || bob.is_none()).then_some(())
    })
    .await;
    pair.died(0).await;
    let people: Vec<Person> = people.iter().map(|person| pair.at(1, person)).collect();
    // Whose join was cut off before it came to the store is not there; the client repeats it.
    join_all(people.iter().map(async |person| {
        let status = person.join(topic, 2).await.status;
        assert!([200, 202, 409].contains(&status), "{status}");
    }))
    .await;
    let mut rooms = within(SETTLED, "the other server finishes", pair.matched(&people)).await;
    rooms.sort();
    for two in rooms.chunks(2) {
        assert_eq!(two[0], two[1], "a room of one");
    }
    let count = pair.sql("SELECT count(*) FROM conversations WHERE ended_at IS NULL");
    assert_eq!(count, (people.len() / 2).to_string());
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_after_it_formed_a_room_leaves_it_to_the_other() {
    survives("after-form").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorder_that_dies_before_the_insert_loses_no_room() {
    survives("before-insert").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorder_that_dies_after_the_insert_leaves_a_row_that_is_found() {
    survives("after-insert").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorder_that_dies_before_it_confirms_leaves_people_who_are_seated() {
    survives("before-confirm").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_between_the_row_and_the_seat_frees_everybody_all_the_same() {
    let mut pair = Plan::new().dies(0, "before-vacate").start().await;
    let topic = pair.topic("t").await;
    let (people, room) = pair.seated(topic, 2).await;
    let ann = pair.at(0, &people[0]);
    let path = format!("/api/rooms/{room}/leave");
    assert!(ann.client.try_call("POST", &path, None).await.is_err(), "it did not die");
    pair.died(0).await;
    let reasons = [("left", &people[0]), ("room_closed", &people[1])];
    for (reason, person) in reasons {
        let state = pair.at(1, person).becomes("idle").await;
        assert_eq!(state, json!({ "status": "idle", "reason": reason }));
    }
    pair.at(1, &people[0]).leave(&room).await.expect(204);
    pair.at(1, &people[1]).join(topic, 2).await.expect(202);
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_26_two_of_three_who_leave_at_once_through_two_servers_free_the_third() {
    let pair = Plan::new().start().await;
    let topic = pair.topic("t").await;
    for _ in 0..20 {
        let (people, room) = pair.seated(topic, 3).await;
        let (first, third) = (pair.at(0, &people[0]), pair.at(1, &people[2]));
        let (left, gone) = tokio::join!(first.leave(&room), third.leave(&room));
        left.expect(204);
        gone.expect(204);
        for server in 0..2 {
            let state = pair.at(server, &people[1]).state().await;
            assert_eq!(state, json!({ "status": "idle", "reason": "room_closed" }));
        }
        assert_eq!(people[1].room(&room).await.expect(200)["status"], "ended");
    }
    pair.sound().await;
}

/// Everybody of a pair at the other server.
pub(super) fn across(pair: &Pair, people: &[Person]) -> Vec<Person> {
    let other = |(i, person)| pair.at((i + 1) % 2, person);
    people.iter().enumerate().map(other).collect()
}
