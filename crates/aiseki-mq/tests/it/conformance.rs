//! What every engine keeps to: publish, receive, ack, nack, recover, dead letter, drain, stats.

use std::sync::Arc;
use std::time::Duration;

use aiseki_mq::{
    Budgets, Lists, ListsOptions, Message, Plain, Queue, QueueName, Server, Settled, Streams, Which,
};
use aiseki_testkit::eventually;

use crate::bed::{
    Bed, LONG, SOON, fail, publish, publish_texts, receipts, release, take, take_one, texts,
};

/// A lease short enough to wait for, long enough that nothing loses it by accident.
const SHORT: Duration = Duration::from_millis(300);
const BUDGET: u32 = 3;

/// An engine under test, with budgets of three.
pub(crate) trait Engine {
    fn open(server: &Server, name: &str) -> Arc<dyn Queue>;
}

pub(crate) struct ListsEngine;

impl Engine for ListsEngine {
    fn open(server: &Server, name: &str) -> Arc<dyn Queue> {
        let options = ListsOptions {
            failure_budget: BUDGET,
            crash_budget: BUDGET,
            ..ListsOptions::default()
        };
        Arc::new(Lists::new(server, QueueName::new(name).expect("a name"), options))
    }
}

pub(crate) struct ShardedEngine;

impl Engine for ShardedEngine {
    fn open(server: &Server, name: &str) -> Arc<dyn Queue> {
        let options = ListsOptions {
            failure_budget: BUDGET,
            crash_budget: BUDGET,
            ..ListsOptions::default()
        };
        Arc::new(Lists::new(server, QueueName::sharded(name, 3).expect("a name"), options))
    }
}

fn budgets() -> Budgets {
    Budgets { failures: BUDGET, crashes: BUDGET, ..Budgets::default() }
}

pub(crate) struct PlainEngine;

impl Engine for PlainEngine {
    fn open(server: &Server, name: &str) -> Arc<dyn Queue> {
        Arc::new(Plain::new(server, name, budgets()).expect("a name"))
    }
}

pub(crate) struct StreamsEngine;

impl Engine for StreamsEngine {
    fn open(server: &Server, name: &str) -> Arc<dyn Queue> {
        let name = QueueName::new(name).expect("a name");
        Arc::new(Streams::new(server, &name, budgets()))
    }
}

async fn publishes_and_acks(queue: Arc<dyn Queue>) {
    publish_texts(&*queue, &["a", "b", "c"]).await;
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let deliveries = take(&consumer, 10).await;
    let mut got = texts(&deliveries);
    got.sort();
    assert_eq!(got, ["a", "b", "c"]);
    assert!(deliveries.iter().all(|each| each.attempt() == 1));
    let stats = queue.stats().await.expect("stats");
    assert_eq!((stats.ready, stats.leased, stats.acked), (0, 3, 0));
    assert!(take(&consumer, 10).await.is_empty());

    let settled = consumer.ack(&receipts(&deliveries)).await.expect("acked");
    assert_eq!(settled, [Settled::Done; 3]);
    let stats = queue.stats().await.expect("stats");
    assert!(stats.is_empty());
    assert_eq!((stats.dead, stats.acked, stats.oldest_ms), (0, 3, 0));
}

async fn carries_any_bytes(queue: Arc<dyn Queue>) {
    let payload: Vec<u8> = (0..=255).cycle().take(1_024).collect();
    publish(&*queue, &[Message::new(payload.clone()), Message::new(Vec::new())]).await;
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let mut got = take(&consumer, 2).await;
    got.sort_by_key(|each| each.payload.len());
    assert_eq!(got[0].payload, b"");
    assert_eq!(got[1].payload, payload);
    let settled = consumer.ack(&receipts(&got)).await.expect("acked");
    assert_eq!(settled, [Settled::Done; 2]);
}

async fn shares_and_never_gives_twice(queue: Arc<dyn Queue>) {
    let payloads: Vec<String> = (0..50).map(|n| format!("m{n:02}")).collect();
    let payloads: Vec<&str> = payloads.iter().map(String::as_str).collect();
    publish_texts(&*queue, &payloads).await;
    let (one, two) = (queue.consumer("w", LONG).expect("1"), queue.consumer("w", LONG).expect("2"));
    assert_ne!(one.worker(), two.worker());
    let mut got = Vec::new();
    while got.len() < 50 {
        let before = got.len();
        got.extend(texts(&take(&one, 7).await));
        got.extend(texts(&take(&two, 4).await));
        assert!(got.len() > before, "{got:?}");
    }
    got.sort();
    assert_eq!(got, payloads);
}

async fn wakes_a_blocked_worker(queue: Arc<dyn Queue>) {
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let waiting = tokio::spawn(async move {
        let deliveries = consumer.receive(5, SOON).await.expect("received");
        (tokio::time::Instant::now(), texts(&deliveries))
    });
    // Whatever the worker does by now, blocked or on its way, the message must reach it.
    tokio::time::sleep(Duration::from_millis(150)).await;
    let published = tokio::time::Instant::now();
    publish_texts(&*queue, &["late"]).await;
    let (received, got) = waiting.await.expect("the worker");
    assert_eq!(got, ["late"]);
    assert!(received - published < Duration::from_millis(500), "{:?}", received - published);
}

async fn gives_up_waiting_in_time(queue: Arc<dyn Queue>) {
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let begin = tokio::time::Instant::now();
    assert!(consumer.receive(1, SHORT).await.expect("received").is_empty());
    let took = begin.elapsed();
    assert!(took >= SHORT && took < SHORT + Duration::from_secs(1), "{took:?}");
}

async fn tries_again_and_buries(queue: Arc<dyn Queue>) {
    publish_texts(&*queue, &["poison"]).await;
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    for attempt in 1..=BUDGET {
        let delivery = take_one(&consumer).await;
        assert_eq!((delivery.attempt(), delivery.failures), (attempt, attempt - 1));
        let nack = fail(&delivery, Duration::ZERO);
        let settled = consumer.nack(&[nack]).await.expect("nacked");
        let expected = if attempt == BUDGET { Settled::Buried } else { Settled::Done };
        assert_eq!(settled, [expected]);
    }
    assert!(take(&consumer, 1).await.is_empty());
    let letters = queue.dead_letters(0, 10).await.expect("letters");
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].payload, b"poison");
    assert_eq!(letters[0].reason, "the handler failed");
    let stats = queue.stats().await.expect("stats");
    assert!(stats.is_empty());
    assert_eq!((stats.dead, stats.acked), (1, 0));

    assert_eq!(queue.replay(&Which::All).await.expect("replayed"), 1);
    let delivery = take_one(&consumer).await;
    assert_eq!(delivery.attempt(), 1);
    assert_eq!(consumer.ack(&[delivery.receipt]).await.expect("acked"), [Settled::Done]);
    assert_eq!(queue.stats().await.expect("stats").dead, 0);
}

async fn drops_dead_letters(queue: Arc<dyn Queue>) {
    publish_texts(&*queue, &["x", "y"]).await;
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    for delivery in take(&consumer, 2).await {
        let verdict = aiseki_mq::Verdict::Bury { reason: "useless".to_owned() };
        let nack = aiseki_mq::Nack { receipt: delivery.receipt, verdict };
        assert_eq!(consumer.nack(&[nack]).await.expect("nacked"), [Settled::Buried]);
    }
    let letters = queue.dead_letters(0, 10).await.expect("letters");
    assert_eq!(letters.len(), 2);
    let which = Which::Ids(vec![letters[0].id.clone()]);
    assert_eq!(queue.drop_dead(&which).await.expect("dropped"), 1);
    assert_eq!(queue.drop_dead(&which).await.expect("dropped"), 0);
    assert_eq!(queue.dead_letters(0, 10).await.expect("letters").len(), 1);
    assert_eq!(queue.drop_dead(&Which::All).await.expect("dropped"), 1);
    assert_eq!(queue.stats().await.expect("stats"), aiseki_mq::Stats::default());
}

async fn releases_without_counting(queue: Arc<dyn Queue>) {
    publish_texts(&*queue, &["later"]).await;
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    for _ in 0..=BUDGET {
        let delivery = take_one(&consumer).await;
        assert_eq!(delivery.attempt(), 1);
        let settled = consumer.nack(&[release(&delivery)]).await.expect("released");
        assert_eq!(settled, [Settled::Done]);
    }
    assert_eq!(queue.stats().await.expect("stats").ready, 1);
}

async fn recovers_from_a_lost_worker(queue: Arc<dyn Queue>) {
    publish_texts(&*queue, &["precious"]).await;
    let lost = queue.consumer("lost", SHORT).expect("a consumer");
    let first = take_one(&lost).await;
    let other = queue.consumer("other", SHORT).expect("a consumer");
    assert!(take(&other, 1).await.is_empty(), "the lease has just begun");

    let got = other.receive(1, SOON).await.expect("received").pop().expect("the message");
    assert_eq!(got.payload, b"precious");
    assert_eq!((got.crashes, got.failures, got.attempt()), (1, 0, 2));
    let late = lost.ack(std::slice::from_ref(&first.receipt)).await.expect("answered");
    assert_eq!(late, [Settled::Stale]);
    let late = lost.nack(&[fail(&first, Duration::ZERO)]).await.expect("answered");
    assert_eq!(late, [Settled::Stale]);
    assert_eq!(queue.stats().await.expect("stats").leased, 1, "a stale ack changes nothing");
    assert_eq!(other.ack(&[got.receipt]).await.expect("acked"), [Settled::Done]);
    assert!(queue.stats().await.expect("stats").is_empty());
}

async fn buries_what_loses_its_workers(queue: Arc<dyn Queue>) {
    publish_texts(&*queue, &["killer"]).await;
    for crash in 0..BUDGET {
        let victim = queue.consumer("victim", SHORT).expect("a consumer");
        let delivery = victim.receive(1, SOON).await.expect("received").pop().expect("delivered");
        assert_eq!((delivery.crashes, delivery.failures), (crash, 0));
    }
    eventually("the message is a dead letter", SOON, || async {
        queue.recover().await.expect("recovered");
        queue.stats().await.expect("stats").dead == 1
    })
    .await;
    let letters = queue.dead_letters(0, 10).await.expect("letters");
    assert_eq!((letters[0].payload.as_slice(), letters[0].crashes), (b"killer".as_slice(), BUDGET));
    assert!(letters[0].reason.contains("lost"), "{}", letters[0].reason);
    assert!(queue.stats().await.expect("stats").is_empty());
}

async fn keeps_a_renewed_lease(queue: Arc<dyn Queue>) {
    publish_texts(&*queue, &["long"]).await;
    let slow = queue.consumer("slow", SHORT).expect("a consumer");
    let delivery = take_one(&slow).await;
    let held = [delivery.receipt.clone()];
    let mut renewer = slow.renewer();
    let other = queue.consumer("other", SHORT).expect("a consumer");
    let end = tokio::time::Instant::now() + SHORT * 4;
    while tokio::time::Instant::now() < end {
        assert_eq!(renewer.renew(&held).await.expect("renewed"), [true]);
        assert!(other.receive(1, SHORT / 4).await.expect("received").is_empty());
    }
    assert_eq!(slow.ack(&held).await.expect("acked"), [Settled::Done]);
    assert_eq!(renewer.renew(&held).await.expect("answered"), [false], "it is acked");
}

async fn drains_to_the_others(queue: Arc<dyn Queue>) {
    publish_texts(&*queue, &["p", "q", "r"]).await;
    let going = queue.consumer("going", LONG).expect("a consumer");
    let deliveries = take(&going, 3).await;
    assert_eq!(deliveries.len(), 3);
    let done = [deliveries[0].receipt.clone()];
    assert_eq!(going.ack(&done).await.expect("acked"), [Settled::Done]);
    // It knows of one, and has forgotten the other: its claim's answer was lost, say.
    let known = [deliveries[1].receipt.clone()];
    assert_eq!(going.drain(&known).await.expect("drained"), 2);

    let staying = queue.consumer("staying", LONG).expect("a consumer");
    let got = take(&staying, 3).await;
    let mut names = texts(&got);
    names.sort();
    let mut expected = texts(&deliveries[1..]);
    expected.sort();
    assert_eq!(names, expected);
    assert!(got.iter().all(|each| each.attempt() == 1), "a drain counts nothing");
}

async fn pauses(queue: Arc<dyn Queue>) {
    queue.pause(true).await.expect("paused");
    publish_texts(&*queue, &["held back"]).await;
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let got = consumer.exchange(&[], 5).await.expect("an exchange");
    assert!(got.deliveries.is_empty() && got.paused);
    assert!(queue.stats().await.expect("stats").paused);
    queue.pause(false).await.expect("resumed");
    let got = consumer.receive(5, SOON).await.expect("received");
    assert_eq!(texts(&got), ["held back"]);
    assert!(!queue.stats().await.expect("stats").paused);
}

async fn tells_the_age(queue: Arc<dyn Queue>) {
    publish_texts(&*queue, &["old"]).await;
    eventually("the age grows", SOON, || async {
        queue.stats().await.expect("stats").oldest_ms >= 50
    })
    .await;
    assert!(queue.stats().await.expect("stats").oldest_ms < 60_000);
}

macro_rules! conformance {
    ($engine:ident: $type:ty; $($case:ident),* $(,)?) => {
        mod $engine {
            use super::*;
            $(
                #[tokio::test]
                async fn $case() {
                    let bed = Bed::new();
                    super::$case(<$type>::open(&bed.server, "jobs")).await;
                }
            )*
        }
    };
    ($($engine:ident: $type:ty),* $(,)?) => {
        $(conformance!($engine: $type;
            publishes_and_acks, carries_any_bytes, shares_and_never_gives_twice,
            wakes_a_blocked_worker, gives_up_waiting_in_time, tries_again_and_buries,
            drops_dead_letters, releases_without_counting, recovers_from_a_lost_worker,
            buries_what_loses_its_workers, keeps_a_renewed_lease, drains_to_the_others, pauses,
            tells_the_age,
        );)*
    };
}

conformance!(
    lists: ListsEngine,
    sharded: ShardedEngine,
    plain: PlainEngine,
    streams: StreamsEngine,
);
