use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aiseki::clock::Stopwatch;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::{Client, Pair, Person, Plan, pass, within};

/// How long the campaign lasts, such as `10m`, and by which seed.
const CAMPAIGN: (&str, &str) = ("AISEKI_CHAOS", "AISEKI_CHAOS_SEED");
const PEOPLE: u64 = 24;
const TOPICS: usize = 3;
/// After everything works again, everybody is settled within this time.
const CALM: Duration = Duration::from_mins(1);

/// Numbers that a seed decides (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    fn millis(&mut self, limit: u64) -> Duration {
        Duration::from_millis(self.below(limit))
    }
}

/// What all the simulated people have in common.
struct World {
    addresses: Mutex<[Option<SocketAddr>; 2]>,
    topics: Vec<i64>,
    /// Who was told of which room.
    told: Mutex<BTreeMap<String, BTreeSet<String>>>,
    over: AtomicBool,
    matches: AtomicU64,
    refusals: AtomicU64,
}

/// Somebody who joins, waits, talks and leaves, at any server that answers.
struct Life {
    world: Arc<World>,
    token: String,
    session: String,
    dice: Dice,
}

impl Life {
    async fn call(
        &mut self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Option<(u16, Value)> {
        let n = usize::try_from(self.dice.below(2)).expect("a small number");
        let address = self.world.addresses.lock().unwrap()[n];
        let Some(address) = address else {
            pass(Duration::from_millis(50)).await;
            return None;
        };
        let client = Client::new(address).bearer(&self.token);
        let body = body.map(|body| body.to_string());
        let call = client.try_call(method, path, body);
        let answer = tokio::time::timeout(Duration::from_secs(15), call).await;
        let answer = answer.unwrap_or_else(|_| panic!("{method} {path}: no answer in 15 s"));
        let Ok(answer) = answer else {
            pass(Duration::from_millis(50)).await;
            return None;
        };
        if answer.status == 503 {
            answer.refused(503, "unavailable");
            self.world.refusals.fetch_add(1, Ordering::Relaxed);
            pass(Duration::from_millis(100)).await;
            return None;
        }
        let json = if answer.body.is_empty() { Value::Null } else { answer.json() };
        Some((answer.status, json))
    }

    async fn state(&mut self) -> Value {
        loop {
            if let Some((200, state)) = self.call("GET", "/api/matching", None).await {
                return state;
            }
        }
    }

    /// From a join to the end of what comes of it.
    async fn round(&mut self) {
        let topic = usize::try_from(self.dice.below(TOPICS as u64)).expect("a small number");
        let body = json!({
            "topic_id": self.world.topics[topic],
            "room_type": 2 + self.dice.below(2),
        });
        let state = loop {
            match self.call("POST", "/api/matching", Some(body.clone())).await {
                Some((200 | 202, state)) => break state,
                Some((409, problem)) => break problem["state"].clone(),
                Some(other) => panic!("a join was answered {other:?}"),
                None => {}
            }
        };
        let since = state["waiting_since"].clone();
        let mut state = state;
        let impatient = self.dice.below(8) == 0;
        while state["status"] == "waiting" {
            assert_eq!(state["waiting_since"], since, "{}: the place was lost", self.session);
            if impatient || self.world.over.load(Ordering::Relaxed) {
                match self.call("DELETE", "/api/matching", None).await {
                    Some((204, _)) => {
                        let state = self.state().await;
                        assert_eq!(state["status"], "idle", "{}: cancelled", self.session);
                        return;
                    }
                    Some((409, _)) | None => {}
                    Some(other) => panic!("a cancel was answered {other:?}"),
                }
            }
            pass(self.dice.millis(150)).await;
            state = self.state().await;
        }
        if state["status"] == "matched" {
            self.sit(&state).await;
        } else {
            let reason = state["reason"].as_str().unwrap_or_default();
            let known = ["left", "room_closed", "failed"];
            assert!(known.contains(&reason), "{}: a wait ended: {state}", self.session);
        }
    }

    async fn sit(&mut self, state: &Value) {
        let room = state["room_id"].as_str().expect("a room").to_owned();
        self.world.matches.fetch_add(1, Ordering::Relaxed);
        self.world
            .told
            .lock()
            .unwrap()
            .entry(room.clone())
            .or_default()
            .insert(self.session.clone());
        for _ in 0..self.dice.below(4) {
            pass(self.dice.millis(100)).await;
            let now = self.state().await;
            if now["status"] == "idle" {
                assert_eq!(now["reason"], "room_closed", "{}: {now}", self.session);
                return;
            }
            assert_eq!(now["room_id"], room.as_str(), "{}: another room", self.session);
        }
        let path = format!("/api/rooms/{room}/leave");
        loop {
            match self.call("POST", &path, None).await {
                Some((204, _)) => break,
                Some(other) => panic!("{}: leaving was answered {other:?}", self.session),
                None => {}
            }
        }
        let now = self.state().await;
        assert_eq!(now["status"], "idle", "{}: after leaving", self.session);
    }
}

/// Breaks one thing and mends it.
async fn harm(pair: &mut Pair, world: &World, dice: &mut Dice) -> String {
    let server = usize::try_from(dice.below(2)).expect("a small number");
    let pause = dice.millis(4_000);
    let what = dice.below(10);
    match what {
        0 | 1 => {
            world.addresses.lock().unwrap()[server] = None;
            match what {
                0 => pair.kill(server).await,
                _ => pair.terminate(server).await,
            }
            pair.listen(server).await;
            world.addresses.lock().unwrap()[server] = Some(pair.client(server).address);
        }
        2 => {
            pair.redis.kill();
            pass(pause / 2).await;
            pair.redis.boot().expect("Redis starts");
        }
        3 => {
            pair.postgres.stop_immediate();
            pass(pause).await;
            pair.postgres.start_again().expect("PostgreSQL starts");
        }
        4 => {
            pair.redis.freeze();
            pass(pause).await;
            pair.redis.thaw();
        }
        5 => {
            pair.postgres.freeze();
            pass(pause * 3).await;
            pair.postgres.thaw();
        }
        6 => {
            pair.redis_links[server].cut();
        }
        7 => {
            pair.postgres_links[server].cut();
        }
        8 => {
            pair.redis_links[server].black_hole(true);
            pass(pause).await;
            pair.redis_links[server].black_hole(false);
            pair.redis_links[server].cut();
        }
        _ => {
            pair.postgres_links[server].black_hole(true);
            pass(pause).await;
            pair.postgres_links[server].black_hole(false);
            pair.postgres_links[server].cut();
        }
    }
    let names = [
        "kill",
        "terminate",
        "redis killed",
        "postgres crashed",
        "redis frozen",
        "postgres frozen",
        "redis cut",
        "postgres cut",
        "redis black hole",
        "postgres black hole",
    ];
    format!("{} {server} {pause:?}", names[usize::try_from(what).expect("a small number")])
}

/// Every room that anybody was told of exists once, with exactly these people among its own.
fn judge(pair: &Pair, world: &World) {
    // Copied, because people must not wait for the judge; and first, so that what was told is written.
    let told = world.told.lock().unwrap().clone();
    let mut written: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in pair.sql("SELECT conversation_id, session_id FROM participants").lines() {
        let (room, session) = line.split_once('|').expect("two columns");
        written.entry(room.to_owned()).or_default().insert(session.to_owned());
    }
    for (room, told) in told {
        let people = written.get(&room).unwrap_or_else(|| panic!("{room} is not written"));
        assert!(told.is_subset(people), "{room}: told {told:?}, written {people:?}");
    }
}

#[expect(clippy::print_stderr, reason = "a campaign says what it does, and by which seed")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a campaign: AISEKI_CHAOS=10m says for how long"]
async fn chaos() {
    #[expect(clippy::disallowed_methods, reason = "a campaign is asked for by a variable")]
    let asked = |name: &str| std::env::var(name).ok();
    let lasts = asked(CAMPAIGN.0).unwrap_or_else(|| "30s".to_owned());
    let lasts =
        aiseki::duration::parse(&lasts, 1_000..=86_400_000).expect("a duration such as 10m");
    let seed = asked(CAMPAIGN.1).and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| uuid::Uuid::now_v7().as_u64_pair().1 % 1_000_000);
    eprintln!("{}={seed}", CAMPAIGN.1);
    let plan = Plan::new().set("presence_timeout", "1h").set("wait_timeout", "2h");
    let plan = plan.set("fallback_after", "1s").set("reservation_ttl", "5s");
    let plan = plan.redis(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut pair = plan.start().await;
    let mut topics = Vec::new();
    for n in 0..TOPICS {
        topics.push(pair.topic(&format!("t{n}")).await);
    }
    let world = Arc::new(World {
        addresses: Mutex::new([0, 1].map(|n| Some(pair.client(n).address))),
        topics,
        told: Mutex::default(),
        over: AtomicBool::new(false),
        matches: AtomicU64::new(0),
        refusals: AtomicU64::new(0),
    });
    let mut lives = Vec::new();
    for n in 0..PEOPLE {
        let person: Person = pair.person(usize::from(n % 2 == 1)).await;
        let mut life = Life {
            world: Arc::clone(&world),
            session: person.session().to_string(),
            token: person.token,
            dice: Dice(seed ^ (n << 32)),
        };
        lives.push(tokio::spawn(async move {
            while !life.world.over.load(Ordering::Relaxed) {
                life.round().await;
            }
        }));
    }
    let (mut dice, watch) = (Dice(seed), Stopwatch::start());
    while watch.elapsed() < Duration::from_millis(lasts) {
        let done = harm(&mut pair, &world, &mut dice).await;
        let matches = world.matches.load(Ordering::Relaxed);
        eprintln!("{:>6.1} s: {done}; {matches} matches", watch.elapsed().as_secs_f32());
        pass(dice.millis(3_000)).await;
        assert!(lives.iter().all(|life| !life.is_finished()), "somebody met a surprise");
        let soon = dice.below(4) == 0;
        if soon {
            judge(&pair, &world);
        }
    }
    world.over.store(true, Ordering::Relaxed);
    for life in within(CALM, "everybody is done", join_all(lives)).await {
        life.expect("a life without a surprise");
    }
    judge(&pair, &world);
    pair.sound().await;
    for topic in &world.topics {
        pair.seated(*topic, 2).await;
        pair.seated(*topic, 3).await;
    }
    let (matches, refusals) =
        (world.matches.load(Ordering::Relaxed), world.refusals.load(Ordering::Relaxed));
    eprintln!("{matches} matches, {refusals} refusals, {} rooms", world.told.lock().unwrap().len());
    assert!(matches > 0, "nobody ever met");
}
