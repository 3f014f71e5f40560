use aiseki_lobby::{IdleReason, Sign};

use super::house::{House, person};
use super::stores::Place;
use crate::harness::eventually;

suite![
    a_sign_of_life_keeps_many_at_once,
    who_closed_the_connection_is_dropped_after_the_grace,
    a_sign_of_life_takes_the_farewell_back,
    signs_of_those_who_do_not_wait_mean_nothing,
    presence_starts_anew_after_a_restart,
];

async fn a_sign_of_life_keeps_many_at_once(place: Box<dyn Place>) {
    let house = House::with(place, |rules| {
        rules.policy.presence_timeout = 600;
        rules.policy.room_types = "8".parse().unwrap();
    })
    .await;
    let topics = [house.topic().await, house.topic().await, house.topic().await];
    let mut present = Vec::new();
    for n in 0..18 {
        house.join(person(n), topics[usize::try_from(n % 3).unwrap()], 8).await;
        present.push(person(n));
    }
    house.join(person(100), topics[0], 8).await;
    let joined = house.now();
    eventually("several presence times have passed", async || {
        house.touch(&present, Sign::Present).await;
        (house.now() > joined + 1_500).then_some(())
    })
    .await;
    assert_eq!(house.idle(person(100)).await, Some(IdleReason::Absent));
    assert_eq!(house.waiting().await, present.len());
}

async fn who_closed_the_connection_is_dropped_after_the_grace(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.policy.closed_grace = 200).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 3).await;
    house.join(person(1), topic, 3).await;
    house.touch(&[person(0)], Sign::Closed).await;
    house.until_waiting(1).await;
    assert_eq!(house.idle(person(0)).await, Some(IdleReason::Absent));
    house.wait_of(person(1)).await;
}

async fn a_sign_of_life_takes_the_farewell_back(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.policy.closed_grace = 300).await;
    let topic = house.topic().await;
    for n in 0..2 {
        house.join(person(n), topic, 3).await;
    }
    house.join(person(2), topic, 2).await;
    house.touch(&[person(0), person(1), person(2)], Sign::Closed).await;
    house.touch(&[person(0)], Sign::Present).await;
    house.wait_of(person(1)).await;
    house.until_waiting(2).await;
    assert_eq!(house.idle(person(2)).await, Some(IdleReason::Absent));
}

async fn signs_of_those_who_do_not_wait_mean_nothing(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.policy.closed_grace = 100).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 2).await;
    let matched = house.join(person(1), topic, 2).await;
    house.join(person(2), topic, 2).await;
    let all = [person(0), person(1), person(2), person(3)];
    house.touch(&all, Sign::Closed).await;
    house.touch(&all[3..], Sign::Present).await;
    house.until_waiting(0).await;
    assert_eq!(house.state(person(0)).await, matched);
    assert_eq!(house.idle(person(3)).await, None);
}

async fn presence_starts_anew_after_a_restart(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.policy.closed_grace = 400).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 3).await;
    let joined = house.now();
    // The server ends after the farewell and before the grace does.
    house.touch(&[person(0)], Sign::Closed).await;
    let house = house.reopen().await;
    house.join(person(1), house.topic().await, 2).await;
    house.touch(&[person(1)], Sign::Closed).await;
    house.until_waiting(1).await;
    assert!(house.now() >= joined + 400);
    house.wait_of(person(0)).await;
}
