use std::collections::{HashMap, HashSet};

use aiseki::matching::NotEntered;
use aiseki_lobby::{Policy, Queue, SessionId, State};
use futures_util::future::join_all;

use super::house::{House, home, person};
use super::stores::Place;
use crate::harness::eventually;

suite![
    the_same_person_many_times_at_once_is_one_wait,
    a_join_against_a_cancel_leaves_nobody_alone_in_a_room,
    two_people_at_the_same_moment_on_a_thousand_topics,
    a_thousand_arrivals_at_once_are_served_in_the_order_of_their_tickets,
    thousands_come_and_go_and_everything_agrees,
];

fn people(n: u64) -> Vec<SessionId> {
    (0..n).map(person).collect()
}

/// What must be true whatever happened: nobody twice, sizes right, members, records and queues agree.
async fn agree(house: &House, people: &[SessionId]) {
    // Rooms may still form and be written while one looks, and of a room that is being written its
    // people say that they wait: what was seen counts when nothing changed meanwhile.
    let (live, states, waiting) = eventually("nothing changes any more", async || {
        let (before, waiting) = (house.live().await, house.waiting().await);
        let states = join_all(people.iter().map(|session| house.state(*session))).await;
        let same = before == house.live().await && waiting == house.waiting().await;
        let told = states.iter().filter(|state| matches!(state, State::Waiting(_))).count();
        (same && told == waiting).then_some((before, states, waiting))
    })
    .await;
    let mut seats = HashMap::new();
    for conversation in &live {
        let held = conversation.participants.iter().filter(|person| person.left_at.is_none());
        let held: Vec<_> = held.map(|person| person.session).collect();
        assert_eq!(usize::from(conversation.size), conversation.participants.len());
        assert!(held.len() >= 2, "{conversation:?} is live");
        for session in held {
            let other = seats.insert(session, conversation.room);
            assert_eq!(other, None, "{session} sits twice");
        }
    }
    let mut tickets = HashSet::new();
    for (session, state) in people.iter().zip(states) {
        match state {
            State::Matched(seat) => assert_eq!(seats.remove(session), Some(seat.room)),
            State::Waiting(wait) => {
                assert!(tickets.insert(wait.ticket));
                assert_eq!(seats.get(session), None, "{session} waits and sits");
            }
            State::Idle(_) | State::Offered(_) => {
                assert_eq!(seats.get(session), None, "{session} sits unknowingly");
            }
        }
    }
    assert!(seats.is_empty(), "strangers sit: {seats:?}");
    assert_eq!(waiting, tickets.len());
}

async fn the_same_person_many_times_at_once_is_one_wait(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let queue = Queue { topic: house.topic().await, room_type: 3 };
    let mut people = Vec::new();
    for n in 0..100 {
        let (ann, bob) = (person(n), person(n + 1_000));
        let answers = join_all((0..8).map(|_| house.enters(ann, queue, home()))).await;
        for answer in answers {
            // A repetition after the room was formed is told the room.
            let (Ok(state) | Err(NotEntered::AlreadyMatched(state))) = answer else {
                panic!("{answer:?}")
            };
            assert_eq!(house.state(ann).await, state);
        }
        // Joining, cancelling and joining twice in quick succession: whatever the order, one wait.
        let join = || house.enters(bob, queue, home());
        let _ = tokio::join!(join(), house.cancel(bob), join(), join());
        people.extend([ann, bob]);
        agree(&house, &people).await;
    }
    for conversation in house.live().await {
        let people: HashSet<_> = conversation.participants.iter().map(|p| p.session).collect();
        assert_eq!(people.len(), usize::from(conversation.size), "{conversation:?}");
    }
}

async fn a_join_against_a_cancel_leaves_nobody_alone_in_a_room(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    for n in 0..2_000 {
        let (ann, bob) = (person(n * 2), person(n * 2 + 1));
        house.join(ann, topic, 2).await;
        let (joined, cancelled) = if n % 2 == 0 {
            tokio::join!(house.join(bob, topic, 2), house.cancel(ann))
        } else {
            let (cancelled, joined) = tokio::join!(house.cancel(ann), house.join(bob, topic, 2));
            (joined, cancelled)
        };
        match (joined, cancelled) {
            (State::Waiting(wait), Ok(())) => {
                assert_eq!(house.wait_of(bob).await, wait);
                assert!(house.idle(ann).await.is_some());
                house.cancel(bob).await.unwrap();
            }
            // The room may still have been being written when the cancellation came too late for it.
            (State::Matched(seat), Err(State::Matched(_) | State::Waiting(_))) => {
                assert_eq!(house.seat_of(ann).await, seat);
                house.vacate(ann, seat.room).await;
            }
            other => panic!("neither both nor one: {other:?}"),
        }
    }
}

async fn two_people_at_the_same_moment_on_a_thousand_topics(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topics = join_all((0..1_000).map(|_| house.topic())).await;
    join_all(topics.iter().zip(0..).flat_map(|(topic, n)| {
        [house.join(person(n * 2), *topic, 2), house.join(person(n * 2 + 1), *topic, 2)]
    }))
    .await;
    assert_eq!(house.live().await.len(), 1_000);
    agree(&house, &people(2_000)).await;
}

async fn a_thousand_arrivals_at_once_are_served_in_the_order_of_their_tickets(
    place: Box<dyn Place>,
) {
    let house = House::with(place, |rules| rules.policy.room_types = "8".parse().unwrap()).await;
    let topic = house.topic().await;
    // Ids in reverse order, so that nobody is served in the order of ids by accident.
    join_all((0..1_000).rev().map(|n| house.join(person(n), topic, 8))).await;
    let rooms = house.live().await;
    assert_eq!(rooms.len(), 125);
    let order: Vec<_> =
        rooms.iter().flat_map(|room| &room.participants).map(|person| person.session).collect();
    // Futures are first asked in their order, so the commands were sent in it.
    let arrived: Vec<_> = (0..1_000).rev().map(person).collect();
    assert_eq!(order, arrived);
}

async fn thousands_come_and_go_and_everything_agrees(place: Box<dyn Place>) {
    const PEOPLE: u64 = 600;
    let house = House::with(place, |rules| {
        rules.policy = Policy {
            room_types: "2,3>2,5>3".parse().unwrap(),
            fallback_after: 100,
            ..Policy::default()
        };
    })
    .await;
    let topics = join_all((0..5).map(|_| house.topic())).await;
    let lives = (0..PEOPLE).map(|n| {
        let (house, topics) = (&house, &topics);
        async move {
            // A small generator of its own for each person: the sequence is the same in every run.
            let mut random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = |below: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % below
            };
            for _ in 0..20 {
                let topic = topics[usize::try_from(next(5)).unwrap()];
                let room_type = [2, 3, 5][usize::try_from(next(3)).unwrap()];
                let queue = Queue { topic, room_type };
                let _ = house.enters(person(n), queue, home()).await;
                match next(4) {
                    0 => {
                        let _ = house.cancel(person(n)).await;
                    }
                    1 => {
                        if let State::Matched(seat) = house.state(person(n)).await {
                            house.vacate(person(n), seat.room).await;
                        }
                    }
                    _ => tokio::task::yield_now().await,
                }
            }
        }
    });
    join_all(lives).await;
    agree(&house, &people(PEOPLE)).await;
    let house = house.reopen().await;
    agree(&house, &people(PEOPLE)).await;
}
