use std::net::IpAddr;

use aiseki::bans::BanSubject;
use aiseki::matching::{NotEntered, TurnedAway};
use aiseki_lobby::{Queue, State, TopicId};

use super::house::{House, home, limits, person};
use super::stores::Place;

suite![
    people_are_seated_in_the_order_of_their_arrival,
    a_repetition_keeps_place_and_time_and_counts_for_no_limit,
    each_check_answers_before_those_after_it,
    conflicts_carry_the_state,
    a_burst_is_let_through_and_the_next_is_told_when,
    addresses_are_limited_too_and_new_sessions_count,
    nobody_is_limited_without_limits,
    places_times_and_seats_survive_a_restart,
    ticket_numbers_are_never_used_again,
    a_wait_in_a_room_type_that_was_abolished_ends_at_the_restart,
];

async fn people_are_seated_in_the_order_of_their_arrival(place: Box<dyn Place>) {
    let house = House::with(place, |rules| {
        rules.policy.room_types = "2,3>2,5".parse().unwrap();
    })
    .await;
    let topic = house.topic().await;
    for (first, size) in [(0, 2), (10, 3), (20, 5)] {
        for n in first..first + u64::from(size) - 1 {
            let State::Waiting(waiting) = house.join(person(n), topic, size).await else {
                panic!("not yet full")
            };
            assert_eq!(waiting.ahead, usize::try_from(n - first).unwrap());
            assert_eq!(waiting.expires_at, waiting.since + 300_000);
            assert_eq!(waiting.fallback_at, (size == 3).then(|| waiting.since + 60_000));
        }
        let last = first + u64::from(size) - 1;
        let State::Matched(seat) = house.join(person(last), topic, size).await else {
            panic!("full")
        };
        assert_eq!((seat.topic, seat.size, seat.requested), (topic, size, size));
        let written = house.conversation(seat.room).await;
        let seats: Vec<_> = written.participants.iter().map(|p| (p.seat, p.session)).collect();
        let expected: Vec<_> = (1..).zip((first..=last).map(person)).collect();
        assert_eq!(seats, expected);
        for n in first..=last {
            assert_eq!(house.seat_of(person(n)).await, seat);
        }
    }
    assert_eq!(house.waiting().await, 0);
}

async fn a_repetition_keeps_place_and_time_and_counts_for_no_limit(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.limits = Some(limits("1/1h", "2/1h"))).await;
    let topic = house.topic().await;
    let first = house.join(person(0), topic, 3).await;
    house.join(person(1), topic, 3).await;
    for _ in 0..50 {
        assert_eq!(house.join(person(0), topic, 3).await, first);
    }
    assert!(matches!(house.refused(person(0), topic, 2).await, NotEntered::RateLimited(_)));
}

async fn each_check_answers_before_those_after_it(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.limits = Some(limits("4/1h", "1000/1h"))).await;
    let (topic, other) = (house.topic().await, house.topic().await);
    let closed = house.topic().await;
    house.switch(closed, false).await;
    let ann = person(0);
    // No rooms of this type: said first, and counted by nothing.
    for _ in 0..10 {
        let unknown = house.refused(ann, TopicId(4711), 9).await;
        assert_eq!(unknown, NotEntered::InvalidRoomType);
    }
    house.join(ann, topic, 3).await;
    let turned = |away| NotEntered::TurnedAway(away);
    assert_eq!(house.refused(ann, TopicId(4711), 2).await, turned(TurnedAway::UnknownTopic));
    assert_eq!(house.refused(ann, closed, 2).await, turned(TurnedAway::InactiveTopic));
    house.ban(BanSubject::Session(ann)).await;
    // Banned stands before the topic, and the limit before the ban.
    assert_eq!(house.refused(ann, TopicId(4711), 2).await, turned(TurnedAway::Banned));
    let limited = house.refused(ann, other, 2).await;
    assert!(matches!(limited, NotEntered::RateLimited(_)), "{limited:?}");
    assert_eq!(house.refused(ann, other, 9).await, NotEntered::InvalidRoomType);
}

async fn conflicts_carry_the_state(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let (topic, other) = (house.topic().await, house.topic().await);
    let waiting = house.join(person(0), topic, 3).await;
    for (topic, room_type) in [(other, 3), (topic, 2), (other, 2)] {
        let refused = house.refused(person(0), topic, room_type).await;
        assert_eq!(refused, NotEntered::AlreadyWaiting(waiting));
    }
    house.join(person(1), topic, 3).await;
    let matched = house.join(person(2), topic, 3).await;
    for (topic, room_type) in [(topic, 3), (topic, 2), (other, 3)] {
        let refused = house.refused(person(0), topic, room_type).await;
        assert_eq!(refused, NotEntered::AlreadyMatched(matched));
    }
}

async fn a_burst_is_let_through_and_the_next_is_told_when(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.limits = Some(limits("3/1h", "1000/1h"))).await;
    let topic = house.topic().await;
    for _ in 0..3 {
        house.join(person(0), topic, 2).await;
        house.cancel(person(0)).await.unwrap();
    }
    let NotEntered::RateLimited(limited) = house.refused(person(0), topic, 2).await else {
        panic!("the burst is over")
    };
    // One of three comes back in twenty minutes, less the moments that have passed.
    assert!((1_140_000..=1_200_000).contains(&limited.retry_after), "{limited:?}");
    // It is this person's limit and nobody else's.
    house.join(person(1), topic, 2).await;
}

async fn addresses_are_limited_too_and_new_sessions_count(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.limits = Some(limits("1000/1h", "2/1h"))).await;
    let topic = house.topic().await;
    let count = async |address: &str| {
        let address: IpAddr = address.parse().unwrap();
        house.store.count_new_session(address.into()).await.unwrap()
    };
    assert!(count("192.0.2.1").await.is_ok());
    house.join(person(0), topic, 3).await;
    assert!(matches!(house.refused(person(1), topic, 3).await, NotEntered::RateLimited(_)));
    assert!(count("192.0.2.1").await.is_err());
    assert!(count("2001:db8::1").await.is_ok());
    assert!(count("2001:db8::2").await.is_ok());
    assert!(count("2001:db8::3").await.is_err(), "a /64 counts as one");
    let queue = Queue { topic, room_type: 3 };
    let elsewhere = IpAddr::from([192, 0, 2, 2]);
    house.enters(person(1), queue, elsewhere).await.expect("another address");
    house.enters(person(2), queue, home()).await.expect_err("the first address");
}

async fn nobody_is_limited_without_limits(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    for _ in 0..300 {
        house.join(person(0), topic, 2).await;
        house.cancel(person(0)).await.unwrap();
        assert!(house.store.count_new_session(home().into()).await.unwrap().is_ok());
    }
}

async fn places_times_and_seats_survive_a_restart(place: Box<dyn Place>) {
    let mut house = House::with(place, |rules| {
        rules.policy.room_types = "2,8".parse().unwrap();
    })
    .await;
    let topic = house.topic().await;
    let mut before = Vec::new();
    for n in 0..6 {
        house.join(person(n), topic, 8).await;
    }
    house.cancel(person(2)).await.unwrap();
    for n in [10, 11] {
        house.join(person(n), topic, 2).await;
    }
    for n in 0..12 {
        before.push(house.state(person(n)).await);
    }
    for _ in 0..3 {
        house = house.reopen().await;
        for (n, state) in (0..).zip(&before) {
            assert_eq!(house.state(person(n)).await, *state, "person {n}");
        }
    }
    // The order of arrival goes on where it was.
    for n in [20, 21, 22] {
        house.join(person(n), topic, 8).await;
    }
    let seat = house.seat_of(person(0)).await;
    let people = house.conversation(seat.room).await.participants;
    let order: Vec<_> = people.iter().map(|participant| participant.session).collect();
    assert_eq!(order, [0, 1, 3, 4, 5, 20, 21, 22].map(person));
}

async fn ticket_numbers_are_never_used_again(place: Box<dyn Place>) {
    let mut house = House::open(place).await;
    let topic = house.topic().await;
    let mut highest = 0;
    for round in 0..6 {
        for n in 0..4 {
            let State::Waiting(waiting) = house.join(person(n), topic, 3).await else {
                // The third is seated; that took a number too.
                house.vacate(person(n), house.seat_of(person(n)).await.room).await;
                highest += 1;
                continue;
            };
            assert!(waiting.ticket.0 > highest, "{waiting:?} after {highest}");
            highest = waiting.ticket.0;
        }
        for n in 0..4 {
            if let Err(State::Matched(seat)) = house.cancel(person(n)).await {
                house.vacate(person(n), seat.room).await;
            }
        }
        assert_eq!(house.waiting().await, 0, "round {round}");
        house = house.reopen().await;
    }
}

async fn a_wait_in_a_room_type_that_was_abolished_ends_at_the_restart(place: Box<dyn Place>) {
    let house = House::with(place, |rules| rules.policy.room_types = "2,4".parse().unwrap()).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 4).await;
    house.join(person(1), topic, 2).await;
    let house = house.reopen_with(|rules| rules.policy.room_types = "2,3".parse().unwrap()).await;
    assert!(house.idle(person(0)).await.is_some());
    house.wait_of(person(1)).await;
    house.join(person(0), topic, 2).await;
    assert_eq!(house.seat_of(person(1)).await.room, house.seat_of(person(0)).await.room);
}
