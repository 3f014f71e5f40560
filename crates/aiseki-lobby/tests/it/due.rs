use aiseki_lobby::{
    Change, IdleReason, Policy, Queue, ROOMS_PER_STEP, SWEEP_LIMIT, Sign, TOPICS_PER_TICK,
    TicketNumber, TopicId, Undone,
};

use crate::companions::Nobody;
use crate::day::{BEGIN, Day, PAIRS, SECOND, THREES};

#[test]
fn nothing_is_due_in_an_empty_lobby() {
    let mut day = Day::new();
    assert_eq!(day.lobby.next_due(), None);
    day.tick();
    assert!(day.changes.is_empty());
}

#[test]
fn a_tick_before_its_time_does_nothing() {
    let mut day = Day::new();
    day.join_all([1, 2], THREES);
    day.changes.clear();
    for moment in [20 * SECOND, 40 * SECOND, 60 * SECOND] {
        day.touch(1, Sign::Present);
        day.touch(2, Sign::Present);
        day.now = BEGIN + moment - 1;
        day.tick();
        assert!(day.changes.is_empty(), "{:?}", day.changes);
    }
    day.pass(1);
    day.tick();
    assert_eq!(day.groups(), [[1, 2]]);
}

#[test]
fn thousands_who_vanish_are_swept_in_bounded_steps_and_leave_nothing() {
    let mut day = Day::with_companions(Policy::default(), Nobody);
    day.join_all(0..5000, PAIRS);
    day.changes.clear();
    day.pass(30 * SECOND);
    let mut ticks = 0;
    while day.is_due() && ticks < 100 {
        day.tick();
        assert!(day.changes.len() <= SWEEP_LIMIT);
        assert!(
            day.changes
                .iter()
                .all(|it| matches!(it, Change::Dropped { reason: IdleReason::Absent, .. }))
        );
        day.changes.clear();
        ticks += 1;
    }
    assert_eq!(day.lobby.waiting(), 0);
    assert!((5..=10).contains(&ticks), "{ticks} ticks");
    day.live(601 * SECOND, &[]);
    assert_eq!(day.lobby.next_due(), None, "nobody is remembered");
}

#[test]
fn people_behind_thousands_who_vanished_are_seated_once_those_are_swept() {
    let mut day = Day::with_companions(Policy::default(), crate::companions::From(4000));
    day.join_all(0..4000, PAIRS);
    day.pass(30 * SECOND);
    day.join_all([4000, 4001], PAIRS);
    for _ in 0..10 {
        day.tick();
    }
    assert_eq!(day.groups(), [[4000, 4001]]);
    assert_eq!(day.idle(0), Some(IdleReason::Absent));
}

#[test]
fn a_step_forms_a_bounded_number_of_rooms_and_the_next_goes_on() {
    let mut day = Day::new();
    for who in 0..200 {
        let ticket = TicketNumber(u64::from(who) + 1);
        let person = aiseki_lobby::simulation::person(who);
        assert!(day.lobby.restore_waiting(person, PAIRS, ticket, BEGIN, BEGIN));
    }
    day.tick();
    assert_eq!(day.groups().len(), ROOMS_PER_STEP);
    assert!(day.is_due());
    day.poll(199);
    assert_eq!(day.groups().len(), 2 * ROOMS_PER_STEP);
    day.settle();
    assert_eq!(day.groups().concat(), (0..200).collect::<Vec<u16>>());
}

#[test]
fn a_tick_forms_no_more_rooms_on_many_topics_than_on_one() {
    let mut day = Day::new();
    for who in 0..200 {
        let queue = Queue { topic: TopicId(i64::from(who / 2)), room_type: 2 };
        let ticket = TicketNumber(u64::from(who) + 1);
        let person = aiseki_lobby::simulation::person(who);
        assert!(day.lobby.restore_waiting(person, queue, ticket, BEGIN, BEGIN));
    }
    let mut ticks = 0;
    while day.is_due() && ticks < 100 {
        let before = day.groups().len();
        day.tick();
        assert!(day.groups().len() - before <= ROOMS_PER_STEP);
        ticks += 1;
    }
    assert_eq!((ticks, day.groups().len()), (4, 100));
}

#[test]
fn a_tick_looks_at_a_bounded_number_of_topics() {
    let mut day = Day::new();
    let topics = u16::try_from(TOPICS_PER_TICK).unwrap() + 1;
    for who in 0..topics {
        let queue = Queue { topic: TopicId(i64::from(who)), room_type: 2 };
        let person = aiseki_lobby::simulation::person(who);
        day.lobby.restore_waiting(person, queue, TicketNumber(u64::from(who) + 1), BEGIN, BEGIN);
    }
    day.tick();
    assert!(day.is_due(), "one topic is left");
    day.tick();
    assert_eq!(day.lobby.next_due(), Some(BEGIN + 30 * SECOND));
}

#[test]
fn many_held_people_do_not_make_a_choice_long_nor_block_it_for_ever() {
    let mut day = Day::new();
    day.join_all(0..1000, PAIRS);
    for room in day.rooms() {
        day.release(&room, Undone::Refused);
    }
    day.changes.clear();
    day.join_all([1000, 1001], PAIRS);
    assert!(day.rooms().is_empty(), "a thousand held people stand before them");
    day.live(SECOND, &[]);
    assert_eq!(day.groups().concat(), (0..1002).collect::<Vec<u16>>());
}
