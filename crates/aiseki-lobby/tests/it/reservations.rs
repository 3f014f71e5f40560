use aiseki_lobby::{Change, IdleReason, Queue, Refused, State, TopicId, Undone};

use crate::day::{BEGIN, Day, PAIRS, SECOND, THREES};

/// Two people for whom a room is being written.
fn reserved() -> Day {
    let mut day = Day::new();
    day.join(1, PAIRS);
    day.pass(SECOND);
    day.join(2, PAIRS);
    day
}

#[test]
fn a_room_that_is_not_written_yet_reads_as_waiting() {
    let day = reserved();
    assert_eq!(day.room().people.len(), 2);
    assert_eq!([day.since(1), day.since(2)], [0, SECOND]);
    assert_eq!(day.lobby.waiting(), 0, "they stand in no queue");
}

#[test]
fn a_written_room_seats_its_people() {
    let mut day = reserved();
    day.pass(5);
    let room = day.write();
    for who in [1, 2] {
        let State::Matched(seat) = day.state(who) else { panic!("{who} has no seat") };
        assert_eq!((seat.room, seat.topic, seat.size), (room.room, TopicId(42), 2));
        assert_eq!(seat.matched_at, BEGIN + SECOND);
    }
    assert_eq!(
        (day.lobby.live_rooms(), day.lobby.seated_in(room.room).map(<[_]>::len)),
        (1, Some(2))
    );
}

#[test]
fn joining_again_while_the_room_is_written_is_a_retry_or_refused() {
    let mut day = reserved();
    assert_eq!(day.join(1, PAIRS), day.waiting(1));
    let state = day.state(1);
    assert_eq!(day.enter(1, THREES), Err(Refused::AlreadyWaiting(state)));
    day.write();
    let state = day.state(1);
    for queue in [PAIRS, THREES] {
        assert_eq!(day.enter(1, queue), Err(Refused::AlreadyMatched(state)));
    }
}

#[test]
fn a_reservation_lapses_exactly_on_time_and_people_keep_their_places() {
    let mut day = reserved();
    let (room, before) = (day.room(), [day.waiting(1), day.waiting(2)]);
    day.join(3, THREES);
    day.live(30 * SECOND - 1, &[]);
    assert_eq!(day.rooms(), [room]);
    day.changes.clear();
    day.live(1, &[]);
    let returned = day.changes.iter().filter(|it| matches!(it, Change::Returned { .. })).count();
    assert_eq!(returned, 2);
    assert_eq!(day.groups(), [[1, 2]], "a new room is formed at once");
    assert_eq!([day.waiting(1), day.waiting(2)], before, "ticket and since are the first ones");
}

#[test]
fn people_return_before_those_who_came_later() {
    let mut day = reserved();
    day.join(3, PAIRS);
    day.release(&day.room(), Undone::Lapsed);
    assert_eq!([1, 2, 3].map(|who| day.waiting(who).ahead), [0, 1, 2]);
}

#[test]
fn presence_starts_anew_for_those_who_return() {
    let mut day = reserved();
    day.pass(29 * SECOND);
    day.release(&day.room(), Undone::Refused);
    day.live(SECOND - 1, &[]);
    assert_eq!([day.since(1), day.since(2)], [0, SECOND]);
    day.lobby.expel(
        aiseki_lobby::simulation::person(2),
        IdleReason::Banned,
        day.now,
        &mut day.changes,
    );
    day.live(29 * SECOND, &[]);
    assert_eq!(day.since(1), 0);
    day.live(1, &[]);
    assert_eq!(day.idle(1), Some(IdleReason::Absent));
}

#[test]
fn a_wait_that_ended_while_the_room_was_written_is_over_when_it_is_undone() {
    let mut day = Day::new();
    day.join(1, PAIRS);
    day.live(290 * SECOND, &[1]);
    day.join(2, PAIRS);
    day.pass(20 * SECOND);
    assert_eq!(day.since(1), 0, "nothing ends a wait while the room is being written");
    day.release(&day.room(), Undone::Lapsed);
    assert_eq!(day.idle(1), Some(IdleReason::WaitExpired));
    assert_eq!(day.since(2), 290 * SECOND);
}

#[test]
fn refused_people_are_held_for_a_second_then_twice_as_long_and_fail_after_five() {
    let mut day = reserved();
    let mut gaps = Vec::new();
    for refusal in 1..=5 {
        let at = day.now;
        day.release(&day.rooms()[refusal - 1], Undone::Refused);
        while day.rooms().len() == refusal && day.now < at + 20 * SECOND {
            day.live(SECOND / 2, &[1, 2]);
        }
        gaps.extend(day.rooms().get(refusal).map(|next| (next.formed_at - at) / SECOND));
    }
    assert_eq!(gaps, [1, 2, 4, 8]);
    assert_eq!([day.idle(1), day.idle(2)], [Some(IdleReason::Failed); 2]);
    day.join(1, PAIRS);
}

#[test]
fn a_held_person_is_passed_over_but_keeps_the_place() {
    let mut day = reserved();
    day.release(&day.room(), Undone::Refused);
    day.changes.clear();
    day.join(3, PAIRS);
    day.join(4, PAIRS);
    assert_eq!(day.groups(), [[3, 4]]);
    day.live(SECOND, &[]);
    assert_eq!(day.groups(), [[3, 4], [1, 2]]);
}

#[test]
fn a_lapse_holds_nobody_back() {
    let mut day = reserved();
    for _ in 0..8 {
        let room = day.rooms().pop().unwrap();
        day.release(&room, Undone::Lapsed);
        day.tick();
    }
    assert_eq!(day.groups().len(), 9);
    assert_eq!(day.since(1), 0);
}

#[test]
fn a_cancel_while_the_room_is_written_is_too_late() {
    let mut day = reserved();
    let state = day.state(1);
    assert_eq!(day.cancel(1), Err(state));
    let room = day.write();
    assert!(day.sits(1, &room) && day.sits(2, &room));
    let state = day.state(1);
    assert_eq!(day.cancel(1), Err(state));
}

#[test]
fn somebody_who_cancelled_is_idle_when_the_room_is_undone() {
    for undone in [Undone::Lapsed, Undone::Refused] {
        let mut day = reserved();
        assert!(day.cancel(1).is_err());
        day.release(&day.room(), undone);
        assert_eq!(day.idle(1), Some(IdleReason::Left));
        assert_eq!(day.since(2), SECOND);
    }
}

#[test]
fn joining_again_takes_back_a_cancel() {
    let mut day = reserved();
    assert!(day.cancel(1).is_err());
    day.join(1, PAIRS);
    day.release(&day.room(), Undone::Lapsed);
    assert_eq!(day.since(1), 0);
}

#[test]
fn joining_again_takes_back_neither_a_ban_nor_the_end_of_the_topic() {
    let mut day = reserved();
    day.expel(1, IdleReason::Banned);
    assert!(day.cancel(1).is_err());
    day.join(1, PAIRS);
    day.lobby.close_topic(TopicId(42), day.now, &mut day.changes);
    day.join(2, PAIRS);
    day.release(&day.room(), Undone::Lapsed);
    assert_eq!(day.idle(1), Some(IdleReason::Banned));
    assert_eq!(day.idle(2), Some(IdleReason::TopicClosed));
}

#[test]
fn a_confirmation_that_arrives_twice_changes_nothing_the_second_time() {
    let mut day = reserved();
    let room = day.write();
    day.changes.clear();
    assert_eq!(day.confirm(&room, &[1, 2]), [], "nobody's seat has to be given up");
    assert!(day.changes.is_empty());
    assert_eq!(day.lobby.seated_in(room.room).map(<[_]>::len), Some(2));
    day.release(&room, Undone::Lapsed);
    assert!(day.sits(1, &room) && day.sits(2, &room), "a late release changes nothing either");
}

#[test]
fn a_late_confirmation_seats_people_who_are_back_in_the_queue() {
    let mut day = reserved();
    let room = day.room();
    day.release(&room, Undone::Lapsed);
    assert_eq!(day.lobby.waiting(), 2);
    assert_eq!(day.confirm(&room, &[1, 2]), []);
    assert!(day.sits(1, &room) && day.sits(2, &room));
    assert_eq!(day.lobby.waiting(), 0);
    day.live(600 * SECOND, &[]);
    assert!(day.sits(1, &room), "their old waits have no consequence");
    assert_eq!(day.groups().len(), 1);
}

#[test]
fn a_late_confirmation_seats_nobody_who_waits_with_another_ticket() {
    let mut day = Day::new();
    day.join_all([1, 2, 3], THREES);
    let room = day.room();
    day.release(&room, Undone::Lapsed);
    day.cancel(3).unwrap();
    let again = day.join(3, Queue { topic: TopicId(43), room_type: 2 });
    assert_eq!(day.confirm(&room, &[1, 2, 3]), [3]);
    assert!(day.sits(1, &room) && day.sits(2, &room));
    assert_eq!(day.waiting(3), again);
}

#[test]
fn a_late_confirmation_seats_nobody_who_is_held_or_seated_by_another_room() {
    let mut day = reserved();
    let first = day.room();
    day.release(&first, Undone::Lapsed);
    day.tick();
    assert_eq!(day.confirm(&first, &[1, 2]), [1, 2]);
    let second = day.write();
    assert_ne!(second.room, first.room);
    assert_eq!(day.confirm(&first, &[1, 2]), [1, 2]);
    assert!(day.sits(1, &second) && day.sits(2, &second));
}

#[test]
fn those_without_a_seat_in_the_written_room_keep_their_place() {
    let mut day = Day::new();
    day.join_all([1, 2, 3], THREES);
    let room = day.room();
    assert_eq!(day.confirm(&room, &[1, 3]), []);
    assert!(day.sits(1, &room) && day.sits(3, &room));
    assert_eq!(day.since(2), 0);
    assert_eq!(day.lobby.length(THREES), 1);
}

#[test]
fn nobody_is_seated_alone() {
    let mut day = reserved();
    let room = day.room();
    assert_eq!(day.confirm(&room, &[1]), [1], "that seat has to be given up");
    assert_eq!([day.since(1), day.since(2)], [0, SECOND]);
    assert_eq!(day.lobby.live_rooms(), 0);
}

#[test]
fn a_confirmation_without_anybody_returns_all() {
    let mut day = reserved();
    assert_eq!(day.confirm(&day.room(), &[]), []);
    assert_eq!([day.since(1), day.since(2)], [0, SECOND]);
}

#[test]
fn a_confirmation_in_two_parts_seats_all() {
    let mut day = Day::new();
    day.join_all([1, 2, 3], THREES);
    let room = day.room();
    day.confirm(&room, &[1, 2]);
    assert_eq!(day.confirm(&room, &[1, 2, 3]), []);
    assert!([1, 2, 3].into_iter().all(|who| day.sits(who, &room)));
    assert_eq!(day.lobby.seated_in(room.room).map(<[_]>::len), Some(3));
}

#[test]
fn room_ids_are_never_used_twice() {
    let mut day = reserved();
    for _ in 0..100 {
        let room = day.rooms().pop().unwrap();
        day.release(&room, Undone::Lapsed);
        day.now -= SECOND;
        day.tick();
    }
    let mut ids: Vec<_> = day.rooms().iter().map(|room| room.room).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 101);
}
