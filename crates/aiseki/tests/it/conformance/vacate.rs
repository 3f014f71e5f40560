use aiseki_lobby::{IdleReason, RoomId, State, Vacate};

use super::house::{House, person};
use super::stores::Place;

suite![
    one_of_three_leaves_and_the_room_goes_on,
    the_last_but_one_who_leaves_ends_the_room,
    who_has_no_seat_there_changes_nothing,
    leaving_survives_a_restart,
    two_of_three_leave_at_the_same_instant,
    a_closed_room_frees_everybody_in_it,
];

async fn seated(house: &House, n: u8) -> RoomId {
    let topic = house.topic().await;
    for i in 0..n {
        house.join(person(i.into()), topic, n).await;
    }
    house.seat_of(person(0)).await.room
}

async fn one_of_three_leaves_and_the_room_goes_on(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let room = seated(&house, 3).await;
    assert_eq!(house.vacate(person(1), room).await, Vacate::Left);
    assert_eq!(house.idle(person(1)).await, Some(IdleReason::Left));
    for n in [0, 2] {
        let seat = house.seat_of(person(n)).await;
        assert_eq!((seat.room, seat.size), (room, 3), "the size is that of the beginning");
    }
    let written = house.conversation(room).await;
    assert_eq!((written.size, written.ended_at), (3, None));
    let left: Vec<_> = written.participants.iter().map(|p| p.left_at.is_some()).collect();
    assert_eq!(left, [false, true, false]);
}

async fn the_last_but_one_who_leaves_ends_the_room(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let room = seated(&house, 2).await;
    assert_eq!(house.vacate(person(0), room).await, Vacate::Left);
    assert_eq!(house.idle(person(0)).await, Some(IdleReason::Left));
    assert_eq!(house.idle(person(1)).await, Some(IdleReason::RoomClosed));
    let written = house.conversation(room).await;
    assert!(written.ended_at.is_some_and(|at| at >= written.created_at));
    let left = written.participants.iter().map(|person| person.left_at);
    assert!(left.clone().all(|at| at.is_some()) && left.max() == Some(written.ended_at));
    assert!(house.live().await.is_empty());
}

async fn who_has_no_seat_there_changes_nothing(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let first = seated(&house, 2).await;
    assert_eq!(house.vacate(person(9), first).await, Vacate::NotSeated);
    assert_eq!(house.vacate(person(0), RoomId([7; 16])).await, Vacate::NotSeated);
    house.vacate(person(0), first).await;
    let second = seated(&house, 2).await;
    assert_ne!(first, second);
    // A late repetition of the first leave does not cost the seat of today.
    assert_eq!(house.vacate(person(0), first).await, Vacate::NotSeated);
    assert_eq!(house.seat_of(person(0)).await.room, second);
}

async fn leaving_survives_a_restart(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let room = seated(&house, 3).await;
    house.vacate(person(0), room).await;
    let house = house.reopen().await;
    assert_eq!(house.idle(person(0)).await, Some(IdleReason::Left));
    assert_eq!(house.vacate(person(0), room).await, Vacate::NotSeated);
    assert_eq!(house.vacate(person(1), room).await, Vacate::Left);
    assert_eq!(house.idle(person(2)).await, Some(IdleReason::RoomClosed));
    let written = house.conversation(room).await;
    let house = house.reopen().await;
    assert_eq!(house.conversation(room).await, written);
    assert_eq!(house.state(person(2)).await, State::Idle(Some(IdleReason::RoomClosed)));
}

async fn two_of_three_leave_at_the_same_instant(place: Box<dyn Place>) {
    let house = House::open(place).await;
    for _ in 0..200 {
        let room = seated(&house, 3).await;
        let (first, second) =
            tokio::join!(house.vacate(person(0), room), house.vacate(person(2), room));
        // Whoever was second may have found the room ended already.
        assert!(first == Vacate::Left || second == Vacate::Left);
        let written = house.conversation(room).await;
        assert!(written.ended_at.is_some());
        assert!(written.participants.iter().all(|person| person.left_at.is_some()));
        assert_eq!(house.idle(person(1)).await, Some(IdleReason::RoomClosed));
        for n in [0, 2] {
            assert!(house.idle(person(n)).await.is_some());
        }
    }
}

async fn a_closed_room_frees_everybody_in_it(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let room = seated(&house, 3).await;
    let store = &house.store;
    assert!(!store.close_room(RoomId([7; 16])).await.unwrap());
    assert!(store.close_room(room).await.unwrap());
    assert!(!store.close_room(room).await.unwrap(), "it is closed");
    for n in 0..3 {
        assert_eq!(house.idle(person(n)).await, Some(IdleReason::RoomClosed));
    }
    let house = house.reopen().await;
    assert!(house.conversation(room).await.ended_at.is_some());
    assert!(house.live().await.is_empty());
    assert_eq!(house.idle(person(0)).await, Some(IdleReason::RoomClosed));
}
