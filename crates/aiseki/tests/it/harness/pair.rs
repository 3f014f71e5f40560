//! Two real servers on a Redis and a PostgreSQL of a test's own, with a wire between each of them and
//! each store that can be cut.

use std::time::Duration;

use aiseki_testkit::{Postgres, Proxy, Redis, RedisOptions};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{ADMIN_TOKEN, Client, Person, Program, Settings, eventually, pass, within};

/// After an outage or a death everything is as it should be within this time; by the contract it is
/// six seconds, and a busy machine needs some more.
pub(crate) const SETTLED: Duration = Duration::from_secs(20);

/// What the two are started with.
pub(crate) struct Plan {
    settings: Settings,
    redis: RedisOptions,
    failpoints: [Option<&'static str>; 2],
    clock: Option<std::path::PathBuf>,
}

pub(crate) struct Pair {
    // The servers before their stores, so that they end first.
    servers: [Option<Program>; 2],
    settings: [Settings; 2],
    pub(crate) redis_links: [Proxy; 2],
    pub(crate) postgres_links: [Proxy; 2],
    pub(crate) redis: Redis,
    pub(crate) postgres: Postgres,
}

impl Plan {
    pub(crate) fn new() -> Self {
        Self {
            settings: Settings::new(),
            redis: RedisOptions::default(),
            failpoints: [None; 2],
            clock: None,
        }
    }

    /// A setting of both servers by its name in the configuration file.
    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.settings = self.settings.set(name, value);
        self
    }

    /// Arguments of Redis.
    pub(crate) fn redis(mut self, arguments: &[&str]) -> Self {
        self.redis.arguments = arguments.iter().map(ToString::to_string).collect();
        self
    }

    /// Another Redis.
    pub(crate) fn on(mut self, redis: RedisOptions) -> Self {
        self.redis = redis;
        self
    }

    /// The server with this number dies at this place.
    pub(crate) fn dies(mut self, server: usize, place: &'static str) -> Self {
        self.failpoints[server] = Some(place);
        self
    }

    /// The clock of server 1 is wrong by what stands in this file, such as `+65s`.
    pub(crate) fn wrong_clock(mut self, file: &std::path::Path) -> Self {
        self.clock = Some(file.to_owned());
        self
    }

    pub(crate) async fn start(self) -> Pair {
        let mut pair = self.prepare();
        for server in 0..2 {
            pair.start(server).await;
        }
        pair
    }

    /// The stores, with no server yet.
    pub(crate) fn prepare(self) -> Pair {
        let redis = Redis::with(self.redis).expect("a Redis");
        let postgres = Postgres::without_fsync().expect("a PostgreSQL");
        let link = |port| Proxy::to(port).expect("a proxy");
        let redis_links = [link(redis.port()), link(redis.port())];
        let postgres_links = [link(postgres.port()), link(postgres.port())];
        let settings = [0, 1].map(|server| {
            let database = postgres_links[server].port();
            let database = format!("postgres://postgres@127.0.0.1:{database}/postgres");
            let settings = self.settings.clone().set("redis_url", &redis_links[server].url());
            let settings = settings.set("database_url", &database);
            let settings = match &self.clock {
                Some(file) if server == 1 => skewed(settings, file),
                _ => settings,
            };
            match self.failpoints[server] {
                Some(place) => settings.set("failpoint", place),
                None => settings,
            }
        });
        Pair { servers: [None, None], settings, redis_links, postgres_links, redis, postgres }
    }
}

/// With the library of Debian's package `faketime`. Clocks that only measure go on as they should.
fn skewed(settings: Settings, file: &std::path::Path) -> Settings {
    let folders = std::fs::read_dir("/usr/lib").expect("libraries").flatten();
    let mut libraries = folders.map(|it| it.path().join("faketime/libfaketime.so.1"));
    let library = libraries.find(|it| it.exists()).expect("faketime, which scripts/test installs");
    settings
        .variable("LD_PRELOAD", library.to_str().expect("UTF-8"))
        .variable("FAKETIME_TIMESTAMP_FILE", file.to_str().expect("UTF-8"))
        .variable("FAKETIME_NO_CACHE", "1")
        .variable("FAKETIME_DONT_FAKE_MONOTONIC", "1")
}

impl Pair {
    /// Starts the server with this number, and waits until people can be seated there.
    pub(crate) async fn start(&mut self, server: usize) {
        self.listen(server).await;
        self.ready(server, "ready").await;
    }

    /// Starts it and waits until it listens.
    pub(crate) async fn listen(&mut self, server: usize) {
        self.servers[server] = Some(Program::start(&self.settings[server]).await);
    }

    /// Waits until the server says that it is so.
    pub(crate) async fn ready(&self, server: usize, status: &str) {
        let what = format!("server {server} is {status}");
        eventually(&what, async || (self.readiness(server).await == status).then_some(())).await;
    }

    pub(crate) async fn readiness(&self, server: usize) -> String {
        let answer = self.client(server).get("/readyz").await;
        let status = answer.json()["status"].as_str().expect("a word").to_owned();
        let ready = ["ready", "degraded"].contains(&status.as_str());
        assert_eq!(answer.status, if ready { 200 } else { 503 }, "{answer:?}");
        status
    }

    pub(crate) fn settings(&self, server: usize) -> &Settings {
        &self.settings[server]
    }

    /// Another Redis for both servers, without a wire that can be cut.
    pub(crate) fn use_redis(&mut self, url: &str) {
        for settings in &mut self.settings {
            *settings = settings.clone().set("redis_url", url);
        }
    }

    /// What the server has logged.
    pub(crate) fn log(&self, server: usize) -> Vec<String> {
        self.servers[server].as_ref().expect("it runs").log()
    }

    /// Ends it as a power cut does.
    pub(crate) async fn kill(&mut self, server: usize) {
        self.servers[server].take().expect("it runs").kill().await;
    }

    /// Ends it as an operator does.
    pub(crate) async fn terminate(&mut self, server: usize) {
        self.servers[server].take().expect("it runs").terminate().await;
    }

    /// Waits until the server has died of itself.
    pub(crate) async fn died(&mut self, server: usize) {
        let mut program = self.servers[server].take().expect("it runs");
        let status = program.end("the server dies where it was told to").await;
        assert!(!status.success(), "{status}");
    }

    pub(crate) fn client(&self, server: usize) -> &Client {
        &self.servers[server].as_ref().expect("it runs").client
    }

    pub(crate) fn admin(&self, server: usize) -> Client {
        self.client(server).bearer(ADMIN_TOKEN)
    }

    pub(crate) async fn person(&self, server: usize) -> Person {
        Person::new(self.client(server)).await
    }

    /// So many people, each at one of the servers in turn.
    pub(crate) async fn people(&self, n: usize) -> Vec<Person> {
        join_all((0..n).map(|i| self.person(i % 2))).await
    }

    pub(crate) fn at(&self, server: usize, person: &Person) -> Person {
        person.at(self.client(server))
    }

    /// A topic that both servers know.
    pub(crate) async fn topic(&self, title: &str) -> i64 {
        let running = self.servers.iter().flatten().next().expect("one runs");
        let id = running.topic(title).await;
        for program in self.servers.iter().flatten() {
            eventually("the server knows the topic", async || {
                let topics = program.client.get("/api/topics").await.expect(200);
                topics["topics"].as_array()?.iter().any(|topic| topic["id"] == id).then_some(())
            })
            .await;
        }
        id
    }

    /// People seated together, and their room.
    pub(crate) async fn seated(&self, topic: i64, n: u8) -> (Vec<Person>, String) {
        let people = self.people(n.into()).await;
        for person in &people {
            let answer = person.join(topic, n).await;
            assert!([200, 202].contains(&answer.status), "{answer:?}");
        }
        let rooms = self.matched(&people).await;
        assert!(rooms.iter().all(|room| *room == rooms[0]), "{rooms:?}");
        (people, rooms[0].clone())
    }

    /// Waits until each of these people is matched, and returns their rooms.
    pub(crate) async fn matched(&self, people: &[Person]) -> Vec<String> {
        let states = people.iter().map(|person| person.becomes("matched"));
        let states = join_all(states).await;
        states.iter().map(|state| state["room_id"].as_str().expect("a room").to_owned()).collect()
    }

    /// What a query returns.
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.postgres.psql(&self.postgres.url(), sql).expect("the database answers")
    }

    /// What Redis says to a command; `NS` stands for the namespace.
    pub(crate) fn ask(&self, command: &str) -> String {
        let command = command.replace("NS:", "{aiseki}:");
        self.redis.command(&command).expect("Redis answers")
    }

    /// What must be true at any time, in the tables, and when all is quiet, in Redis.
    pub(crate) async fn sound(&self) {
        for (what, sql) in UNSOUND {
            let rows = self.sql(&format!("SELECT string_agg(id::text, ' ') FROM ({sql}) AS x"));
            assert_eq!(rows, "", "{what}");
        }
        within(SETTLED, "nothing is left half done", async {
            eventually("no room is being written", async || {
                let left = self.ask("HLEN NS:matching:reservations");
                (left == ":0").then_some(())
            })
            .await;
        })
        .await;
    }
}

/// Each selects what there must not be.
const UNSOUND: &[(&str, &str)] = &[
    (
        "a session sits twice at the same time",
        "SELECT a.session_id AS id FROM participants a JOIN participants b
         ON a.session_id = b.session_id AND a.conversation_id < b.conversation_id
         WHERE tstzrange(a.joined_at, coalesce(a.left_at, 'infinity'))
            && tstzrange(b.joined_at, coalesce(b.left_at, 'infinity'))",
    ),
    (
        "a conversation has not exactly its people",
        "SELECT id FROM conversations LEFT JOIN participants ON conversation_id = id
         GROUP BY id, size, ended_at
         HAVING count(session_id) <> size AND NOT (count(session_id) = 0 AND ended_at IS NOT NULL)",
    ),
    (
        "a live conversation has fewer than two people, or an ended one has some",
        "SELECT id FROM conversations LEFT JOIN participants
            ON conversation_id = id AND left_at IS NULL
         GROUP BY id, ended_at
         HAVING (ended_at IS NULL) <> (count(session_id) >= 2)",
    ),
    (
        "somebody sits in no conversation",
        "SELECT conversation_id AS id FROM participants
         WHERE conversation_id NOT IN (SELECT id FROM conversations)",
    ),
];

impl Person {
    /// The id by which the stores know them, made of the token as the product makes it.
    pub(crate) fn session(&self) -> Uuid {
        let payload = self.token.split('.').nth(2).expect("a token");
        let payload = URL_SAFE_NO_PAD.decode(payload).expect("a token");
        let hash = Sha256::new().chain_update(b"aiseki session id\0").chain_update(&payload[..16]);
        Uuid::from_slice(&hash.finalize()[..16]).expect("sixteen bytes")
    }

    /// Joins at a server that may die of it, or answer that it cannot now.
    pub(crate) async fn try_join(&self, topic: i64, room_type: u8) -> Option<u16> {
        let body = json!({ "topic_id": topic, "room_type": room_type }).to_string();
        let answer = self.client.try_call("POST", "/api/matching", Some(body)).await;
        answer.ok().map(|answer| answer.status)
    }

    /// The state, unless the server cannot say it now.
    pub(crate) async fn try_state(&self) -> Option<Value> {
        let answer = self.client.try_call("GET", "/api/matching", None).await.ok()?;
        (answer.status == 200).then(|| answer.json())
    }

    /// Waits until the state has this status.
    pub(crate) async fn becomes(&self, status: &str) -> Value {
        let mut last = None;
        let becoming = async {
            loop {
                last = self.try_state().await;
                match &last {
                    Some(state) if state["status"] == status => return state.clone(),
                    _ => pass(Duration::from_millis(10)).await,
                }
            }
        };
        let state = tokio::time::timeout(SETTLED, becoming).await;
        state.unwrap_or_else(|_| panic!("{} is not {status}: {last:?}", self.session()))
    }
}
