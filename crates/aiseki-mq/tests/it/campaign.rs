//! Many messages with workers that are killed all the time.
//!
//! The variable `AISEKI_MQ_CAMPAIGN` makes a campaign of it: so many messages, on each server that
//! is there, with one shard and with three. It takes its time, hence without the test runner's
//! limits:
//!
//! ```text
//! AISEKI_MQ_CAMPAIGN=5000000 cargo test -p aiseki-mq --release --test it campaign -- --nocapture
//! ```

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aiseki_mq::{Error, Lists, ListsOptions, Message, Queue, QueueName, Server};
use aiseki_testkit::{Flavour, Redis, RedisOptions, valkey_server};

use crate::bed::{connect, quick};
use crate::crash::PROGRAM;

const EACH: usize = 8_000;
const LEASE_MS: u64 = 500;
const WORKERS: usize = 3;
const KILL_EVERY: Duration = Duration::from_millis(150);
/// What a campaign publishes before workers have made room.
const BACKLOG: u64 = 50_000;

#[expect(clippy::disallowed_methods, reason = "a campaign is asked for by the environment")]
fn asked_for() -> Option<usize> {
    std::env::var("AISEKI_MQ_CAMPAIGN").ok().map(|count| count.parse().expect("a number"))
}

fn worker(url: &str, shards: usize) -> Child {
    Command::new(PROGRAM)
        .args(["work", url, "jobs", &LEASE_MS.to_string(), "16", &shards.to_string()])
        .stdin(Stdio::null())
        .spawn()
        .expect("a worker")
}

/// Publishes everything, as fast as the bound of the queue lets it.
async fn produce(queue: Lists, count: usize) {
    let mut next = 0;
    while next < count {
        let end = count.min(next + 500);
        let batch: Vec<_> =
            (next..end).map(|n| Message::new("x").with_id(format!("m{n}"))).collect();
        match queue.publish(&batch).await {
            Ok(_) => next = end,
            // Of several shards some may have taken theirs: published again, those are duplicates.
            Err(Error::Full) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Nothing is lost, and every effect beyond the first is explained by a lease that ended.
async fn run(redis: &Redis, count: usize, shards: usize) {
    let server = Server::new(&redis.url()).expect("a URL").with_timeouts(quick());
    let options = ListsOptions { max_length: Some(BACKLOG), ..ListsOptions::default() };
    let name = QueueName::sharded("jobs", shards).expect("a name");
    let queue = Lists::new(&server, name, options);
    let producing = tokio::spawn(produce(queue.clone(), count));
    let mut workers: Vec<_> = (0..WORKERS).map(|_| worker(&redis.url(), shards)).collect();
    let mut kills = 0;
    // A minute without an ack is a queue that stands still.
    let (mut acked, mut seen) = (0, tokio::time::Instant::now());
    loop {
        tokio::time::sleep(KILL_EVERY).await;
        let stats = queue.stats().await.expect("stats");
        if stats.acked == count as u64 {
            break;
        }
        if stats.acked > acked {
            (acked, seen) = (stats.acked, tokio::time::Instant::now());
        }
        assert!(seen.elapsed() < Duration::from_mins(1), "it stands still: {stats:?}");
        let victim = kills % WORKERS;
        workers[victim].kill().expect("killed");
        workers[victim].wait().expect("gone");
        workers[victim] = worker(&redis.url(), shards);
        kills += 1;
    }
    for worker in &mut workers {
        worker.kill().expect("killed");
        worker.wait().expect("gone");
    }
    producing.await.expect("all is published");
    let stats = queue.stats().await.expect("stats");
    assert!(stats.is_empty() && stats.dead == 0, "{stats:?}");
    let (distinct, effects) = ledger(redis).await;
    let reclaimed = reclaimed(redis, &queue).await;
    assert_eq!(distinct, count, "messages are lost");
    let repeated = effects - count;
    assert!(repeated <= reclaimed, "{repeated} repeated, {reclaimed} leases ended");
    assert!(kills > 0);
    report(count, shards, kills, repeated, reclaimed);
}

#[expect(clippy::print_stderr, reason = "what a campaign found is read by people")]
fn report(count: usize, shards: usize, kills: usize, repeated: usize, reclaimed: usize) {
    eprintln!(
        "{count} messages, {shards} shards, {kills} kills: {repeated} effects repeated, \
         {reclaimed} leases ended, none lost"
    );
}

/// How many messages had effects, and how many effects there were.
async fn ledger(redis: &Redis) -> (usize, usize) {
    let mut raw = connect(&redis.url()).await;
    let (mut cursor, mut distinct, mut effects) = (0_u64, 0, 0);
    loop {
        let mut scan = redis::cmd("HSCAN");
        scan.arg("effects").arg(cursor).arg("COUNT").arg(5_000);
        let (next, page): (u64, Vec<(String, usize)>) =
            scan.query_async(&mut raw).await.expect("a page");
        distinct += page.len();
        effects += page.iter().map(|(_, count)| count).sum::<usize>();
        cursor = next;
        if cursor == 0 {
            return (distinct, effects);
        }
    }
}

async fn reclaimed(redis: &Redis, queue: &Lists) -> usize {
    let mut raw = connect(&redis.url()).await;
    let mut total = 0;
    for prefix in queue.name().prefixes() {
        let mut ask = redis::cmd("HGET");
        ask.arg(format!("{prefix}:state")).arg("reclaimed");
        let found: Option<usize> = ask.query_async(&mut raw).await.expect("a number");
        total += found.unwrap_or_default();
    }
    total
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_workers_are_killed() {
    let Some(count) = asked_for() else {
        let redis = Redis::start().expect("a server");
        return run(&redis, EACH, 1).await;
    };
    let mut flavours = vec![Flavour::Redis];
    flavours.extend(valkey_server().map(Flavour::Program));
    for flavour in flavours {
        for shards in [1, 3] {
            let options = RedisOptions { flavour: flavour.clone(), ..RedisOptions::default() };
            run(&Redis::with(options).expect("a server"), count, shards).await;
        }
    }
}
