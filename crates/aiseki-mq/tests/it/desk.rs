//! Workers of one process that take one by one: their steps go together, and stay their own.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aiseki_mq::{Consumer, Message, Queue, Receipt};
use aiseki_testkit::eventually;

use crate::bed::{Bed, LONG, SOON, publish, receipts, take};

const WORKERS: usize = 32;
const MESSAGES: usize = 3_000;

fn numbered(count: usize) -> Vec<Message> {
    (0..count).map(|n| Message::new(n.to_string())).collect()
}

/// Takes and acks one by one until nothing is left; the answer is what it was given.
async fn take_all(consumer: Arc<dyn Consumer>) -> Vec<Vec<u8>> {
    let (mut acks, mut given) = (Vec::<Receipt>::new(), Vec::new());
    loop {
        let got = consumer.exchange(&acks, 1).await.expect("an exchange");
        assert_eq!(got.settled.len(), acks.len());
        acks = receipts(&got.deliveries);
        given.extend(got.deliveries.into_iter().map(|each| each.payload));
        if acks.is_empty() && !got.more {
            return given;
        }
    }
}

fn calls(bed: &Bed) -> usize {
    let info = bed.redis.command("INFO commandstats").expect("an answer");
    let line = info.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.and_then(|rest| rest.split(',').next()).map_or(0, |n| n.parse().expect("a number"))
}

#[tokio::test]
async fn many_steps_are_few_calls_and_nothing_is_given_twice() {
    let bed = Bed::new();
    let queue = bed.lists();
    publish(&queue, &numbered(MESSAGES)).await;
    let before = calls(&bed);
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        // Two leases among them: only steps with the same one go together.
        let lease = LONG * (1 + u32::from(worker % 2 == 0));
        workers.spawn(take_all(queue.consumer("w", lease).expect("a consumer")));
    }
    let given = workers.join_all().await.concat();
    assert_eq!(given.len(), MESSAGES);
    assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), MESSAGES);
    let stats = queue.stats().await.expect("stats");
    assert_eq!((stats.ready, stats.leased, stats.acked), (0, 0, MESSAGES as u64));
    let calls = calls(&bed) - before;
    assert!(calls < MESSAGES / 2, "{calls} calls for {MESSAGES} steps");
}

/// A step that is given up, at any point of its way, is repeated by its worker and brings the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_that_are_given_up_lose_nothing() {
    let bed = Bed::new();
    let queue = bed.lists();
    publish(&queue, &numbered(MESSAGES)).await;
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let consumer = queue.consumer("w", LONG).expect("a consumer");
        workers.spawn(async move {
            let mut given = Vec::new();
            for round in worker.. {
                let patience = Duration::from_micros(50 * (round as u64 % 40));
                let step = tokio::time::timeout(patience, consumer.exchange(&[], 1));
                let Ok(got) = step.await else { continue };
                let got = got.expect("an exchange");
                if got.deliveries.is_empty() && !got.more {
                    break;
                }
                for settled in consumer.ack(&receipts(&got.deliveries)).await.expect("acked") {
                    assert_eq!(settled, aiseki_mq::Settled::Done);
                }
                given.extend(got.deliveries.into_iter().map(|each| each.payload));
            }
            given
        });
    }
    let given = workers.join_all().await.concat();
    assert_eq!((given.len(), given.iter().collect::<BTreeSet<_>>().len()), (MESSAGES, MESSAGES));
    assert_eq!(queue.stats().await.expect("stats").leased, 0);
}

/// The runtime that brings the steps of others goes down: they go on without it.
#[tokio::test]
async fn nobody_depends_on_somebody_elses_runtime() {
    let bed = Bed::new();
    let queue = bed.lists();
    for _ in 0..20 {
        publish(&queue, &numbered(200)).await;
        let far = queue.clone();
        let (started, begun) = tokio::sync::oneshot::channel();
        let doomed = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime");
            for _ in 0..WORKERS {
                let consumer = far.consumer("doomed", LONG).expect("a consumer");
                runtime.spawn(async move { while consumer.exchange(&[], 1).await.is_ok() {} });
            }
            runtime.block_on(async {
                let _ = started.send(());
                tokio::time::sleep(Duration::from_millis(3)).await;
            });
            // Dropped with all that was on its way.
        });
        begun.await.expect("it runs");
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..WORKERS {
            workers.spawn(take_all(queue.consumer("w", LONG).expect("a consumer")));
        }
        let ended = tokio::time::timeout(SOON, workers.join_all()).await;
        ended.expect("nobody waits for ever");
        doomed.join().expect("the thread ends");
        queue.erase().await.expect("erased");
    }
}

/// The answer of one call is lost, and with it what it brought to several workers.
#[tokio::test]
async fn a_claim_that_was_lost_with_others_comes_again() {
    let bed = Bed::new();
    let proxy = aiseki_testkit::Proxy::to(bed.redis.port()).expect("a proxy");
    let timeouts =
        aiseki_mq::Timeouts { response: Duration::from_millis(400), ..crate::bed::quick() };
    let server = aiseki_mq::Server::new(&proxy.url()).expect("a URL").with_timeouts(timeouts);
    let name = aiseki_mq::QueueName::new("jobs").expect("a name");
    let queue = aiseki_mq::Lists::new(&server, name, aiseki_mq::ListsOptions::default());
    publish(&queue, &numbered(WORKERS)).await;
    let consumers: Vec<_> =
        (0..WORKERS).map(|_| queue.consumer("w", LONG).expect("a consumer")).collect();
    assert!(take(&consumers[0], 0).await.is_empty());
    // The answer of one call of those that follow is lost, with all that are in it.
    proxy.lose_reply_to(b"EVALSHA");
    let mut workers = tokio::task::JoinSet::new();
    for consumer in &consumers {
        let consumer = Arc::clone(consumer);
        workers.spawn(async move { take(&consumer, 1).await });
    }
    let given = workers.join_all().await.concat();
    assert_eq!(proxy.lost_replies(), 1);
    let distinct: BTreeSet<_> = given.iter().map(|each| each.payload.clone()).collect();
    assert_eq!((given.len(), distinct.len()), (WORKERS, WORKERS));
    assert!(given.iter().all(|each| each.attempt() == 1));
    eventually("all are out", SOON, || async {
        queue.stats().await.expect("stats").leased == WORKERS as u64
    })
    .await;
}
