use aiseki_lobby::{Kind, Policy, Queue, State, TopicId};

use crate::day::{BEGIN, Day, PAIRS, SECOND, THREES, people};

#[test]
fn the_person_who_completes_a_room_forms_it() {
    let mut day = Day::new();
    day.join(1, THREES);
    day.join(2, THREES);
    assert!(day.rooms().is_empty());
    day.join(3, THREES);
    let room = day.room();
    assert_eq!((room.kind, people(&room)), (Kind::Full, vec![1, 2, 3]));
    assert_eq!((room.topic, room.size(), room.formed_at), (TopicId(42), 3, BEGIN));
}

#[test]
fn queues_of_other_topics_and_room_types_are_apart() {
    let mut day = Day::new();
    day.join(1, PAIRS);
    day.join(2, THREES);
    day.join(3, Queue { topic: TopicId(43), room_type: 2 });
    assert!(day.rooms().is_empty());
}

#[test]
fn a_thousand_topics_form_a_room_each() {
    let mut day = Day::new();
    for topic in 0..1000 {
        let queue = Queue { topic: TopicId(i64::from(topic)), room_type: 2 };
        day.join(topic, queue);
        day.join(1000 + topic, queue);
    }
    assert_eq!(day.groups(), (0..1000).map(|topic| [topic, 1000 + topic]).collect::<Vec<_>>());
}

#[test]
fn a_thousand_arrivals_in_one_millisecond_are_served_in_order() {
    let mut day = Day::with_room_types("2,8");
    // The ids of people are not in the order of their numbers, so arrival alone decides.
    for who in 0..1000 {
        day.join(who, Queue { room_type: 8, ..PAIRS });
    }
    let served: Vec<u16> = day.groups().concat();
    assert_eq!(served, (0..1000).collect::<Vec<u16>>());
}

#[test]
fn arrival_stays_in_order_when_the_clock_steps_back() {
    let mut day = Day::new();
    day.join(1, THREES);
    day.now -= 600 * SECOND;
    assert_eq!(day.join(2, THREES).since, BEGIN, "never before the newest of the queue");
    assert_eq!(day.waiting(2).ahead, 1);
    day.join(3, THREES);
    assert_eq!(day.groups(), [[1, 2, 3]]);
}

#[test]
fn age_never_hides_a_ticket() {
    let mut day = Day::new();
    day.join(1, PAIRS);
    day.live(299 * SECOND, &[1]);
    day.join(2, PAIRS);
    assert_eq!(day.groups(), [[1, 2]]);
}

#[test]
fn two_of_three_fall_back_exactly_on_time_with_nobody_polling() {
    let mut day = Day::new();
    day.join(1, THREES);
    day.pass(SECOND);
    day.join(2, THREES);
    day.live(59 * SECOND - 1, &[1, 2]);
    assert!(day.rooms().is_empty());
    day.live(1, &[1, 2]);
    let room = day.room();
    assert_eq!((room.kind, room.formed_at - BEGIN), (Kind::Fallback, 60 * SECOND));
    assert_eq!(people(&room), [1, 2], "only the oldest has to have waited so long");
    assert_eq!(room.people[0].requested, 3);
}

#[test]
fn a_full_room_comes_before_a_fallback() {
    let mut day = Day::with_room_types("2,5>2");
    let fives = Queue { room_type: 5, ..PAIRS };
    day.join_all(1..=4, fives);
    day.live(60 * SECOND - 1, &[1, 2, 3, 4]);
    day.pass(1);
    day.join(5, fives);
    assert_eq!(day.groups(), [[1, 2, 3, 4, 5]]);
}

#[test]
fn a_fallback_takes_exactly_the_fallback_number() {
    let mut day = Day::with_room_types("8>3");
    let eights = Queue { room_type: 8, ..PAIRS };
    day.join_all(1..=7, eights);
    day.live(60 * SECOND, &[1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(day.groups(), [[1, 2, 3], [4, 5, 6]]);
    assert_eq!(day.since(7), 0);
}

#[test]
fn one_past_the_fallback_time_is_seated_with_the_oldest_of_the_smaller_queue() {
    let mut day = Day::new();
    day.join(1, THREES);
    day.live(60 * SECOND, &[1]);
    assert!(day.rooms().is_empty());
    day.join(2, PAIRS);
    let room = day.room();
    assert_eq!((room.kind, people(&room)), (Kind::Merge, vec![1, 2]));
    assert_eq!([room.people[0].requested, room.people[1].requested], [3, 2]);
    day.write();
    for (who, requested) in [(1, 3), (2, 2)] {
        let State::Matched(seat) = day.state(who) else { panic!("{who} has no seat") };
        assert_eq!((seat.size, seat.requested), (2, requested));
    }
}

#[test]
fn merging_happens_on_time_when_the_smaller_queue_came_first() {
    let mut day = Day::new();
    day.join(2, PAIRS);
    day.join(1, THREES);
    day.live(60 * SECOND - 1, &[1, 2]);
    assert!(day.rooms().is_empty());
    day.live(1, &[1, 2]);
    assert_eq!(day.groups(), [[2, 1]], "in order of arrival");
}

#[test]
fn merging_can_be_switched_off() {
    let mut day = Day::with_policy(Policy { merge_fallback: false, ..Policy::default() });
    day.join(1, THREES);
    day.live(60 * SECOND, &[1]);
    day.join(2, PAIRS);
    day.live(60 * SECOND, &[1, 2]);
    assert!(day.rooms().is_empty());
}

#[test]
fn a_room_of_three_comes_about_by_merging_too() {
    let mut day = Day::with_room_types("3,8>3");
    let eights = Queue { room_type: 8, ..PAIRS };
    day.join(1, eights);
    day.join(2, eights);
    day.live(60 * SECOND, &[1, 2]);
    day.join(3, THREES);
    assert_eq!(day.groups(), [[1, 2, 3]]);
}

#[test]
fn a_fallback_within_the_queue_comes_before_a_merge() {
    let mut day = Day::new();
    day.join(1, PAIRS);
    day.join(2, THREES);
    day.join(3, THREES);
    day.live(60 * SECOND, &[1, 2, 3]);
    assert_eq!(day.groups(), [[2, 3]]);
    assert_eq!(day.since(1), 0);
}

#[test]
fn nobody_is_in_two_rooms() {
    let mut day = Day::new();
    for who in 0..100 {
        day.join(who, if who % 3 == 0 { THREES } else { PAIRS });
    }
    let mut seated = day.groups().concat();
    seated.sort_unstable();
    let before = seated.len();
    seated.dedup();
    assert_eq!((seated.len(), before), (99, 99));
}
