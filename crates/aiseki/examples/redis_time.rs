//! How much of Redis's time a join costs that ends in a seat, everything included except the database:
//! `cargo run --release -p aiseki --example redis_time -- [JOINS] [WAITING]`.
//!
//! `WAITING` people wait in other queues meanwhile. Redis counts its own time (`INFO commandstats`).

#![expect(clippy::print_stdout, reason = "a program that prints")]

use std::sync::Arc;
use std::time::Duration;

use aiseki::clock::Stopwatch;
use aiseki::matching::Join;
use aiseki::rooms::RoomRules;
use aiseki::shared::{FormedRooms as _, Outcome, WaitingStore as _};
use aiseki::store::redis::{Listeners, RedisStore, Settings};
use aiseki_lobby::{Policy, Queue, SessionId, TopicId};
use aiseki_testkit::Redis;

const IN_FLIGHT: usize = 128;

fn person(n: u64) -> SessionId {
    let factor = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    SessionId(u128::from(n).wrapping_mul(factor).to_be_bytes())
}

/// What Redis has spent on commands, in microseconds, with the calls from within scripts counted in
/// the scripts alone.
fn spent(redis: &Redis) -> u64 {
    let stats = redis.command("INFO commandstats").expect("statistics");
    let field = |line: &str| {
        let usec = line.split("usec=").nth(1)?.split(',').next()?;
        usec.parse::<u64>().ok()
    };
    let outer = ["evalsha", "eval", "blpop", "ping"];
    let lines = stats.lines().filter(|line| {
        let name = line.strip_prefix("cmdstat_").and_then(|rest| rest.split(':').next());
        name.is_some_and(|name| outer.contains(&name))
    });
    lines.filter_map(field).sum()
}

/// The processor time of Redis's main thread, in microseconds: also what reading and writing cost, and
/// without what other programs took away.
fn processor(redis: &Redis) -> u64 {
    let info = redis.command("INFO cpu").expect("statistics");
    let seconds = info.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.ends_with("_main_thread").then(|| value.trim().parse::<f64>().ok())?
    });
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small time")]
    let micros = (seconds.sum::<f64>() * 1e6) as u64;
    micros
}

fn memory(redis: &Redis) -> u64 {
    let info = redis.command("INFO memory").expect("memory");
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.and_then(|text| text.trim().parse().ok()).expect("a number")
}

async fn join_all(store: &Arc<RedisStore>, people: std::ops::Range<u64>, topics: i64, size: u8) {
    let gate = Arc::new(tokio::sync::Semaphore::new(IN_FLIGHT));
    let mut tasks = tokio::task::JoinSet::new();
    for n in people {
        let permit = Arc::clone(&gate).acquire_owned().await.expect("open");
        let store = Arc::clone(store);
        tasks.spawn(async move {
            let topic = TopicId(1 + i64::try_from(n).expect("small") % topics);
            let address = std::net::Ipv4Addr::LOCALHOST.into();
            let queue = Queue { topic, room_type: size };
            let join = Join { session: person(n), queue, address, resume: None };
            store.enter(join, None).await.expect("an answer").expect("a place");
            drop(permit);
        });
        while let Some(joined) = tasks.try_join_next() {
            joined.expect("a join");
        }
    }
    while let Some(joined) = tasks.join_next().await {
        joined.expect("a join");
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let joins = arguments.next().unwrap_or(50_000);
    let waiting = arguments.next().unwrap_or(0);
    let redis = Redis::start().expect("a Redis");
    let hour = 3_600_000;
    let settings = Settings {
        server: aiseki_mq::Server::new(&redis.url()).expect("a server"),
        namespace: "time".to_owned(),
        policy: Policy {
            room_types: "2,8".parse().expect("room types"),
            presence_timeout: hour,
            wait_timeout: hour,
            ..Policy::default()
        },
        rate_limits: Some(aiseki::rate_limit::RateLimits {
            session: "30/1m".parse().expect("a limit"),
            address: "1000000/1s".parse().expect("a limit"),
        }),
        rooms: RoomRules::default(),
        rematch_after: 600_000,
        eviction_accepted: false,
        virtual_time: None,
    };
    let listeners = Listeners {
        changes: Box::new(|_| {}),
        changed: Box::new(|_| {}),
        seated: Box::new(|_| {}),
        missed: Box::new(|| {}),
        room: Box::new(|_| {}),
    };
    let store = Arc::new(RedisStore::new(settings, listeners).expect("a store"));
    store.check().await.expect("a fit server");
    let pulse = Arc::clone(&store);
    tokio::spawn(async move {
        loop {
            let _ = pulse.recording().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let recorder = Arc::clone(&store);
    tokio::spawn(async move {
        loop {
            let rooms = recorder.take(256, Duration::from_secs(1)).await.unwrap_or_default();
            let written = rooms.into_iter().map(|room| {
                let people = room.reservation.people.iter().map(|person| person.session).collect();
                (room, Outcome::Written(people))
            });
            let _ = recorder.settle(written.collect()).await;
        }
    });
    let before = memory(&redis);
    // Queues of at most seven, so that nobody of these is seated.
    let topics = i64::try_from(waiting / 7 + 1).expect("small");
    join_all(&store, 0..waiting, topics, 8).await;
    // The buckets of the rate limit are no part of a wait, and are gone after a while.
    let settled = Duration::from_secs(if waiting > 0 { 65 } else { 0 });
    tokio::time::sleep(settled).await;
    if let Some(each) = (memory(&redis) - before).checked_div(waiting) {
        println!("{waiting} wait: {each} bytes of Redis's memory each");
    }
    redis.command("CONFIG RESETSTAT").expect("a command");
    let begin = 1_000_000_000;
    let (start, used, watch) = (spent(&redis), processor(&redis), Stopwatch::start());
    join_all(&store, begin..begin + joins, 16, 2).await;
    loop {
        let left = redis.command("HLEN {time}:matching:reservations").expect("a number");
        if left.trim().trim_start_matches(':') == "0" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = u64::try_from(watch.elapsed().as_millis()).expect("not for ever");
    let tenths = (spent(&redis) - start) * 10 / joins;
    println!(
        "{joins} joins: {}.{} µs of Redis's time each ({} µs of a processor with all around it), {} joins/s",
        tenths / 10,
        tenths % 10,
        (processor(&redis) - used) / joins,
        joins * 1_000 / took.max(1)
    );
    print_calls(&redis, joins);
}

/// The commands by which that time was spent, those of the scripts inside them too.
fn print_calls(redis: &Redis, joins: u64) {
    let stats = redis.command("INFO commandstats").expect("statistics");
    let mut rows: Vec<(u64, u64, String)> = Vec::new();
    for line in stats.lines() {
        let Some((name, rest)) = line.strip_prefix("cmdstat_").and_then(|it| it.split_once(':'))
        else {
            continue;
        };
        let mut numbers = rest.split([',', '=']).filter_map(|word| word.parse::<u64>().ok());
        let (calls, micros) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        rows.push((micros, calls, name.to_owned()));
    }
    rows.sort_by(|a, b| b.cmp(a));
    println!("command      calls/join  ns/join");
    for (micros, calls, name) in rows {
        let hundredths = calls * 100 / joins;
        let nanos = micros * 1_000 / joins;
        println!("{name:<12} {:>6}.{:02} {nanos:>8}", hundredths / 100, hundredths % 100);
    }
}
