//! What a transition costs: `cargo bench -p aiseki-lobby`. The figures depend on the machine; the
//! ratios between few and many people waiting should not.

use std::io::{Write, stdout};
use std::time::{Duration, Instant};

use aiseki_lobby::simulation::Random;
use aiseki_lobby::{
    Candidate, Change, Companions, Lobby, Millis, Policy, Queue, SessionId, Sign, TopicId,
};

const BEGIN: Millis = 1_700_000_000_000;
const FEW: u64 = 1_000;
const MANY: u64 = 1_000_000;

fn main() -> std::io::Result<()> {
    // `cargo bench` and `cargo test --benches` pass flags of the standard harness; none matters here.
    let mut out = stdout();
    let (rate, mix) = transitions_per_second();
    writeln!(out, "transitions per second, {mix}: {rate:.0}")?;
    for (name, topics) in [("many topics", true), ("one queue that seats nobody", false)] {
        let few = Waiting::new(FEW, topics).measure();
        let before = resident();
        let mut waiting = Waiting::new(MANY, topics);
        let bytes = resident().saturating_sub(before) / MANY;
        let many = waiting.measure();
        writeln!(out, "{name}, {MANY} waiting: {bytes} bytes of memory each")?;
        writeln!(out, "  longest single step while they came: {:?}", waiting.longest)?;
        for ((what, few), (_, many)) in few.into_iter().zip(many) {
            let ratio = many.as_secs_f64() / few.as_secs_f64();
            writeln!(out, "  {what}: {few:?} with {FEW}, {many:?} with {MANY}: {ratio:.2} times")?;
        }
    }
    let before = resident();
    let waiting = Waiting::new(MANY / 10, true);
    let bytes = resident().saturating_sub(before) / (MANY / 10);
    writeln!(out, "many topics, {} waiting: {bytes} bytes of memory each", MANY / 10)?;
    drop(waiting);
    Ok(())
}

/// A day of joins that end in a seat, with polls and signs of life in between.
fn transitions_per_second() -> (f64, &'static str) {
    const STEPS: u64 = 3_000_000;
    let mut lobby = Lobby::new(Policy::default(), 1);
    let mut random = Random::new(1);
    let mut changes = Vec::new();
    let mut done = 0;
    let start = now();
    for step in 0.. {
        if done >= STEPS {
            break;
        }
        let at = BEGIN + step / 100;
        let queue = queue(random.below(100), 2 + u8::from(random.chance(30)));
        let joined = session(step);
        done += 1;
        let _ = lobby.enter(joined, queue, at, &mut changes);
        if random.chance(50) {
            done += 1;
            lobby.poll(joined, at, &mut changes);
        }
        if random.chance(20) {
            done += 1;
            lobby.touch(&[joined], Sign::Present, at);
        }
        if random.chance(10) {
            done += 1;
            let _ = lobby.cancel(joined, at, &mut changes);
        }
        for change in std::mem::take(&mut changes) {
            let Change::Reserved(room) = change else { continue };
            let people: Vec<SessionId> = room.people.iter().map(|it| it.session).collect();
            done += 2;
            lobby.confirm(&room, &people, at, &mut Vec::new());
            lobby.vacate(people[0], room.room, at, &mut Vec::new());
        }
    }
    (per_second(done, start.elapsed()), "joins, polls, cancels, rooms written and left")
}

/// A lobby in which many people wait and nobody is seated.
struct Waiting {
    lobby: Lobby<Nobody>,
    people: u64,
    topics: u64,
    longest: Duration,
}

/// Nobody sits with anybody, so that a queue grows.
struct Nobody;

impl Companions for Nobody {
    fn may_sit_together(&self, _: &Candidate, _: &Candidate, _: Millis) -> bool {
        false
    }
}

impl Waiting {
    fn new(people: u64, many_topics: bool) -> Self {
        let lobby = Lobby::with_companions(Policy::default(), Nobody, 1);
        let topics = if many_topics { people } else { 1 };
        let mut waiting = Self { lobby, people, topics, longest: Duration::ZERO };
        for person in 0..people {
            let start = now();
            waiting.join(person);
            waiting.longest = waiting.longest.max(start.elapsed());
        }
        waiting
    }

    fn join(&mut self, person: u64) {
        let queue = queue(person % self.topics, 2);
        let joined = self.lobby.enter(session(person), queue, BEGIN, &mut Vec::new());
        assert!(joined.is_ok(), "{joined:?}");
    }

    /// The cost of each of some transitions.
    fn measure(&mut self) -> [(&'static str, Duration); 3] {
        const TIMES: u64 = 20_000;
        let each = |run: &mut dyn FnMut(u64)| {
            let start = now();
            (0..TIMES).for_each(run);
            start.elapsed() / u32::try_from(TIMES).unwrap_or(u32::MAX)
        };
        let mut random = Random::new(2);
        let people = self.people;
        let join = each(&mut |i| self.join(people + i));
        let cancel = each(&mut |i| {
            let cancelled = self.lobby.cancel(session(people + i), BEGIN, &mut Vec::new());
            assert!(cancelled.is_ok(), "{cancelled:?}");
        });
        let poll = each(&mut |_| {
            let person = session(random.below(people));
            self.lobby.poll(person, BEGIN, &mut Vec::new());
        });
        [("join", join), ("cancel", cancel), ("poll", poll)]
    }
}

fn queue(topic: u64, room_type: u8) -> Queue {
    Queue { topic: TopicId(i64::try_from(topic).unwrap_or(0)), room_type }
}

/// Ids are spread like those of real sessions.
fn session(person: u64) -> SessionId {
    let mut random = Random::new(person);
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random.bits().to_be_bytes());
    id[8..].copy_from_slice(&random.bits().to_be_bytes());
    SessionId(id)
}

fn per_second(count: u64, elapsed: Duration) -> f64 {
    let per_step = elapsed / u32::try_from(count).unwrap_or(u32::MAX);
    1.0 / per_step.as_secs_f64()
}

#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}

/// Bytes of memory that this process holds; zero where the system does not tell.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
