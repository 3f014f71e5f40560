use aiseki_lobby::{IdleReason, State};

use super::house::{House, person};
use super::stores::Place;

suite![
    cancelling_is_idempotent_and_nobody_is_seated_from_that_wait,
    somebody_seated_cannot_cancel_and_is_told_the_room,
    who_cancels_and_comes_back_stands_at_the_end,
    the_reason_survives_a_restart_and_nobody_comes_back_to_the_queue,
];

async fn cancelling_is_idempotent_and_nobody_is_seated_from_that_wait(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    assert_eq!(house.cancel(person(0)).await, Ok(()));
    assert_eq!(house.idle(person(0)).await, None, "nothing has ended");
    house.join(person(0), topic, 2).await;
    for _ in 0..3 {
        assert_eq!(house.cancel(person(0)).await, Ok(()));
        assert_eq!(house.idle(person(0)).await, Some(IdleReason::Left));
    }
    assert!(matches!(house.join(person(1), topic, 2).await, State::Waiting(_)));
    assert_eq!(house.waiting().await, 1);
}

async fn somebody_seated_cannot_cancel_and_is_told_the_room(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 2).await;
    let matched = house.join(person(1), topic, 2).await;
    for _ in 0..2 {
        assert_eq!(house.cancel(person(0)).await, Err(matched));
        assert_eq!(house.state(person(0)).await, matched);
    }
}

async fn who_cancels_and_comes_back_stands_at_the_end(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.policy.room_types = "4".parse().unwrap()).await;
    let topic = house.topic().await;
    for n in 0..3 {
        house.join(person(n), topic, 4).await;
    }
    let before = house.wait_of(person(0)).await;
    house.cancel(person(0)).await.unwrap();
    house.join(person(0), topic, 4).await;
    let after = house.wait_of(person(0)).await;
    assert!(after.ticket > before.ticket && after.since >= before.since);
    assert_eq!(after.ahead, 2);
    assert_eq!(house.wait_of(person(1)).await.ahead, 0);
}

async fn the_reason_survives_a_restart_and_nobody_comes_back_to_the_queue(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 3).await;
    house.cancel(person(0)).await.unwrap();
    let house = house.reopen().await;
    assert_eq!(house.idle(person(0)).await, Some(IdleReason::Left));
    assert_eq!(house.waiting().await, 0);
}
