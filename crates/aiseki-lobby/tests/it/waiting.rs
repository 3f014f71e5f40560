use aiseki_lobby::{IdleReason, Queue, Refused, Sign, State, TopicId};

use crate::day::{BEGIN, Day, PAIRS, SECOND, THREES};

#[test]
fn somebody_who_joins_waits_and_is_told_how_long() {
    let mut day = Day::new();
    let waiting = day.join(1, THREES);
    assert_eq!((waiting.queue, waiting.since, waiting.ahead), (THREES, BEGIN, 0));
    assert_eq!(waiting.expires_at, BEGIN + 300 * SECOND);
    assert_eq!(waiting.fallback_at, Some(BEGIN + 60 * SECOND));
    assert_eq!(day.join(2, THREES).ahead, 1);
    assert_eq!(day.join(3, PAIRS).fallback_at, None);
}

#[test]
fn joining_the_same_queue_twice_keeps_the_first_place() {
    let mut day = Day::new();
    let first = day.join(1, THREES);
    day.pass(SECOND);
    assert_eq!(day.join(1, THREES), first);
    assert_eq!(day.lobby.waiting(), 1);
    assert!(day.rooms().is_empty(), "nobody is seated with themselves");
}

#[test]
fn joining_cancelling_and_joining_twice_is_one_wait() {
    let mut day = Day::new();
    let first = day.join(1, PAIRS);
    day.cancel(1).unwrap();
    let second = day.join(1, PAIRS);
    assert_eq!(day.join(1, PAIRS), second);
    assert!(second.ticket > first.ticket);
    assert_eq!(day.lobby.length(PAIRS), 1);
}

#[test]
fn joining_another_queue_while_waiting_is_refused_with_the_state() {
    let mut day = Day::new();
    let waiting = day.join(1, THREES);
    let elsewhere = Queue { topic: TopicId(43), room_type: 3 };
    for queue in [PAIRS, elsewhere] {
        assert_eq!(day.enter(1, queue), Err(Refused::AlreadyWaiting(State::Waiting(waiting))));
    }
    assert_eq!(day.lobby.waiting(), 1);
}

#[test]
fn a_room_type_that_the_policy_has_not_is_refused() {
    let mut day = Day::new();
    for room_type in [0, 1, 4, 255] {
        let queue = Queue { room_type, ..PAIRS };
        assert_eq!(day.enter(1, queue), Err(Refused::InvalidRoomType));
    }
    assert_eq!(day.state(1), State::Idle(None));
}

#[test]
fn after_a_cancel_nobody_is_seated_from_that_wait() {
    let mut day = Day::new();
    day.join(1, PAIRS);
    day.cancel(1).unwrap();
    assert_eq!(day.idle(1), Some(IdleReason::Left));
    day.join(2, PAIRS);
    assert!(day.rooms().is_empty());
    assert_eq!(day.cancel(1), Ok(()), "cancelling is idempotent");
    assert_eq!(day.dropped(1).len(), 1);
}

#[test]
fn a_wait_ends_exactly_on_time_with_nobody_polling() {
    let mut day = Day::new();
    day.join(1, THREES);
    day.live(300 * SECOND - 1, &[1]);
    assert_eq!(day.since(1), 0);
    day.live(1, &[1]);
    assert_eq!(day.idle(1), Some(IdleReason::WaitExpired));
    assert_eq!(day.dropped(1).len(), 1);
    assert_eq!(day.lobby.waiting(), 0);
}

#[test]
fn a_wait_that_is_over_reads_as_idle_before_anything_has_swept_it() {
    let mut day = Day::new();
    day.join(1, THREES);
    day.pass(30 * SECOND);
    assert_eq!(day.idle(1), Some(IdleReason::Absent));
    assert!(!day.lobby.waits_in(aiseki_lobby::simulation::person(1), THREES, day.now));
}

#[test]
fn after_a_timeout_another_topic_is_open_to_the_person() {
    let mut day = Day::new();
    let first = day.join(1, THREES);
    day.live(300 * SECOND, &[1]);
    let elsewhere = Queue { topic: TopicId(43), room_type: 2 };
    let second = day.join(1, elsewhere);
    assert!(second.ticket > first.ticket);
    assert_eq!((day.lobby.length(THREES), day.lobby.length(elsewhere)), (0, 1));
}

#[test]
fn somebody_never_heard_of_again_is_dropped_and_others_are_seated() {
    let mut day = Day::new();
    day.join(1, PAIRS);
    day.pass(30 * SECOND);
    day.join(2, PAIRS);
    assert_eq!(day.idle(1), Some(IdleReason::Absent));
    assert!(day.rooms().is_empty());
    day.join(3, PAIRS);
    assert_eq!(day.groups(), [[2, 3]]);
}

#[test]
fn somebody_absent_is_dropped_by_the_tick_alone() {
    let mut day = Day::new();
    day.join(1, PAIRS);
    assert_eq!(day.lobby.next_due(), Some(BEGIN + 30 * SECOND));
    day.live(30 * SECOND, &[]);
    assert_eq!(day.idle(1), Some(IdleReason::Absent));
    assert_eq!(day.lobby.waiting(), 0);
}

#[test]
fn polls_joins_and_touches_are_signs_of_life() {
    let mut day = Day::new();
    for who in [1, 2, 3] {
        day.join(who, Queue { topic: TopicId(i64::from(who)), room_type: 2 });
    }
    day.pass(29 * SECOND);
    day.poll(1);
    day.join(2, Queue { topic: TopicId(2), room_type: 2 });
    day.touch(3, Sign::Present);
    day.live(29 * SECOND, &[]);
    assert_eq!([1, 2, 3].map(|who| day.since(who)), [0; 3]);
    day.live(SECOND, &[]);
    assert_eq!([1, 2, 3].map(|who| day.idle(who)), [Some(IdleReason::Absent); 3]);
}

#[test]
fn reading_a_state_is_no_sign_of_life() {
    let mut day = Day::new();
    day.join(1, PAIRS);
    day.pass(29 * SECOND);
    day.waiting(1);
    day.live(SECOND, &[]);
    assert_eq!(day.idle(1), Some(IdleReason::Absent));
}

#[test]
fn a_touch_does_not_revive_a_wait_that_is_over() {
    let mut day = Day::new();
    day.join(1, PAIRS);
    day.pass(30 * SECOND);
    day.touch(1, Sign::Present);
    assert_eq!(day.idle(1), Some(IdleReason::Absent));
}

#[test]
fn somebody_who_closed_their_connection_is_dropped_after_ten_seconds() {
    let mut day = Day::new();
    day.join(1, PAIRS);
    day.touch(1, Sign::Closed);
    assert_eq!(day.lobby.next_due(), Some(BEGIN + 10 * SECOND));
    day.live(10 * SECOND - 1, &[]);
    assert_eq!(day.since(1), 0);
    day.live(1, &[]);
    assert_eq!(day.idle(1), Some(IdleReason::Absent));
}

#[test]
fn somebody_who_comes_back_within_the_grace_stays() {
    let mut day = Day::new();
    day.join(1, PAIRS);
    day.touch(1, Sign::Closed);
    day.pass(9 * SECOND);
    day.touch(1, Sign::Present);
    day.live(29 * SECOND, &[]);
    assert_eq!(day.since(1), 0);
}

#[test]
fn the_grace_is_never_longer_than_the_presence_timeout() {
    let policy = aiseki_lobby::Policy { presence_timeout: 4 * SECOND, ..Default::default() };
    let mut day = Day::with_policy(policy);
    day.join(1, PAIRS);
    day.touch(1, Sign::Closed);
    day.live(4 * SECOND, &[]);
    assert_eq!(day.idle(1), Some(IdleReason::Absent));
}

#[test]
fn why_somebody_is_idle_is_told_for_ten_minutes() {
    let mut day = Day::new();
    day.join(1, PAIRS);
    day.cancel(1).unwrap();
    day.live(600 * SECOND - 1, &[]);
    assert_eq!(day.idle(1), Some(IdleReason::Left));
    day.live(1, &[]);
    assert_eq!(day.idle(1), None);
    day.live(2 * SECOND, &[]);
    assert_eq!(day.lobby.next_due(), None, "and then forgotten for good");
}

#[test]
fn somebody_banned_is_taken_out_with_that_reason() {
    let mut day = Day::new();
    day.join(1, PAIRS);
    day.expel(1, IdleReason::Banned);
    assert_eq!(day.idle(1), Some(IdleReason::Banned));
    day.join(2, PAIRS);
    assert!(day.rooms().is_empty());
    day.expel(9, IdleReason::Banned);
    assert_eq!(day.state(9), State::Idle(None), "somebody who does not wait is not touched");
}
