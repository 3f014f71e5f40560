use aiseki_lobby::simulation::number;
use aiseki_lobby::{Candidate, Companions, Kind, LOOK_AHEAD, Millis, Policy, Queue};

use crate::day::{BEGIN, Day, PAIRS, SECOND, THREES};

/// Nobody sits with anybody.
pub(crate) struct Nobody;

impl Companions for Nobody {
    fn may_sit_together(&self, _: &Candidate, _: &Candidate, _: Millis) -> bool {
        false
    }
}

/// These pairs, the smaller number first, do not sit together.
struct Apart(&'static [(u16, u16)]);

impl Companions for Apart {
    fn may_sit_together(&self, a: &Candidate, b: &Candidate, _: Millis) -> bool {
        let (a, b) = (number(a.session), number(b.session));
        !self.0.contains(&(a.min(b), a.max(b)))
    }
}

/// Only people from this number on sit together.
pub(crate) struct From(pub(crate) u16);

impl Companions for From {
    fn may_sit_together(&self, a: &Candidate, b: &Candidate, _: Millis) -> bool {
        number(a.session).min(number(b.session)) >= self.0
    }
}

/// Everybody sits together from this moment on.
struct Later(Millis);

impl Companions for Later {
    fn may_sit_together(&self, _: &Candidate, _: &Candidate, now: Millis) -> bool {
        now >= self.0
    }
}

#[test]
fn somebody_passed_over_stays_in_place_and_is_next() {
    let mut day = Day::with_companions(Policy::default(), Apart(&[(1, 2), (1, 3)]));
    day.join_all([1, 2, 3], PAIRS);
    assert_eq!(day.groups(), [[2, 3]]);
    assert_eq!((day.since(1), day.waiting(1).ahead), (0, 0));
    day.join(4, PAIRS);
    assert_eq!(day.groups(), [[2, 3], [1, 4]]);
}

#[test]
fn the_group_is_the_first_in_order_of_arrival() {
    // 1 may sit with 2 or 3, but those two not with each other: 1, 2 and 4 are the first three.
    let mut day = Day::with_companions(Policy::default(), Apart(&[(2, 3)]));
    day.join_all([1, 2, 3], THREES);
    assert!(day.rooms().is_empty());
    day.join(4, THREES);
    assert_eq!(day.groups(), [[1, 2, 4]]);
}

#[test]
fn the_oldest_is_not_given_up_because_the_second_does_not_fit() {
    // With 2 there is no third for 1; with 3 there is.
    let mut day = Day::with_companions(Policy::default(), Apart(&[(2, 3), (2, 4)]));
    day.join_all([1, 2, 3, 4], THREES);
    assert_eq!(day.groups(), [[1, 3, 4]]);
}

#[test]
fn strangers_do_not_meet_by_fallback_or_merge_either() {
    let mut day = Day::with_companions(Policy::default(), Apart(&[(1, 2), (1, 3), (2, 3)]));
    day.join(1, THREES);
    day.join(2, THREES);
    day.join(3, PAIRS);
    day.live(100 * SECOND, &[1, 2, 3]);
    assert!(day.rooms().is_empty());
    day.join(4, PAIRS);
    assert_eq!((day.groups(), day.room().kind), (vec![vec![3, 4]], Kind::Full));
}

#[test]
fn a_fallback_may_open_with_the_next_who_has_waited_long_enough() {
    let mut day = Day::with_companions(Policy::default(), Apart(&[(1, 2), (1, 3)]));
    day.join(1, THREES);
    day.pass(SECOND);
    day.join(2, THREES);
    day.pass(SECOND);
    day.join(3, THREES);
    day.live(58 * SECOND, &[1, 2, 3]);
    assert!(day.rooms().is_empty(), "2 has not waited for a minute");
    day.live(SECOND, &[1, 2, 3]);
    assert_eq!(day.groups(), [[2, 3]]);
}

#[test]
fn people_are_looked_for_no_further_than_thirty_two_ahead() {
    let last = u16::try_from(LOOK_AHEAD).unwrap();
    // Those before `last - 1` sit with nobody: the pair at the very end of the view is found.
    let mut day = Day::with_companions(Policy::default(), From(last - 2));
    day.join_all(0..last, PAIRS);
    assert_eq!(day.groups(), [[last - 2, last - 1]]);
    // One place further it is not, until somebody before them goes.
    let mut day = Day::with_companions(Policy::default(), From(last - 1));
    day.join_all(0..=last, PAIRS);
    assert!(day.rooms().is_empty());
    day.cancel(0).unwrap();
    day.tick();
    assert_eq!(day.groups(), [[last - 1, last]]);
}

#[test]
fn whatever_changes_with_time_is_seen_by_a_poll_and_by_the_tick_within_the_presence_timeout() {
    let mut day = Day::with_companions(Policy::default(), Later(BEGIN + SECOND));
    day.join_all([1, 2], PAIRS);
    day.pass(SECOND);
    day.poll(1);
    assert_eq!(day.groups(), [[1, 2]]);
    let mut day = Day::with_companions(Policy::default(), Later(BEGIN + SECOND));
    day.join_all([1, 2], PAIRS);
    day.live(30 * SECOND, &[1, 2]);
    assert_eq!(day.groups(), [[1, 2]]);
}

#[test]
fn a_search_without_hope_ends() {
    /// Everybody sits with half of the others: groups of seven abound, of eight there is none.
    struct Halves;
    impl Companions for Halves {
        fn may_sit_together(&self, a: &Candidate, b: &Candidate, _: Millis) -> bool {
            let (a, b) = (number(a.session), number(b.session));
            COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            a % 7 != b % 7
        }
    }
    static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let policy = Policy { room_types: "8".parse().unwrap(), ..Policy::default() };
    let mut day = Day::with_companions(policy, Halves);
    day.join_all(0..40, Queue { room_type: 8, ..PAIRS });
    COUNT.store(0, std::sync::atomic::Ordering::Relaxed);
    day.poll(0);
    let compared = COUNT.load(std::sync::atomic::Ordering::Relaxed);
    assert!((1..=4096).contains(&compared), "{compared} pairs");
    assert!(day.rooms().is_empty());
}
