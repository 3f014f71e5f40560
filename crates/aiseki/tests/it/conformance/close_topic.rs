use aiseki::matching::{NotEntered, TurnedAway};
use aiseki_lobby::IdleReason;
use futures_util::future::join_all;

use super::house::{House, person};
use super::stores::Place;

suite![
    everybody_who_waits_for_it_is_told_and_nobody_else,
    a_topic_with_thousands_is_emptied,
    nobody_gets_in_while_it_is_being_switched_off,
    a_topic_that_was_switched_off_stays_off_after_a_restart,
];

async fn everybody_who_waits_for_it_is_told_and_nobody_else(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let (topic, other) = (house.topic().await, house.topic().await);
    for n in 0..3 {
        house.join(person(n), topic, 3).await;
    }
    house.join(person(3), topic, 2).await;
    house.join(person(4), topic, 3).await;
    house.join(person(5), other, 3).await;
    house.switch(topic, false).await;
    for n in [3, 4] {
        assert_eq!(house.idle(person(n)).await, Some(IdleReason::TopicClosed));
    }
    house.seat_of(person(0)).await;
    house.wait_of(person(5)).await;
    house.switch(topic, true).await;
    house.join(person(3), topic, 2).await;
    house.wait_of(person(3)).await;
}

async fn a_topic_with_thousands_is_emptied(place: Box<dyn Place>) {
    let house = House::with(place, |rules| {
        // With one queue more than two a topic can hold many who do not fill a room.
        rules.policy.room_types = "8".parse().unwrap();
    })
    .await;
    let mut topics = Vec::new();
    for _ in 0..400 {
        topics.push(house.topic().await);
    }
    join_all(topics.iter().zip(0..).flat_map(|(topic, i)| {
        let house = &house;
        (0..7).map(move |n| house.join(person(i * 7 + n), *topic, 8))
    }))
    .await;
    assert_eq!(house.waiting().await, 2_800);
    join_all(topics.iter().map(|topic| house.switch(*topic, false))).await;
    assert_eq!(house.waiting().await, 0);
    assert_eq!(house.idle(person(2_799)).await, Some(IdleReason::TopicClosed));
}

async fn nobody_gets_in_while_it_is_being_switched_off(place: Box<dyn Place>) {
    let house = House::open(place).await;
    for round in 0..100 {
        let topic = house.topic().await;
        let session = person(round);
        let joining = async {
            loop {
                let queue = aiseki_lobby::Queue { topic, room_type: 3 };
                let joined = house.enters(session, queue, super::house::home()).await;
                if joined == Err(NotEntered::TurnedAway(TurnedAway::InactiveTopic)) {
                    break;
                }
            }
        };
        tokio::join!(joining, house.switch(topic, false));
        assert_eq!(house.waiting().await, 0, "round {round}");
    }
}

async fn a_topic_that_was_switched_off_stays_off_after_a_restart(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    house.join(person(0), topic, 3).await;
    // The change is stored, and the server ends before it acts on it.
    house.store.change_topic(topic, None, Some(false)).await.unwrap();
    let house = house.reopen().await;
    assert_eq!(house.idle(person(0)).await, Some(IdleReason::TopicClosed));
    let refused = house.refused(person(0), topic, 3).await;
    assert_eq!(refused, NotEntered::TurnedAway(TurnedAway::InactiveTopic));
}
