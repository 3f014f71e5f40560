use aiseki_lobby::simulation::person;
use aiseki_lobby::{IdleReason, RoomId, Seat, State, TicketNumber, TopicId, Vacate};

use crate::day::{BEGIN, Day, PAIRS, SECOND, THREES};

fn seat(room: RoomId) -> Seat {
    Seat { room, topic: TopicId(42), size: 2, requested: 2, matched_at: BEGIN }
}

#[test]
fn places_and_since_are_kept_and_presence_starts_anew() {
    let mut day = Day::new();
    day.now = BEGIN + 100 * SECOND;
    // Stored in any order; the tickets say who came first.
    for (who, ticket) in [(2, 8), (1, 7)] {
        let since = BEGIN + ticket;
        assert!(day.lobby.restore_waiting(
            person(who),
            PAIRS,
            TicketNumber(ticket),
            since,
            day.now
        ));
    }
    assert_eq!([day.since(1), day.since(2)], [7, 8]);
    assert_eq!([1, 2].map(|who| day.waiting(who).ahead), [0, 1]);
    day.live(1, &[]);
    assert_eq!(day.groups(), [[1, 2]], "what was possible before is done by the first tick");
}

#[test]
fn nobody_is_dropped_as_absent_because_the_lobby_was_away() {
    let mut day = Day::new();
    day.now = BEGIN + 100 * SECOND;
    day.lobby.restore_waiting(person(1), PAIRS, TicketNumber(1), BEGIN, day.now);
    day.live(30 * SECOND - 1, &[]);
    assert_eq!(day.since(1), 0);
    day.live(1, &[]);
    assert_eq!(day.idle(1), Some(IdleReason::Absent));
}

#[test]
fn a_wait_that_ended_while_the_lobby_was_away_is_over_at_the_first_tick() {
    let mut day = Day::new();
    day.now = BEGIN + 301 * SECOND;
    day.lobby.restore_waiting(person(1), THREES, TicketNumber(1), BEGIN, day.now);
    assert_eq!(day.idle(1), Some(IdleReason::WaitExpired));
    day.tick();
    assert_eq!(day.dropped(1), [(TicketNumber(1), IdleReason::WaitExpired)]);
}

#[test]
fn a_fallback_that_came_due_while_the_lobby_was_away_happens_at_the_first_tick() {
    let mut day = Day::new();
    day.now = BEGIN + 61 * SECOND;
    for who in [1, 2] {
        day.lobby.restore_waiting(
            person(who),
            THREES,
            TicketNumber(u64::from(who)),
            BEGIN,
            day.now,
        );
    }
    day.tick();
    assert_eq!(day.groups(), [[1, 2]]);
}

#[test]
fn ticket_numbers_go_on() {
    let mut day = Day::new();
    day.lobby.restore_waiting(person(1), THREES, TicketNumber(41), BEGIN, BEGIN);
    assert_eq!(day.join(2, THREES).ticket, TicketNumber(42));
    day.lobby.restore_next_ticket(TicketNumber(100));
    day.lobby.restore_next_ticket(TicketNumber(50));
    assert_eq!(day.lobby.next_ticket(), TicketNumber(100));
}

#[test]
fn somebody_who_comes_after_a_restart_is_never_before_those_who_waited() {
    let mut day = Day::new();
    day.lobby.restore_waiting(person(1), THREES, TicketNumber(1), BEGIN, BEGIN);
    day.now -= 600 * SECOND;
    assert_eq!(day.join(2, THREES).since, BEGIN);
}

#[test]
fn seats_are_kept() {
    let mut day = Day::new();
    let room = RoomId([7; 16]);
    for who in [1, 2] {
        assert!(day.lobby.restore_seat(person(who), seat(room)));
    }
    assert_eq!(day.state(1), State::Matched(seat(room)));
    assert_eq!(day.lobby.vacate(person(1), room, day.now, &mut day.changes), Vacate::Left);
    assert_eq!(day.idle(2), Some(IdleReason::RoomClosed));
}

#[test]
fn nobody_is_restored_to_two_places() {
    let mut day = Day::new();
    let (one, two) = (RoomId([1; 16]), RoomId([2; 16]));
    assert!(day.lobby.restore_seat(person(1), seat(one)));
    assert!(!day.lobby.restore_seat(person(1), seat(two)));
    assert!(!day.lobby.restore_waiting(person(1), PAIRS, TicketNumber(9), BEGIN, BEGIN));
    assert_eq!(day.lobby.seated_in(two), None);
    assert_eq!(day.lobby.next_ticket(), TicketNumber(1), "nothing changed");
    assert!(day.lobby.restore_waiting(person(2), PAIRS, TicketNumber(9), BEGIN, BEGIN));
    assert!(!day.lobby.restore_waiting(person(2), THREES, TicketNumber(10), BEGIN, BEGIN));
    assert!(!day.lobby.restore_seat(person(2), seat(one)));
    assert_eq!((day.lobby.waiting(), day.lobby.length(PAIRS)), (1, 1));
    // Also not while a room with them is being written.
    day.join(3, PAIRS);
    assert!(!day.lobby.restore_waiting(person(3), PAIRS, TicketNumber(11), BEGIN, BEGIN));
    assert!(!day.lobby.restore_seat(person(3), seat(one)));
}

#[test]
fn why_somebody_is_idle_is_kept_for_the_rest_of_the_ten_minutes() {
    let mut day = Day::new();
    day.now = BEGIN + 599 * SECOND;
    day.lobby.restore_idle(person(1), IdleReason::RoomClosed, BEGIN);
    day.lobby.restore_seat(person(2), seat(RoomId([1; 16])));
    day.lobby.restore_idle(person(2), IdleReason::Left, BEGIN);
    assert_eq!(day.idle(1), Some(IdleReason::RoomClosed));
    assert!(matches!(day.state(2), State::Matched(_)), "a seat is not overwritten");
    day.live(SECOND, &[]);
    assert_eq!(day.idle(1), None);
    assert_eq!(day.lobby.next_due(), None);
}
