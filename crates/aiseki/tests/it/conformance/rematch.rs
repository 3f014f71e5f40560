use aiseki_lobby::{State, Vacate};

use super::house::{House, person};
use super::stores::Place;

suite![
    who_shared_a_room_meets_others_first,
    everybody_of_a_closed_room_has_parted,
    partings_are_kept,
    without_the_setting_people_meet_again_at_once,
];

const MINUTES: u64 = 600_000;

async fn who_shared_a_room_meets_others_first(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.rematch_after = MINUTES).await;
    let topic = house.topic().await;
    for n in [1, 2, 3] {
        house.join(person(n), topic, 3).await;
    }
    let room = house.seat_of(person(1)).await.room;
    assert_eq!(house.vacate(person(1), room).await, Vacate::Left);
    // The two who stay have not parted from each other.
    assert_eq!(house.seat_of(person(2)).await.room, room);
    assert_eq!(house.vacate(person(3), room).await, Vacate::Left);
    for n in [1, 2, 3] {
        // Giving up a seat again is not parting again.
        assert_eq!(house.vacate(person(n), room).await, Vacate::NotSeated);
        house.join(person(n), topic, 2).await;
    }
    for n in [1, 2, 3] {
        assert_eq!(house.wait_of(person(n)).await.queue.topic, topic);
    }
    // The oldest is seated with somebody new, and nobody has lost the place.
    for (n, new) in [(1, 4), (2, 5), (3, 6)] {
        house.join(person(new), topic, 2).await;
        let room = house.seat_of(person(n)).await.room;
        assert_eq!(house.seat_of(person(new)).await.room, room);
    }
}

async fn everybody_of_a_closed_room_has_parted(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.rematch_after = MINUTES).await;
    let topic = house.topic().await;
    for n in [1, 2, 3] {
        house.join(person(n), topic, 3).await;
    }
    let room = house.seat_of(person(1)).await.room;
    assert!(house.store.close_room(room).await.unwrap());
    for n in [1, 2, 3] {
        house.join(person(n), topic, 2).await;
        assert_eq!(house.wait_of(person(n)).await.queue.topic, topic);
    }
}

async fn partings_are_kept(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.rematch_after = MINUTES).await;
    let topic = house.topic().await;
    for n in [1, 2] {
        house.join(person(n), topic, 2).await;
    }
    let room = house.seat_of(person(1)).await.room;
    house.vacate(person(1), room).await;
    let house = house.reopen().await;
    for n in [1, 2] {
        house.join(person(n), topic, 2).await;
        assert_eq!(house.wait_of(person(n)).await.queue.topic, topic);
    }
}

async fn without_the_setting_people_meet_again_at_once(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    for n in [1, 2] {
        house.join(person(n), topic, 2).await;
    }
    let first = house.seat_of(person(1)).await.room;
    house.vacate(person(1), first).await;
    for n in [1, 2] {
        house.join(person(n), topic, 2).await;
    }
    let again = house.seat_of(person(1)).await.room;
    assert_ne!(again, first);
    assert!(matches!(house.state(person(2)).await, State::Matched(seat) if seat.room == again));
}
