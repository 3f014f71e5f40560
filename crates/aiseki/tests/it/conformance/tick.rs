use aiseki_lobby::{IdleReason, Millis};

use super::house::{House, person};
use super::stores::{Place, Rules};
use crate::harness::eventually;

suite![
    a_wait_ends_in_time_with_nobody_polling,
    an_absent_person_is_dropped_in_time_with_nobody_polling,
    fallback_comes_in_time_and_not_early_with_nobody_polling,
    merge_comes_in_time_with_nobody_polling,
    merge_can_be_switched_off,
    the_fallback_of_a_lone_person_waits_for_a_second_one,
    a_full_room_goes_before_fallback_and_merge,
    a_fallback_that_came_due_while_the_store_was_closed_comes_at_the_start,
    a_wait_that_ended_while_the_store_was_closed_has_ended,
    idle_reasons_survive_a_restart,
    ten_thousand_absent_people_are_gone_in_time,
];

/// What is due comes within this time, also on a busy machine.
const LATE: Millis = 3_000;

fn falls_back_soon(rules: &mut Rules) {
    rules.policy.fallback_after = 300;
}

async fn a_wait_ends_in_time_with_nobody_polling(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.policy.wait_timeout = 300).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 2).await;
    let expires_at = house.wait_of(person(0)).await.expires_at;
    house.until_waiting(0).await;
    assert!((expires_at..expires_at + LATE).contains(&house.now()));
    assert_eq!(house.idle(person(0)).await, Some(IdleReason::WaitExpired));
    // Somebody who comes afterwards does not find a leftover, and the person may come again.
    house.join(person(1), topic, 2).await;
    house.join(person(0), topic, 2).await;
    house.seat_of(person(1)).await;
}

async fn an_absent_person_is_dropped_in_time_with_nobody_polling(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.policy.presence_timeout = 300).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 2).await;
    let joined = house.now();
    house.until_waiting(0).await;
    assert!(house.now() < joined + 300 + LATE);
    assert_eq!(house.idle(person(0)).await, Some(IdleReason::Absent));
}

async fn fallback_comes_in_time_and_not_early_with_nobody_polling(place: Box<dyn Place>) {
    let house = House::with(place, falls_back_soon).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 3).await;
    house.join(person(1), topic, 3).await;
    let due = house.wait_of(person(0)).await.fallback_at.unwrap();
    house.until_waiting(0).await;
    let seat = house.seat_of(person(0)).await;
    assert_eq!((seat.size, seat.requested), (2, 3));
    assert!((due..due + LATE).contains(&seat.matched_at), "{due} {seat:?}");
    assert_eq!(house.seat_of(person(1)).await, seat);
    let written = house.conversation(seat.room).await;
    assert!(written.participants.iter().all(|person| person.requested == 3));
}

async fn merge_comes_in_time_with_nobody_polling(place: Box<dyn Place>) {
    let house = House::with(place, falls_back_soon).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 2).await;
    house.join(person(1), topic, 3).await;
    let due = house.wait_of(person(1)).await.fallback_at.unwrap();
    house.until_waiting(0).await;
    let (pair, trio) = (house.seat_of(person(0)).await, house.seat_of(person(1)).await);
    assert_eq!((pair.room, pair.size, pair.requested), (trio.room, 2, 2));
    assert_eq!(trio.requested, 3);
    assert!((due..due + LATE).contains(&trio.matched_at));
    // The one who came first has the first seat, whatever was asked for.
    assert_eq!(house.conversation(pair.room).await.participants[0].session, person(0));
}

async fn merge_can_be_switched_off(place: Box<dyn Place>) {
    let house = House::with(place, |rules| {
        falls_back_soon(rules);
        rules.policy.merge_fallback = false;
    })
    .await;
    let (topic, other) = (house.topic().await, house.topic().await);
    house.join(person(0), topic, 2).await;
    house.join(person(1), topic, 3).await;
    // Two who come later fall back: by then the merge would have been due.
    house.join(person(2), other, 3).await;
    house.join(person(3), other, 3).await;
    house.until_waiting(2).await;
    house.wait_of(person(0)).await;
    house.wait_of(person(1)).await;
}

async fn the_fallback_of_a_lone_person_waits_for_a_second_one(place: Box<dyn Place>) {
    let house = House::with(place, falls_back_soon).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 3).await;
    let due = house.wait_of(person(0)).await.fallback_at.unwrap();
    eventually("the fallback time has passed", async || (house.now() > due).then_some(())).await;
    house.wait_of(person(0)).await;
    // Age never hides a ticket: whoever comes now is seated with them at once.
    house.join(person(1), topic, 3).await;
    assert_eq!(house.seat_of(person(1)).await.size, 2);
    house.seat_of(person(0)).await;
}

async fn a_full_room_goes_before_fallback_and_merge(place: Box<dyn Place>) {
    let house = House::with(place, falls_back_soon).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 3).await;
    let due = house.wait_of(person(0)).await.fallback_at.unwrap();
    house.join(person(1), topic, 2).await;
    house.join(person(2), topic, 2).await;
    assert_eq!(house.seat_of(person(1)).await.room, house.seat_of(person(2)).await.room);
    eventually("the fallback time has passed", async || (house.now() > due).then_some(())).await;
    house.join(person(3), topic, 2).await;
    let merged = house.seat_of(person(3)).await;
    assert_eq!(house.seat_of(person(0)).await.room, merged.room);
    assert_eq!(merged.size, 2);
}

async fn a_fallback_that_came_due_while_the_store_was_closed_comes_at_the_start(
    place: Box<dyn Place>,
) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 3).await;
    house.join(person(1), topic, 3).await;
    let since = house.wait_of(person(0)).await.since;
    let house = house.reopen_with(|rules| rules.policy.fallback_after = 1).await;
    house.until_waiting(0).await;
    let seat = house.seat_of(person(0)).await;
    assert!(seat.size == 2 && seat.matched_at > since);
}

async fn a_wait_that_ended_while_the_store_was_closed_has_ended(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 3).await;
    house.join(person(1), topic, 3).await;
    let house = house.reopen_with(|rules| rules.policy.wait_timeout = 1).await;
    assert_eq!(house.idle(person(0)).await, Some(IdleReason::WaitExpired));
    house.until_waiting(0).await;
    let house = house.reopen_with(|rules| rules.policy.wait_timeout = 300_000).await;
    assert_eq!(house.idle(person(0)).await, Some(IdleReason::WaitExpired));
    house.join(person(0), topic, 3).await;
    house.wait_of(person(0)).await;
}

async fn idle_reasons_survive_a_restart(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.policy.wait_timeout = 300).await;
    let (topic, other) = (house.topic().await, house.topic().await);
    house.join(person(0), topic, 2).await;
    house.until_waiting(0).await;
    house.join(person(1), other, 2).await;
    house.switch(other, false).await;
    house.join(person(2), topic, 2).await;
    house.join(person(3), topic, 2).await;
    house.vacate(person(2), house.seat_of(person(2)).await.room).await;
    let mut house = house;
    for _ in 0..2 {
        house = house.reopen().await;
        for (n, reason) in [
            (0, IdleReason::WaitExpired),
            (1, IdleReason::TopicClosed),
            (2, IdleReason::Left),
            (3, IdleReason::RoomClosed),
        ] {
            assert_eq!(house.idle(person(n)).await, Some(reason), "person {n}");
        }
    }
}

async fn ten_thousand_absent_people_are_gone_in_time(place: Box<dyn Place>) {
    let house = House::with(place, |rules| {
        rules.policy.presence_timeout = 2_000;
        rules.policy.room_types = "8".parse().unwrap();
    })
    .await;
    let mut topics = Vec::new();
    for _ in 0..1_500 {
        topics.push(house.topic().await);
    }
    let joins = topics.iter().zip(0..).flat_map(|(topic, i)| {
        let house = &house;
        (0..7).map(move |n| house.join(person(i * 7 + n), *topic, 8))
    });
    futures_util::future::join_all(joins).await;
    let last = house.now();
    house.until_waiting(0).await;
    assert!(house.now() < last + 2_000 + LATE, "{} ms", house.now() - last);
    assert!(house.live().await.is_empty());
    assert_eq!(house.idle(person(0)).await, Some(IdleReason::Absent));
}
