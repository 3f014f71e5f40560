use std::net::IpAddr;

use aiseki::bans::BanSubject;
use aiseki::matching::{NotEntered, TurnedAway};
use aiseki_lobby::{IdleReason, Queue};

use super::house::{House, home, person};
use super::stores::Place;

suite![
    a_banned_session_is_taken_out_and_others_stay,
    a_banned_network_is_taken_out_by_the_addresses_people_came_from,
    addresses_are_known_after_a_restart,
    a_ban_that_was_stored_only_is_carried_out_at_the_start,
    nobody_slips_in_beside_a_ban,
];

async fn a_banned_session_is_taken_out_and_others_stay(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    for n in 0..3 {
        house.join(person(n), topic, 3).await;
    }
    house.join(person(3), topic, 3).await;
    house.join(person(4), topic, 3).await;
    for banned in [3, 0] {
        house.ban(BanSubject::Session(person(banned))).await;
    }
    assert_eq!(house.idle(person(3)).await, Some(IdleReason::Banned));
    house.wait_of(person(4)).await;
    // A seat is not touched.
    house.seat_of(person(0)).await;
    let refused = house.refused(person(3), topic, 3).await;
    assert_eq!(refused, NotEntered::TurnedAway(TurnedAway::Banned));
}

async fn a_banned_network_is_taken_out_by_the_addresses_people_came_from(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let mut people = Vec::new();
    for (n, (address, inside)) in (0..).zip([
        ("192.0.2.1", true),
        ("192.0.2.255", true),
        ("::ffff:192.0.2.9", true),
        ("192.0.3.0", false),
        ("2001:db8::1", false),
    ]) {
        let address: IpAddr = address.parse().unwrap();
        let queue = Queue { topic: house.topic().await, room_type: 2 };
        house.enters(person(n), queue, address).await.unwrap();
        people.push((person(n), queue, address, inside));
    }
    house.ban(BanSubject::Network("192.0.2.0/24".parse().unwrap())).await;
    for (session, queue, address, inside) in people {
        if inside {
            assert_eq!(house.idle(session).await, Some(IdleReason::Banned), "{address}");
            let refused = house.enters(session, queue, address).await;
            assert_eq!(refused, Err(NotEntered::TurnedAway(TurnedAway::Banned)));
        } else {
            house.wait_of(session).await;
        }
    }
}

async fn addresses_are_known_after_a_restart(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 2).await;
    let house = house.reopen().await;
    house.ban(BanSubject::Network(home().into())).await;
    assert_eq!(house.idle(person(0)).await, Some(IdleReason::Banned));
    let house = house.reopen().await;
    assert_eq!(house.idle(person(0)).await, Some(IdleReason::Banned));
    let refused = house.refused(person(0), topic, 2).await;
    assert_eq!(refused, NotEntered::TurnedAway(TurnedAway::Banned));
}

async fn a_ban_that_was_stored_only_is_carried_out_at_the_start(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 2).await;
    house.store.add_ban(BanSubject::Session(person(0)), String::new(), None).await.unwrap();
    let house = house.reopen().await;
    assert_eq!(house.idle(person(0)).await, Some(IdleReason::Banned));
}

async fn nobody_slips_in_beside_a_ban(place: Box<dyn Place>) {
    let house = House::open(place).await;
    for round in 0..200 {
        let queue = Queue { topic: house.topic().await, room_type: 2 };
        let address = IpAddr::from([10, 0, 0, u8::try_from(round).unwrap()]);
        let joins = (0..8).map(|n| house.enters(person(round * 8 + n), queue, address));
        let subject = BanSubject::Network(address.into());
        tokio::join!(futures_util::future::join_all(joins), house.ban(subject));
        assert_eq!(house.waiting().await, 0, "round {round}");
    }
}
