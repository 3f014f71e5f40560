//! Joins that come together are one call of a script, which reads and writes much of it for all of them
//! at once. It has to do what the same joins do one by one.

use std::sync::atomic::Ordering;

use aiseki::matching::Join;
use aiseki::shared::WaitingStore as _;
use aiseki_lobby::Change;
use aiseki_lobby::simulation::{BEGIN, Operation, Operations, Scenario, person, scenarios};
use aiseki_testkit::{Redis, RedisOptions};
use futures_util::future::join_all;

use super::differential::Subject;

/// How many joins come at once: the first is a call by itself, the others are one.
const WAVE: usize = 48;
const WAVES: usize = 30;

/// Lets people join in waves, and says what each was answered and what happened.
async fn waves(
    redis: &Redis,
    scenario: &Scenario,
    seed: u64,
    together: bool,
) -> (Vec<String>, Vec<Change>) {
    let namespace = format!("waves-{}-{seed}-{together}", scenario.name.replace(' ', "-"));
    let mut subject = Subject::open(redis, &namespace, scenario).await;
    let operations = Operations::new(scenario, seed);
    let mut joins = operations.filter_map(|operation| match operation {
        Operation::Enter { person: who, queue } => {
            let address = std::net::Ipv4Addr::LOCALHOST.into();
            Some(Join { session: person(who), queue, address, resume: None })
        }
        _ => None,
    });
    let (mut answers, mut changes) = (Vec::new(), Vec::new());
    for wave in 0..WAVES {
        // Most waves come one after the other, some in the same millisecond, some after a clock stepped back.
        let now = BEGIN + [0, 1, 1, 700, 30_100, 30_050][wave % 6] * (wave as u64 + 1);
        subject.time.store(now, Ordering::SeqCst);
        let joins: Vec<Join> = joins.by_ref().take(WAVE).collect();
        let answered = if together {
            join_all(joins.into_iter().map(|join| subject.store.enter(join, None))).await
        } else {
            let mut answered = Vec::new();
            for join in joins {
                answered.push(subject.store.enter(join, None).await);
            }
            answered
        };
        for answer in answered {
            let answer = answer.expect("the store answers");
            answers.push(format!("{:?}", answer.map(|entry| entry.entered.state)));
        }
        changes.extend(subject.told());
    }
    (answers, changes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_that_come_together_are_served_like_one_by_one() {
    let redis = Redis::with(RedisOptions::default()).expect("a Redis");
    let mut rooms = 0;
    for (scenario, seed) in scenarios().iter().zip(1..) {
        let apart = waves(&redis, scenario, seed, false).await;
        let together = waves(&redis, scenario, seed, true).await;
        for (n, (one, other)) in apart.0.iter().zip(&together.0).enumerate() {
            assert_eq!(one, other, "{:?}: the answer to join {n}", scenario.name);
        }
        for (n, (one, other)) in apart.1.iter().zip(&together.1).enumerate() {
            assert_eq!(one, other, "{:?}: change {n}", scenario.name);
        }
        assert_eq!((apart.0.len(), apart.1.len()), (together.0.len(), together.1.len()));
        rooms += apart.1.iter().filter(|it| matches!(it, Change::Reserved(_))).count();
        redis.command("FLUSHALL").expect("a command");
    }
    assert!(rooms > 100, "{rooms} rooms were formed");
}
