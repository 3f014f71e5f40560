//! Made-up runs: one that is well, and for each invariant some that break it.

use super::super::history::{How, RoomView, Waiting};
use super::*;

const QUEUE: Queue = (1, 2);

/// A life told line by line: each takes a second.
#[derive(Default)]
struct Life(Vec<Event>);

impl Life {
    fn then(mut self, what: What) -> Self {
        let asked = self.0.last().map_or(0, |event| event.answered) + 500_000;
        self.0.push(Event { asked, answered: asked + 500_000, what });
        self
    }

    fn joins(self, queue: Queue, state: State) -> Self {
        self.then(What::Joined { queue, state })
    }

    fn told(self, state: State) -> Self {
        self.then(What::Told { state, how: How::Poll })
    }

    fn leaves(self, room: &str) -> Self {
        self.then(What::Left { room: room.into() })
    }

    fn looks(self, view: RoomView) -> Self {
        self.then(What::Room(view))
    }
}

fn idle(reason: &str) -> State {
    State::Idle { reason: Some(reason.into()) }
}

fn waiting(queue: Queue, since: Millis) -> State {
    State::Waiting(Waiting {
        queue,
        since,
        expires_at: since + 6_000,
        fallback_at: (queue.1 == 3).then_some(since + 2_000),
        poll_after: 2_000,
    })
}

fn seat(room: &str, queue: Queue, size: u8, at: Millis) -> State {
    let (topic, requested) = queue;
    State::Matched(Seat { room: room.into(), topic, size, requested, at })
}

fn view(room: &str, me: u8, size: u8, created_at: Millis, ended_at: Option<Millis>) -> RoomView {
    let here = vec![ended_at.is_none(); usize::from(size)];
    RoomView { room: room.into(), topic: 1, size, created_at, ended_at, me, here }
}

/// The invariants that these lives break.
fn broken(lives: impl IntoIterator<Item = Life>, closed: bool) -> Vec<Invariant> {
    let people: Vec<History> = lives.into_iter().map(|life| History { events: life.0 }).collect();
    let case = judge(&people, World { closed, quiet_from: 0 });
    let mut broken: Vec<Invariant> = case.violations().iter().map(|v| v.invariant).collect();
    broken.dedup();
    broken
}

fn pair(room: &str, at: Millis) -> [Life; 2] {
    [
        Life::default()
            .joins(QUEUE, waiting(QUEUE, at - 50))
            .told(seat(room, QUEUE, 2, at))
            .looks(view(room, 1, 2, at, None)),
        Life::default().joins(QUEUE, seat(room, QUEUE, 2, at)).looks(view(room, 2, 2, at, None)),
    ]
}

#[test]
fn a_run_that_is_well_breaks_nothing() {
    let three = (1, 3);
    let [ann, bob] = pair("a", 1_000);
    let ann = ann.leaves("a").told(idle("left")).joins(three, waiting(three, 20_000));
    let ann = ann.told(seat("b", three, 2, 22_000)).looks(view("b", 1, 2, 22_000, None));
    let bob = bob.told(idle("room_closed")).looks(view("a", 2, 2, 1_000, Some(3_000)));
    let bob = bob.joins(QUEUE, seat("b", QUEUE, 2, 22_000));
    // Somebody whose wait ends, somebody who stops, and somebody whose answers are lost.
    let cyd = Life::default().joins((2, 2), waiting((2, 2), 500)).told(idle("wait_expired"));
    let dan = Life::default().joins(QUEUE, waiting(QUEUE, 60_000)).then(What::Cancelled);
    let dan = dan.told(idle("left"));
    let eve = Life::default().then(What::JoinLost { queue: QUEUE }).then(What::CancelLost);
    assert_eq!(broken([ann, bob, cyd, dan, eve], true), []);
}

#[test]
fn two_rooms_at_once_are_found() {
    // Told of a second room, and the first one is still live afterwards.
    let [ann, bob] = pair("a", 1_000);
    let ann = ann.told(seat("b", QUEUE, 2, 2_000)).looks(view("a", 1, 2, 1_000, None));
    assert!(broken([ann, bob], false).contains(&Invariant::OneRoom));
    // The first one ended only after the second was formed.
    let [ann, bob] = pair("a", 1_000);
    let ann = ann.told(seat("b", QUEUE, 2, 2_000)).looks(view("a", 1, 2, 1_000, Some(2_500)));
    assert!(broken([ann, bob], false).contains(&Invariant::OneRoom));
    // Back and forth.
    let [ann, bob] = pair("a", 1_000);
    let ann = ann.told(seat("b", QUEUE, 2, 2_000)).told(seat("a", QUEUE, 2, 1_000));
    assert!(broken([ann, bob], false).contains(&Invariant::OneRoom));
    // Waiting while sitting.
    let [ann, bob] = pair("a", 1_000);
    let ann = ann.joins((2, 2), waiting((2, 2), 1_500)).looks(view("a", 1, 2, 1_000, Some(1_900)));
    assert_eq!(broken([ann, bob], false), [Invariant::OneRoom]);
    // Idle, and the seat is there.
    let [ann, bob] = pair("a", 1_000);
    let ann = ann.told(idle("room_closed")).looks(view("a", 1, 2, 1_000, None));
    assert_eq!(broken([ann, bob], true), [Invariant::OneRoom]);
    // A seat that was given up and is held all the same.
    let [ann, bob] = pair("a", 1_000);
    let ann = ann.leaves("a").looks(view("a", 1, 2, 1_000, None));
    assert_eq!(broken([ann, bob], true), [Invariant::OneRoom]);
}

#[test]
fn a_seat_whose_leave_was_lost_proves_nothing() {
    let [ann, bob] = pair("a", 1_000);
    let ann = ann.then(What::LeaveLost { room: "a".into() }).told(seat("b", QUEUE, 2, 2_000));
    let ann = ann.looks(view("a", 1, 2, 1_000, Some(2_500)));
    assert_eq!(broken([ann, bob], false), []);
}

#[test]
fn wrong_sizes_are_found() {
    let three = (1, 3);
    // A smaller room before anybody's fallback time.
    let early = |since| {
        let life = Life::default().joins(three, waiting(three, since));
        life.told(seat("a", three, 2, 1_999))
    };
    assert_eq!(broken([early(0), early(1)], true), [Invariant::Sizes]);
    // A merge before the fallback time of the one who asked for more.
    let merge = |at| {
        [
            Life::default().joins(three, waiting(three, 500)).told(seat("a", three, 2, at)),
            Life::default().joins(QUEUE, seat("a", QUEUE, 2, at)),
        ]
    };
    assert_eq!(broken(merge(2_499), true), [Invariant::Sizes]);
    assert_eq!(broken(merge(2_500), true), []);
    // Larger than asked for; alone; and a room of another kind than what was asked for.
    let larger = [Life::default().joins(QUEUE, seat("a", QUEUE, 3, 1_000))];
    assert_eq!(broken(larger, false), [Invariant::Sizes]);
    let alone = [Life::default().joins(QUEUE, seat("a", QUEUE, 1, 1_000))];
    assert!(broken(alone, false).contains(&Invariant::Sizes));
    let other = [Life::default().joins(three, seat("a", QUEUE, 2, 1_000))];
    assert_eq!(broken(other, false), [Invariant::Sizes]);
}

#[test]
fn members_who_disagree_are_found() {
    let [ann, _] = pair("a", 1_000);
    let bob = Life::default().joins(QUEUE, seat("a", QUEUE, 2, 1_001));
    assert_eq!(broken([ann, bob], true), [Invariant::Agreement]);
    // Three in a room of two.
    let [ann, bob] = pair("a", 1_000);
    let cyd = Life::default().joins(QUEUE, seat("a", QUEUE, 2, 1_000));
    assert_eq!(broken([ann, bob, cyd], true), [Invariant::Agreement]);
    // Alone in a room of two, with nobody who could be the other one.
    let [ann, _] = pair("a", 1_000);
    assert_eq!(broken([ann], true), [Invariant::Agreement]);
    let [ann, _] = pair("a", 1_000);
    assert_eq!(broken([ann], false), [], "others may be there");
    let [ann, _] = pair("a", 1_000);
    let gone = Life::default().joins(QUEUE, waiting(QUEUE, 990));
    assert_eq!(broken([ann, gone], true), [], "who vanished may be the other one");
    // The same seat twice, and a room that is another one when it is looked at.
    let [ann, bob] = pair("a", 1_000);
    let bob = bob.looks(view("a", 1, 2, 1_000, None));
    let mut events = bob.0;
    events.remove(1);
    assert_eq!(broken([ann, Life(events)], true), [Invariant::Agreement]);
    let [ann, bob] = pair("a", 1_000);
    let [Life(mut events), _] = pair("a", 1_000);
    drop(ann);
    events.pop();
    let ann = Life(events).looks(view("a", 1, 3, 1_000, None));
    assert_eq!(broken([ann, bob], true), [Invariant::Agreement]);
    let unknown = Life::default().joins(QUEUE, seat("a", QUEUE, 2, 1_000));
    let unknown = unknown.then(What::NotMyRoom { room: "a".into() });
    assert_eq!(broken([unknown], false), [Invariant::Agreement]);
}

#[test]
fn who_is_served_before_an_earlier_one_is_found() {
    let waits = |since, at, room: &str| {
        Life::default().joins(QUEUE, waiting(QUEUE, since)).told(seat(room, QUEUE, 2, at))
    };
    let first = || waits(100, 2_000, "b");
    let later = || [waits(200, 1_000, "a"), waits(300, 1_000, "a")];
    let [second, third] = later();
    assert_eq!(broken([first(), second, third], false), [Invariant::Order]);
    // One who waited in vain while later ones were seated.
    let vain = Life::default().joins(QUEUE, waiting(QUEUE, 100)).told(idle("wait_expired"));
    let [second, third] = later();
    assert_eq!(broken([vain, second, third], false), [Invariant::Order]);
    // Absent people are passed over, those who stopped too, and another queue is another order.
    for reason in ["absent", "left"] {
        let gone = Life::default().joins(QUEUE, waiting(QUEUE, 100)).told(idle(reason));
        let [second, third] = later();
        assert_eq!(broken([gone, second, third], false), []);
    }
    let three = (1, 3);
    let other = Life::default().joins(three, waiting(three, 100)).told(seat("b", three, 3, 2_000));
    let [second, third] = later();
    assert_eq!(broken([other, second, third], false), []);
    // The same millisecond is no order.
    let [second, third] = [waits(100, 1_000, "a"), waits(300, 1_000, "a")];
    assert_eq!(broken([first(), second, third], false), [Invariant::Order]);
    let [second, third] = [waits(100, 1_000, "a"), waits(100, 1_000, "a")];
    assert_eq!(broken([first(), second, third], false), []);
    // A place that was lost without a word.
    let moved = Life::default().joins(QUEUE, waiting(QUEUE, 100)).told(waiting(QUEUE, 900));
    assert_eq!(broken([moved], false), [Invariant::Order]);
}

#[test]
fn a_repeated_join_may_have_begun_another_wait() {
    // Ann was seated and her room was over while she was away; then she joined again.
    let ann = Life::default().joins(QUEUE, waiting(QUEUE, 100));
    let ann = ann.joins(QUEUE, seat("b", QUEUE, 2, 2_000));
    let waits = |since| {
        Life::default().joins(QUEUE, waiting(QUEUE, since)).told(seat("a", QUEUE, 2, 1_000))
    };
    assert_eq!(broken([ann, waits(200), waits(300)], false), []);
    // The same with another queue, and with a join whose answer was lost.
    let three = (1, 3);
    let bob = Life::default().joins(QUEUE, waiting(QUEUE, 100));
    let bob = bob.joins(three, seat("b", three, 3, 2_000));
    let cyd = Life::default().joins(QUEUE, waiting(QUEUE, 100));
    let cyd = cyd.then(What::JoinLost { queue: three }).told(seat("c", QUEUE, 2, 2_000));
    let dan = Life::default().then(What::JoinLost { queue: three });
    let dan = dan.joins(QUEUE, seat("d", QUEUE, 2, 2_000));
    assert_eq!(broken([bob, cyd, dan], false), []);
    // A queue that was never asked for is still found.
    let eve = Life::default().joins(QUEUE, waiting(QUEUE, 100));
    let eve = eve.joins(three, seat("e", (1, 4), 4, 2_000));
    assert_eq!(broken([eve], false), [Invariant::Sizes]);
}

#[test]
fn people_who_have_met_may_be_kept_apart() {
    let [ann, bob] = pair("old", 1_000);
    let again = |life: Life, since, at, room: &str| {
        let life = life.leaves("old").told(idle("left")).joins(QUEUE, waiting(QUEUE, since));
        life.told(seat(room, QUEUE, 2, at))
    };
    // Ann came first, but Bob, whom she knows, is seated with Cyd before her.
    let ann = again(ann, 9_000, 12_000, "c");
    let bob = again(bob, 9_500, 10_000, "b");
    let cyd = Life::default().joins(QUEUE, seat("b", QUEUE, 2, 10_000));
    assert_eq!(broken([ann, bob, cyd], false), []);
}

#[test]
fn what_comes_of_a_wait_that_was_stopped_is_found() {
    let stopped = || Life::default().joins(QUEUE, waiting(QUEUE, 100)).then(What::Cancelled);
    let seated = stopped().told(seat("a", QUEUE, 2, 900));
    assert_eq!(broken([seated], false), [Invariant::Cancelled]);
    let waits = stopped().told(waiting(QUEUE, 100));
    assert!(broken([waits], false).contains(&Invariant::Cancelled));
    let anew = stopped().joins(QUEUE, seat("a", QUEUE, 2, 900));
    assert_eq!(broken([anew], false), []);
    let unsure = stopped().then(What::JoinLost { queue: QUEUE }).told(seat("a", QUEUE, 2, 900));
    assert_eq!(broken([unsure], false), []);
}

#[test]
fn who_is_stuck_is_found() {
    let waits = |queue: Queue, seconds: usize| {
        let mut life = Life::default().joins(queue, waiting(queue, 100));
        for _ in 0..seconds {
            life = life.told(waiting(queue, 100));
        }
        life
    };
    assert_eq!(broken([waits(QUEUE, 5)], false), [], "alone");
    assert_eq!(broken([waits(QUEUE, 9)], false), [Invariant::NotStuck], "the wait is over");
    assert_eq!(broken([waits(QUEUE, 4), waits(QUEUE, 4)], false), [Invariant::NotStuck]);
    assert_eq!(broken([waits(QUEUE, 4), waits((2, 2), 4)], false), [], "other topics");
    let three = (1, 3);
    assert_eq!(broken([waits(three, 3), waits(three, 3)], false), [], "too few");
    assert_eq!(broken([waits(three, 6), waits(three, 6)], false), [Invariant::NotStuck]);
    assert_eq!(broken([waits(three, 6), waits(QUEUE, 3)], false), [Invariant::NotStuck]);
}
