use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aiseki::bans::BanSubject;
use aiseki::matching::{NotEntered, TurnedAway};
use aiseki_lobby::{IdleReason, Queue};

use super::house::{House, home, person};
use super::stores::{Place, Rules};

suite![
    a_banned_session_is_taken_out_and_others_stay,
    a_banned_network_is_taken_out_by_the_addresses_people_came_from,
    addresses_are_known_after_a_restart,
    a_ban_that_was_stored_only_is_carried_out_at_the_start,
    nobody_slips_in_beside_a_ban,
    the_address_that_counts_is_that_of_the_join_that_was_accepted,
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
    let eight = |rules: &mut Rules| rules.policy.room_types = "8".parse().unwrap();
    let house = Arc::new(House::with(place, eight).await);
    let topic = house.topic().await;
    let next = Arc::new(AtomicU64::new(0));
    for round in 0..100_u8 {
        let queue = Queue { topic, room_type: 8 };
        let address = IpAddr::from([10, 0, 0, round]);
        // One new person after another from this address, until the ban is in force.
        let joining: Vec<_> = (0..8)
            .map(|_| {
                let (house, next) = (Arc::clone(&house), Arc::clone(&next));
                tokio::spawn(async move {
                    let another = || person(next.fetch_add(1, Ordering::Relaxed));
                    while house.enters(another(), queue, address).await.is_ok() {}
                })
            })
            .collect();
        tokio::task::yield_now().await;
        house.ban(BanSubject::Network(address.into())).await;
        futures_util::future::join_all(joining).await;
        assert_eq!(house.waiting().await, 0, "round {round}");
    }
}

async fn the_address_that_counts_is_that_of_the_join_that_was_accepted(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let (here, there) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
    for n in 0..50 {
        let first = Queue { topic: house.topic().await, room_type: 2 };
        let second = Queue { topic: house.topic().await, room_type: 2 };
        let (accepted, refused) = tokio::join!(
            house.enters(person(n), first, here),
            house.enters(person(n), second, there),
        );
        assert!(accepted.is_ok() && refused.is_err(), "the first comes first");
    }
    house.ban(BanSubject::Network(there.into())).await;
    assert_eq!(house.waiting().await, 50);
    house.ban(BanSubject::Network(here.into())).await;
    assert_eq!(house.waiting().await, 0);
}
