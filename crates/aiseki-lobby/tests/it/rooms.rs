use aiseki_lobby::{Change, IdleReason, Queue, SWEEP_LIMIT, State, TopicId, Undone, Vacate};

use crate::day::{Day, PAIRS, SECOND, THREES};

/// Three people who sit together.
fn seated() -> (Day, aiseki_lobby::Reservation) {
    let mut day = Day::new();
    day.join_all([1, 2, 3], THREES);
    let room = day.write();
    (day, room)
}

#[test]
fn a_room_goes_on_while_two_are_left() {
    let (mut day, room) = seated();
    assert_eq!(day.vacate(1, &room), Vacate::Left);
    assert_eq!(day.idle(1), Some(IdleReason::Left));
    assert!(day.sits(2, &room) && day.sits(3, &room));
    let State::Matched(seat) = day.state(2) else { panic!("no seat") };
    assert_eq!(seat.size, 3, "the size is the one at the beginning");
}

#[test]
fn two_who_leave_at_once_end_the_room_for_the_third() {
    let (mut day, room) = seated();
    assert_eq!([day.vacate(1, &room), day.vacate(2, &room)], [Vacate::Left; 2]);
    assert_eq!(day.idle(3), Some(IdleReason::RoomClosed));
    assert_eq!(day.lobby.live_rooms(), 0);
    assert_eq!(day.vacate(3, &room), Vacate::NotSeated);
    let ended = day.changes.iter().filter(|it| matches!(it, Change::Ended { .. })).count();
    assert_eq!(ended, 1);
}

#[test]
fn leaving_twice_or_a_room_of_others_changes_nothing() {
    let (mut day, room) = seated();
    day.vacate(1, &room);
    assert_eq!(day.vacate(1, &room), Vacate::NotSeated);
    day.join_all([1, 4], PAIRS);
    let other = day.write();
    assert_eq!(day.vacate(1, &room), Vacate::NotSeated, "an older room");
    assert!(day.sits(1, &other));
}

#[test]
fn somebody_who_left_may_wait_again() {
    let (mut day, room) = seated();
    day.vacate(1, &room);
    let waiting = day.join(1, THREES);
    assert_eq!(waiting.ticket.0, 4, "with a new ticket");
}

#[test]
fn a_closed_room_makes_everybody_idle_once() {
    let (mut day, room) = seated();
    assert!(day.lobby.close_room(room.room, day.now, &mut day.changes));
    assert_eq!([1, 2, 3].map(|who| day.idle(who)), [Some(IdleReason::RoomClosed); 3]);
    assert!(!day.lobby.close_room(room.room, day.now, &mut day.changes));
    assert_eq!(day.lobby.seated_in(room.room), None);
}

#[test]
fn a_ban_or_the_end_of_the_topic_does_not_touch_a_seat() {
    let (mut day, room) = seated();
    day.expel(1, IdleReason::Banned);
    assert!(!day.lobby.close_topic(TopicId(42), day.now, &mut day.changes));
    assert!(day.sits(1, &room) && day.sits(2, &room));
}

#[test]
fn a_seat_has_no_timeout() {
    let (mut day, room) = seated();
    day.live(86_400 * SECOND, &[]);
    assert!(day.sits(1, &room));
}

#[test]
fn a_closed_topic_takes_out_its_people_and_nobody_else() {
    let mut day = Day::new();
    let elsewhere = Queue { topic: TopicId(43), room_type: 2 };
    let before = Queue { topic: TopicId(41), room_type: 3 };
    day.join(1, PAIRS);
    day.join(2, THREES);
    day.join(3, elsewhere);
    day.join(4, before);
    assert!(!day.lobby.close_topic(TopicId(42), day.now, &mut day.changes));
    assert_eq!([day.idle(1), day.idle(2)], [Some(IdleReason::TopicClosed); 2]);
    assert_eq!([day.since(3), day.since(4)], [0, 0]);
}

#[test]
fn those_whose_room_is_being_written_are_told_when_it_is_undone() {
    let mut day = Day::new();
    day.join_all([1, 2], PAIRS);
    day.lobby.close_topic(TopicId(42), day.now, &mut day.changes);
    assert_eq!(day.since(1), 0);
    day.release(&day.room(), Undone::Lapsed);
    assert_eq!([day.idle(1), day.idle(2)], [Some(IdleReason::TopicClosed); 2]);
}

#[test]
fn a_topic_with_thousands_is_closed_in_bounded_steps() {
    // Nobody sits with anybody, so that thousands can wait.
    let mut day = Day::with_companions(aiseki_lobby::Policy::default(), crate::companions::Nobody);
    day.join_all(0..2500, PAIRS);
    let mut steps = Vec::new();
    loop {
        day.changes.clear();
        let more = day.lobby.close_topic(TopicId(42), day.now, &mut day.changes);
        steps.push(day.changes.len());
        if !more {
            break;
        }
    }
    assert_eq!(steps, [SWEEP_LIMIT, SWEEP_LIMIT, 500]);
    assert_eq!(day.lobby.waiting(), 0);
    assert_eq!(day.idle(2499), Some(IdleReason::TopicClosed));
}

#[test]
fn people_of_a_room_type_that_the_policy_no_longer_has_are_taken_out_too() {
    let mut day = Day::new();
    let fives = Queue { room_type: 5, ..PAIRS };
    let person = aiseki_lobby::simulation::person(1);
    day.lobby.restore_waiting(person, fives, aiseki_lobby::TicketNumber(1), day.now, day.now);
    day.lobby.close_topic(TopicId(42), day.now, &mut day.changes);
    assert_eq!(day.idle(1), Some(IdleReason::TopicClosed));
}
