use aiseki_lobby::simulation::{Tally, run, scenarios};

/// Steps of each seed, and seeds of each scenario.
const STEPS: u64 = 500;
const SEEDS: u64 = 6;

#[test]
fn every_step_of_random_days_is_as_expected() {
    let mut total = Tally::default();
    for scenario in scenarios() {
        for seed in 0..SEEDS {
            match run(&scenario, seed, STEPS) {
                Ok(tally) => total.add(&tally),
                Err(failure) => panic!("{failure}"),
            }
        }
    }
    // Whatever can happen did happen, so that the comparison means something.
    let [expired, absent, left, _, closed, banned, _] = total.dropped;
    let [full, fallback, merge] = total.rooms;
    let rooms = [full, fallback, merge, total.seated, total.returned, total.ended];
    let ends = [expired, absent, left, closed, banned];
    let others = [total.vacated, total.given_up, total.resumed].into_iter().chain(ends);
    assert!(rooms.into_iter().chain(others).all(|count| count > 20), "{total:?}");
    assert!(total.most_waiting > 48, "{total:?}");
}

#[test]
fn people_fail_where_no_room_can_be_written() {
    let scenario = scenarios().into_iter().find(|it| it.mix.written < 10).unwrap();
    let tally = run(&scenario, 1, 6000).unwrap_or_else(|failure| panic!("{failure}"));
    let [.., failed] = tally.dropped;
    assert!(failed > 0, "{tally:?}");
}

#[test]
fn the_same_seed_is_the_same_day() {
    let scenario = &scenarios()[0];
    let day = |seed| run(scenario, seed, 300).unwrap();
    assert_eq!(day(3), day(3));
    assert_ne!(day(3), day(4));
}
