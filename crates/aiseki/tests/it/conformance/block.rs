use aiseki_lobby::Vacate;

use super::house::{House, person};
use super::stores::Place;

suite![
    who_blocked_is_seated_with_the_next_and_nobody_loses_the_place,
    a_block_is_kept_and_holds_for_both,
];

async fn who_blocked_is_seated_with_the_next_and_nobody_loses_the_place(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    // Effective for somebody who waits already.
    house.join(person(1), topic, 2).await;
    for _ in 0..2 {
        house.store.block(person(1), person(2)).await.unwrap();
    }
    house.join(person(2), topic, 2).await;
    for n in [1, 2] {
        assert_eq!(house.wait_of(person(n)).await.queue.topic, topic);
    }
    house.join(person(3), topic, 2).await;
    let room = house.seat_of(person(1)).await.room;
    assert_eq!(house.seat_of(person(3)).await.room, room, "the oldest first");
    house.join(person(4), topic, 2).await;
    let room = house.seat_of(person(2)).await.room;
    assert_eq!(house.seat_of(person(4)).await.room, room);
}

async fn a_block_is_kept_and_holds_for_both(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    for n in [1, 2] {
        house.join(person(n), topic, 2).await;
    }
    let room = house.seat_of(person(1)).await.room;
    house.store.block(person(2), person(1)).await.unwrap();
    // Those who sit together go on doing so.
    assert_eq!(house.seat_of(person(2)).await.room, room);
    let house = house.reopen().await;
    assert_eq!(house.vacate(person(1), room).await, Vacate::Left);
    for n in [2, 1] {
        house.join(person(n), topic, 2).await;
    }
    for n in [1, 2] {
        assert_eq!(house.wait_of(person(n)).await.queue.topic, topic);
    }
    for n in [5, 6] {
        house.join(person(n), topic, 2).await;
    }
    let (of_2, of_1) = (house.seat_of(person(2)).await, house.seat_of(person(1)).await);
    assert_eq!(house.seat_of(person(5)).await.room, of_2.room);
    assert_eq!(house.seat_of(person(6)).await.room, of_1.room);
}
