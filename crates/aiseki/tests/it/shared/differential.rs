use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use aiseki_lobby::simulation::{
    BEGIN, Operation, Operations, Reply, Scenario, Shadow, Strangers, person, scenarios,
};
use aiseki_lobby::{Queue, State, TopicId};
use aiseki_testkit::{Redis, RedisOptions};

pub(super) use self::subject::Subject;

/// A Redis, driven by the operations of a simulation.
mod subject;

/// Steps of each scenario in the test command; a campaign asks for more.
const STEPS: u64 = 1_500;
const CAMPAIGN: &str = "AISEKI_REDIS_CAMPAIGN";

async fn day(redis: &Redis, scenario: &Scenario, seed: u64, steps: u64) {
    let mut scenario = scenario.clone();
    // What restarts is a server, and it knows nothing that could be lost.
    scenario.mix.restarts = false;
    // An old place is an old time there, which says nothing of the order once the clock has stepped back.
    scenario.mix.absences = !scenario.mix.steps_back;
    let (scenario, mix) = (&scenario, &scenario.mix);
    let strangers = Strangers { seed, apart: scenario.apart };
    let namespace = format!("day-{}-{seed}", scenario.name.replace(' ', "-"));
    let mut subject = Subject::open(redis, &namespace, scenario).await;
    subject.keep_apart(strangers, mix.people).await;
    let mut shadow = Shadow::new(scenario, seed, false);
    let (mut now, mut last) = (BEGIN, Vec::new());
    for (step, operation) in (0..steps).zip(Operations::new(scenario, seed)) {
        last.push((now - BEGIN, operation));
        let done = match operation {
            Operation::Pass { by } => {
                now += by;
                None
            }
            Operation::StepBack { by } => {
                now = now.saturating_sub(by).max(BEGIN);
                None
            }
            Operation::PassUntilDue => {
                now = shadow.next_event(now).unwrap_or(now).max(now);
                Some(Operation::Tick)
            }
            Operation::Restart => None,
            operation => Some(operation),
        };
        let mut result = Ok(());
        if let Some(operation) = done {
            let mut answer = subject.apply(operation, now).await;
            if let (Operation::Poll { person: who }, Reply::State(told)) =
                (operation, &mut answer.reply)
            {
                *told = forgotten(*told, shadow.state(person(who), now), scenario);
            }
            result = shadow.follow(operation, now, &answer);
        }
        subject.time.store(now, Ordering::SeqCst);
        let states = subject.states(mix.people).await;
        for (who, told) in (0..mix.people).zip(states) {
            let expected = shadow.state(person(who), now);
            let told = forgotten(told, expected, scenario);
            if result.is_ok() && told != expected {
                result = Err(format!("person {who} is told {told:?}\n  instead of {expected:?}"));
            }
        }
        if let Err(message) = result {
            let mut shown = String::new();
            for (at, operation) in &last[last.len().saturating_sub(12)..] {
                let _ = writeln!(shown, "  {at:>12}  {operation:?}");
            }
            panic!("{:?}, seed {seed}, step {step}: {message}\n{shown}", scenario.name);
        }
    }
}

/// What is told, without a reason that was forgotten and is told again by a clock that has stepped back:
/// the store keeps it for as long as numbers say so, where in the product its key has expired.
fn forgotten(told: State, expected: State, scenario: &Scenario) -> State {
    match (told, expected) {
        (State::Idle(Some(_)), State::Idle(None)) if scenario.mix.steps_back => expected,
        _ => told,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_seats_people_as_the_lobby_does() {
    // What the store logs belongs to a failure.
    let _ = tracing_subscriber::fmt().with_test_writer().try_init();
    #[expect(clippy::disallowed_methods, reason = "a campaign is asked for, not configured")]
    let campaign = std::env::var(CAMPAIGN).ok().and_then(|steps| steps.parse().ok());
    let steps: u64 = campaign.unwrap_or(STEPS);
    let redis = Redis::with(RedisOptions::default()).expect("a Redis");
    let first_seed = if campaign.is_some() { u64::from(std::process::id()) } else { 1 };
    for (scenario, seed) in scenarios().iter().zip(first_seed..) {
        let mut left = steps;
        let mut seed = seed;
        while left > 0 {
            let some = left.min(STEPS);
            day(&redis, scenario, seed, some).await;
            redis.command("FLUSHALL").expect("a command");
            left -= some;
            seed += 1_000;
        }
    }
}

#[tokio::test]
async fn people_who_have_met_meet_again_alone_when_both_have_waited_thirty_seconds() {
    let redis = Redis::with(RedisOptions::default()).expect("a Redis");
    let mut scenario = scenarios().swap_remove(0);
    scenario.policy.presence_timeout = scenario.policy.wait_timeout;
    scenario.rematch_after = 600_000;
    let mut subject = Subject::open(&redis, "met", &scenario).await;
    let queue = Queue { topic: TopicId(1), room_type: 2 };
    let enter = |who| Operation::Enter { person: who, queue };
    for operation in [enter(0), enter(1), Operation::Confirm { room: 0, missing: 0 }] {
        subject.apply(operation, BEGIN).await;
    }
    subject.apply(Operation::Vacate { person: 0, room: None }, BEGIN + 1).await;
    subject.apply(enter(0), BEGIN + 1).await;
    subject.apply(enter(1), BEGIN + 1_000).await;
    for (after, formed) in [(30_999, 1), (31_000, 2)] {
        subject.apply(Operation::Poll { person: 0 }, BEGIN + after).await;
        assert_eq!(subject.formed.len(), formed, "{after}");
    }
}
