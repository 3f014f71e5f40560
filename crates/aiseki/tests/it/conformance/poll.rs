use aiseki_lobby::{IdleReason, State};

use super::house::{House, person};
use super::stores::Place;
use crate::harness::eventually;

suite![
    a_stranger_is_idle_for_no_reason,
    polling_shows_how_many_stand_before_and_changes_nothing,
    polling_keeps_somebody_present_and_silence_does_not,
];

async fn a_stranger_is_idle_for_no_reason(place: Box<dyn Place>) {
    let house = House::open(place).await;
    assert_eq!(house.state(person(0)).await, State::Idle(None));
    assert_eq!(house.waiting().await, 0);
}

async fn polling_shows_how_many_stand_before_and_changes_nothing(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.policy.room_types = "8".parse().unwrap()).await;
    let topic = house.topic().await;
    for n in 0..7 {
        house.join(person(n), topic, 8).await;
    }
    for n in 0..7 {
        let first = house.wait_of(person(n)).await;
        assert_eq!(u64::try_from(first.ahead).unwrap(), n);
        assert_eq!(house.wait_of(person(n)).await, first);
    }
}

async fn polling_keeps_somebody_present_and_silence_does_not(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.policy.presence_timeout = 500).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 3).await;
    house.join(person(1), topic, 3).await;
    eventually("the silent one is dropped", async || {
        house.wait_of(person(0)).await;
        (house.waiting().await == 1).then_some(())
    })
    .await;
    assert_eq!(house.idle(person(1)).await, Some(IdleReason::Absent));
}
