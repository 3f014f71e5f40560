use aiseki_lobby::simulation::person;
use aiseki_lobby::{IdleReason, Offer, Policy, RoomId, State};

use crate::day::{BEGIN, Day, PAIRS, SECOND, THREES};

const AWAY: IdleReason = IdleReason::Absent;

/// Person 1 has waited for ten seconds and comes to the room, person 2 never does.
fn ended_by_absence(queue_of_others: bool) -> (Day, RoomId) {
    let mut day = Day::new();
    day.join(1, PAIRS);
    day.pass(10 * SECOND);
    day.enter(2, PAIRS).unwrap();
    let room = day.write().room;
    if queue_of_others {
        day.join(3, PAIRS);
    }
    assert!(day.lobby.come(person(1), room) && !day.lobby.come(person(1), room));
    day.pass(20 * SECOND);
    day.lobby.dismiss(person(2), room, AWAY, day.now, &mut day.changes);
    (day, room)
}

fn offer(day: &Day, who: u16) -> Option<Offer> {
    match day.state(who) {
        State::Offered(offer) => Some(offer),
        _ => None,
    }
}

#[test]
fn who_came_is_offered_the_place_and_who_did_not_is_not() {
    let (mut day, room) = ended_by_absence(false);
    let until = day.now + 600 * SECOND;
    let expected = Offer { room, queue: PAIRS, waited: 10 * SECOND, until };
    assert_eq!(offer(&day, 1), Some(expected));
    assert_eq!(day.idle(2), Some(AWAY));
    day.now = until - 1;
    assert_eq!(offer(&day, 1), Some(expected));
    day.now = until;
    assert_eq!(day.idle(1), None);
    let state = day.lobby.resume(person(1), PAIRS, Some(room), day.now, &mut day.changes).unwrap();
    assert!(matches!(state, State::Waiting(it) if it.since == day.now), "{state:?}");
}

#[test]
fn when_the_last_to_go_had_come_nothing_is_offered() {
    let mut day = Day::with_room_types("8");
    day.join(1, aiseki_lobby::Queue { room_type: 8, ..PAIRS });
    let eight = aiseki_lobby::Queue { room_type: 8, ..PAIRS };
    day.pass(10 * SECOND);
    for who in 2..=8 {
        day.enter(who, eight).unwrap();
    }
    let room = day.write().room;
    for who in [1, 2] {
        day.lobby.come(person(who), room);
    }
    day.join(9, eight);
    for who in 3..=8 {
        day.lobby.dismiss(person(who), room, AWAY, day.now, &mut day.changes);
    }
    assert!(matches!(day.state(1), State::Matched(_)), "two are left");
    day.pass(SECOND);
    day.lobby.come(person(2), room);
    assert_eq!(day.vacate(2, &day.rooms()[0].clone()), aiseki_lobby::Vacate::Left);
    assert_eq!(day.idle(1), Some(IdleReason::RoomClosed), "the last who left had come");
}

#[test]
fn an_operator_who_closes_a_room_offers_nothing() {
    let mut day = Day::with_policy(Policy { presence_timeout: 600 * SECOND, ..Policy::default() });
    for who in 1..=3 {
        day.enter(who, THREES).unwrap();
        day.pass(SECOND);
    }
    let room = day.write().room;
    for who in [2, 3] {
        day.lobby.come(person(who), room);
    }
    day.pass(10 * SECOND);
    day.join(4, THREES);
    // A room of two that is left goes on; the first who was away is not the one who ends it.
    day.lobby.dismiss(person(1), room, AWAY, day.now, &mut day.changes);
    assert_eq!(day.lobby.seated_in(room).map(<[_]>::len), Some(2));
    day.lobby.close_room(room, day.now, &mut day.changes);
    assert_eq!(day.idle(2), Some(IdleReason::RoomClosed), "an operator's closing offers nothing");
}

#[test]
fn taken_up_it_stands_first_once_and_a_repetition_changes_nothing() {
    let (mut day, room) = ended_by_absence(true);
    let first = day.lobby.next_ticket();
    assert_eq!(day.waiting(3).ahead, 0);
    day.pass(5 * SECOND);
    // Somebody else's room, and another queue, are ordinary joins.
    let now = day.now;
    let mut resume =
        |queue, room| day.lobby.resume(person(1), queue, Some(room), now, &mut day.changes);
    let Ok(State::Waiting(waiting)) = resume(THREES, room) else { panic!("waits") };
    assert_eq!((waiting.since, waiting.ahead, waiting.ticket), (now, 0, first));
    day.cancel(1).unwrap();
    assert_eq!(day.idle(1), Some(IdleReason::Left), "the offer is used up");

    let (mut day, room) = ended_by_absence(false);
    day.pass(5 * SECOND);
    day.join(3, PAIRS);
    let state = day.lobby.resume(person(1), PAIRS, Some(room), day.now, &mut day.changes).unwrap();
    let State::Waiting(waiting) = state else { panic!("the third is seated with the first") };
    assert_eq!(waiting.since, day.now - 10 * SECOND);
    let again = day.lobby.resume(person(1), PAIRS, Some(room), day.now, &mut day.changes).unwrap();
    assert_eq!(again, state);
    assert_eq!(day.groups().last(), Some(&vec![1, 3]), "the one who was there first has seat 1");
}

#[test]
fn nobody_is_taken_in_whose_wait_is_about_to_end() {
    let mut day = Day::with_policy(Policy { presence_timeout: 600 * SECOND, ..Policy::default() });
    day.join(1, PAIRS);
    day.pass(299 * SECOND);
    day.enter(2, PAIRS).unwrap();
    let room = day.write().room;
    day.lobby.come(person(1), room);
    day.pass(60 * SECOND);
    day.lobby.dismiss(person(2), room, AWAY, day.now, &mut day.changes);
    assert_eq!(offer(&day, 1).unwrap().waited, 240 * SECOND);
    day.lobby.resume(person(1), PAIRS, Some(room), day.now, &mut day.changes).unwrap();
    assert_eq!(day.waiting(1).expires_at, day.now + 60 * SECOND);
    assert!(day.now > BEGIN);
}
