//! What a transition costs: `cargo bench -p aiseki-lobby`. The figures depend on the machine; the
//! ratios between few and many people waiting should not.

use std::io::{Write, stdout};
use std::time::{Duration, Instant};

use aiseki_lobby::simulation::Random;
use aiseki_lobby::{
    Candidate, Change, Companions, Lobby, Millis, Policy, Queue, Refused, SessionId, Sign, State,
    TopicId,
};

const BEGIN: Millis = 1_700_000_000_000;
const FEW: u64 = 1_000;
const MANY: u64 = 1_000_000;

fn main() -> std::io::Result<()> {
    let mut out = stdout();
    // First of all, since memory that was given back once would not count again.
    let before = resident();
    let waiting = Waiting::new(MANY / 10, true);
    let bytes = resident().saturating_sub(before) / (MANY / 10);
    writeln!(out, "many topics, {} waiting: {bytes} bytes of memory each", MANY / 10)?;
    drop(waiting);
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
    Ok(())
}

/// Joins that end in a seat, with polls, signs of life and cancels in between, by people who come
/// again and again.
fn transitions_per_second() -> (f64, &'static str) {
    const STEPS: u64 = 5_000_000;
    const PEOPLE: u64 = 10_000;
    let before = cpu_time();
    let mut lobby = Lobby::new(Policy::default(), 1);
    let mut random = Random::new(1);
    let mut changes = Vec::new();
    let mut done = 0;
    let people: Vec<SessionId> = (0..PEOPLE).map(session).collect();
    for step in 0.. {
        if done >= STEPS {
            break;
        }
        let at = BEGIN + step / 10;
        let who = random.pick(&people);
        done += 1;
        match lobby.enter(
            who,
            queue(random.below(100), 2 + u8::from(random.chance(30))),
            at,
            &mut changes,
        ) {
            Ok(_) => {
                if random.chance(50) {
                    done += 1;
                    lobby.poll(who, at, &mut changes);
                }
                if random.chance(20) {
                    done += 1;
                    lobby.touch(&[who], Sign::Present, at);
                }
                if random.chance(10) {
                    done += 1;
                    let _ = lobby.cancel(who, at, &mut changes);
                }
            }
            Err(Refused::AlreadyMatched(State::Matched(seat))) => {
                done += 1;
                lobby.vacate(who, seat.room, at, &mut changes);
            }
            Err(_) => {}
        }
        for change in std::mem::take(&mut changes) {
            let Change::Reserved(room) = change else { continue };
            let seated: Vec<SessionId> = room.people.iter().map(|it| it.session).collect();
            done += 1;
            lobby.confirm(&room, &seated, at, &mut changes);
        }
    }
    (
        per_second(done, cpu_time().saturating_sub(before)),
        "joins, polls, cancels, rooms written and left",
    )
}

/// A lobby in which many people wait and nobody is seated.
struct Waiting {
    lobby: Lobby<Nobody>,
    people: u64,
    topics: u64,
    room_type: u8,
    joined: u64,
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
        // With the four of each topic, one more does not complete a room.
        let room_types = if many_topics { "8" } else { "2,3>2" };
        let room_types = room_types.parse().unwrap_or_default();
        let policy = Policy { room_types, ..Policy::default() };
        let room_type = if many_topics { 8 } else { 2 };
        let lobby = Lobby::with_companions(policy, Nobody, 1);
        let topics = if many_topics { people / 4 } else { 1 };
        let mut waiting =
            Self { lobby, people, topics, room_type, joined: 0, longest: Duration::ZERO };
        for person in 0..people {
            let start = now();
            waiting.join(person);
            waiting.longest = waiting.longest.max(start.elapsed());
        }
        waiting
    }

    /// Fifty come in a millisecond.
    fn now(&self) -> Millis {
        BEGIN + self.joined / 50
    }

    fn join(&mut self, person: u64) {
        self.joined += 1;
        let queue = queue(person % self.topics, self.room_type);
        let joined = self.lobby.enter(session(person), queue, self.now(), &mut Vec::new());
        assert!(joined.is_ok(), "{joined:?}");
    }

    /// The cost of each of some transitions.
    fn measure(&mut self) -> [(&'static str, Duration); 3] {
        const ROUNDS: u64 = 100;
        const TIMES: u64 = 200;
        let mut random = Random::new(2);
        let people = self.people;
        let mut spent = [const { Vec::new() }; 3];
        for round in 0..ROUNDS {
            let newcomer = |i| people + (round * TIMES + i) * 7919;
            let start = now();
            (0..TIMES).for_each(|i| self.join(newcomer(i)));
            let joined = now();
            for i in 0..TIMES {
                let cancelled =
                    self.lobby.cancel(session(newcomer(i)), self.now(), &mut Vec::new());
                assert!(cancelled.is_ok(), "{cancelled:?}");
            }
            let cancelled = now();
            for _ in 0..TIMES {
                self.lobby.poll(session(random.below(people)), self.now(), &mut Vec::new());
            }
            spent[0].push(joined - start);
            spent[1].push(cancelled - joined);
            spent[2].push(cancelled.elapsed());
        }
        // The median of the rounds, so that other work on the machine counts little.
        let each = |spent: &mut Vec<Duration>| {
            spent.sort_unstable();
            spent[spent.len() / 2] / u32::try_from(TIMES).unwrap_or(u32::MAX)
        };
        let [join, cancel, poll] = &mut spent;
        [("join", each(join)), ("cancel", each(cancel)), ("poll", each(poll))]
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

#[allow(clippy::cast_precision_loss, reason = "a rate needs no more than the bits it keeps")]
fn per_second(count: u64, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64()
}

#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}

/// The time that this process has had on a processor, so that other work on the machine counts little.
fn cpu_time() -> Duration {
    let times = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let spent = times.split_whitespace().next().and_then(|spent| spent.parse().ok());
    Duration::from_nanos(spent.unwrap_or(0))
}

/// Bytes of memory that this process holds; zero where the system does not tell.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
