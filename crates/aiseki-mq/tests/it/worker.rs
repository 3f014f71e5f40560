//! The worker: concurrency, panics, drains, lost leases, and what it sends when idle.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aiseki_mq::{Backoff, Message, Outcome, Queue, Report, Worker};
use aiseki_testkit::eventually;
use tokio_util::sync::CancellationToken;

use crate::bed::{Bed, SOON, publish, publish_texts, take};
use crate::conformance::{Engine, ListsEngine, PlainEngine, ShardedEngine, StreamsEngine};

const AT_ONCE: Backoff = Backoff { first: Duration::ZERO, most: Duration::ZERO, doubling: 1 };
const SHORT: Duration = Duration::from_millis(300);

/// Every handler's effects: payload by payload, how often it ran to its end.
#[derive(Default)]
struct Ledger(std::sync::Mutex<std::collections::BTreeMap<Vec<u8>, usize>>);

impl Ledger {
    fn note(&self, payload: &[u8]) {
        *self.0.lock().unwrap().entry(payload.to_vec()).or_default() += 1;
    }

    fn distinct(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn repeated(&self) -> usize {
        self.0.lock().unwrap().values().filter(|count| **count > 1).count()
    }
}

async fn works_through_everything(queue: Arc<dyn Queue>) {
    let messages: Vec<_> = (0..500).map(|n| Message::new(format!("m{n}"))).collect();
    publish(&*queue, &messages).await;
    let (ledger, running, most) =
        (Arc::new(Ledger::default()), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = (Arc::clone(&ledger), Arc::clone(&running), Arc::clone(&most));
    let worker = Worker::new(Arc::clone(&queue), move |job| {
        let (ledger, running, most) = seen.clone();
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            ledger.note(&job.delivery.payload);
            running.fetch_sub(1, Ordering::SeqCst);
            Outcome::Ack
        }
    });
    let worker = worker.concurrency(8).until_empty(true);
    let report = worker.run(CancellationToken::new()).await.expect("worked");
    assert_eq!(report, Report { acked: 500, ..Report::default() });
    assert_eq!((ledger.distinct(), ledger.repeated()), (500, 0));
    assert!((2..=8).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    assert!(queue.stats().await.expect("stats").is_empty());
}

async fn counts_a_panic_as_a_failure(queue: Arc<dyn Queue>) {
    publish_texts(&*queue, &["bad", "good"]).await;
    let worker = Worker::new(Arc::clone(&queue), |job| async move {
        assert!(job.delivery.payload != b"bad", "cannot bear it");
        Outcome::Ack
    });
    let worker = worker.backoff(AT_ONCE).until_empty(true);
    let report = worker.run(CancellationToken::new()).await.expect("worked");
    assert_eq!((report.acked, report.failed), (1, 3));
    let letters = queue.dead_letters(0, 5).await.expect("letters");
    assert!(letters[0].reason.contains("cannot bear it"), "{}", letters[0].reason);
}

async fn drains_when_told_to_stop(queue: Arc<dyn Queue>) {
    publish_texts(&*queue, &["one", "two", "three"]).await;
    let (stop, started) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let (token, count) = (stop.clone(), Arc::clone(&started));
    let worker = Worker::new(Arc::clone(&queue), move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        let token = token.clone();
        async move {
            token.cancelled().await;
            tokio::time::sleep(SHORT / 3).await;
            Outcome::Ack
        }
    });
    let (worker, token) = (worker.concurrency(2), stop.clone());
    let running = tokio::spawn(async move { worker.run(token).await });
    eventually("two are running", SOON, || async { started.load(Ordering::SeqCst) == 2 }).await;
    stop.cancel();
    let report = running.await.expect("the worker").expect("drained");
    assert_eq!(report, Report { acked: 2, ..Report::default() }, "they end, and no other begins");
    let stats = queue.stats().await.expect("stats");
    assert_eq!((stats.ready, stats.leased, stats.acked), (1, 0, 2));
}

async fn gives_back_what_does_not_end(queue: Arc<dyn Queue>) {
    publish_texts(&*queue, &["endless"]).await;
    let stop = CancellationToken::new();
    let token = stop.clone();
    let worker = Worker::new(Arc::clone(&queue), move |_| {
        token.cancel();
        std::future::pending()
    });
    let report = worker.drain(Duration::from_millis(50)).run(stop).await.expect("drained");
    assert_eq!(report, Report { released: 1, ..Report::default() });
    let other = queue.consumer("other", SOON).expect("a consumer");
    let got = take(&other, 1).await;
    assert_eq!((got[0].payload.as_slice(), got[0].attempt()), (b"endless".as_slice(), 1));
}

/// The handler burns the only thread of the runtime for three leases: another thread renews.
async fn keeps_what_a_busy_handler_has(queue: Arc<dyn Queue>) {
    publish_texts(&*queue, &["hot"]).await;
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let burning = Arc::clone(&queue);
    let other = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async move {
            let worker = Worker::new(burning, move |_| {
                count.fetch_add(1, Ordering::SeqCst);
                let end = tokio::time::Instant::now() + SHORT * 3;
                async move {
                    while tokio::time::Instant::now() < end {
                        std::hint::spin_loop();
                    }
                    Outcome::Ack
                }
            });
            let worker = worker.lease(SHORT).until_empty(true);
            worker.run(CancellationToken::new()).await.expect("worked")
        })
    });
    eventually("it runs", SOON, || async { ran.load(Ordering::SeqCst) == 1 }).await;
    let rival = queue.consumer("rival", SHORT).expect("a consumer");
    while !other.is_finished() {
        let got = rival.receive(1, SHORT / 3).await.expect("received");
        assert!(got.is_empty(), "the message of a busy worker was given away");
    }
    let report = other.join().expect("the worker's thread");
    assert_eq!((report.acked, report.lost, ran.load(Ordering::SeqCst)), (1, 0, 1));
}

macro_rules! for_all_engines {
    ($($case:ident),* $(,)?) => {
        mod lists { use super::*; $(#[tokio::test] async fn $case() { on::<ListsEngine, _>(super::$case).await; })* }
        mod sharded { use super::*; $(#[tokio::test] async fn $case() { on::<ShardedEngine, _>(super::$case).await; })* }
        mod plain { use super::*; $(#[tokio::test] async fn $case() { on::<PlainEngine, _>(super::$case).await; })* }
        mod streams { use super::*; $(#[tokio::test] async fn $case() { on::<StreamsEngine, _>(super::$case).await; })* }
    };
}

async fn on<E: Engine, F: Future<Output = ()>>(case: impl FnOnce(Arc<dyn Queue>) -> F) {
    let bed = Bed::new();
    case(E::open(&bed.server, "jobs")).await;
}

for_all_engines!(
    works_through_everything,
    counts_a_panic_as_a_failure,
    drains_when_told_to_stop,
    gives_back_what_does_not_end,
    keeps_what_a_busy_handler_has,
);

/// Whoever lost the lease is told, and its result does not count.
#[tokio::test]
async fn a_handler_is_cancelled_when_its_lease_is_lost() {
    let bed = Bed::new();
    let queue = Arc::new(bed.lists());
    publish(&*queue, &[Message::new("taken away").with_id("victim")]).await;
    let stop = CancellationToken::new();
    let (token, started) = (stop.clone(), Arc::new(tokio::sync::Notify::new()));
    let begun = Arc::clone(&started);
    let worker = Worker::new(queue.clone() as Arc<dyn Queue>, move |job| {
        begun.notify_one();
        let (lost, token) = (job.lost.clone(), token.clone());
        tokio::spawn(async move {
            lost.cancelled().await;
            token.cancel();
        });
        std::future::pending()
    });
    let worker = worker.lease(SHORT);
    let running = tokio::spawn(async move { worker.run(stop).await });
    started.notified().await;
    queue.cancel(&["victim".to_owned()]).await.expect("cancelled");
    let report = tokio::time::timeout(SOON, running).await.expect("in time").unwrap().unwrap();
    assert_eq!((report.acked, report.lost), (0, 1));
    assert!(queue.stats().await.expect("stats").is_empty());
}

/// What an idle worker costs the server.
#[tokio::test]
async fn an_idle_worker_sends_at_most_two_commands_a_second() {
    for engine in [ListsEngine::open, ShardedEngine::open, PlainEngine::open, StreamsEngine::open] {
        let bed = Bed::new();
        let queue = engine(&bed.server, "jobs");
        let name = queue.engine();
        let worker = Worker::new(queue, |_| async { Outcome::Ack });
        let stop = CancellationToken::new();
        let token = stop.clone();
        let running = tokio::spawn(async move { worker.run(token).await });
        // It has connected and blocks.
        eventually("a blocked client", SOON, || async {
            bed.redis.command("INFO clients").unwrap().contains("blocked_clients:1")
        })
        .await;
        let (before, own) = (commands(&bed), 1);
        let seconds = 4;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let sent = commands(&bed) - before - own;
        assert!(sent <= 2 * seconds, "{name} sent {sent} commands in {seconds} s");
        stop.cancel();
        running.await.expect("the worker").expect("stopped");
    }
}

/// Commands that clients sent; those inside scripts are not among them.
fn commands(bed: &Bed) -> u64 {
    let info = bed.redis.command("INFO commandstats").expect("an answer");
    let calls = |name: &str| -> u64 {
        let head = format!("cmdstat_{name}:calls=");
        let line = info.lines().find_map(|line| line.strip_prefix(&head));
        line.and_then(|rest| rest.split(',').next()).map_or(0, |n| n.parse().unwrap_or(0))
    };
    ["evalsha", "eval", "blpop", "blmove", "xreadgroup", "ping", "info"]
        .into_iter()
        .map(calls)
        .sum()
}

/// With messages in flight the worker never has more in hand than its concurrency, seen from the
/// server.
#[tokio::test]
async fn never_more_leased_than_the_concurrency() {
    let bed = Bed::new();
    let queue = ListsEngine::open(&bed.server, "jobs");
    let messages: Vec<_> = (0..3_000).map(|n| Message::new(format!("m{n}"))).collect();
    publish(&*queue, &messages).await;
    let watched = Arc::clone(&queue);
    let worker = Worker::new(Arc::clone(&queue), |_| async { Outcome::Ack });
    let worker = worker.concurrency(5).until_empty(true);
    let running = tokio::spawn(async move { worker.run(CancellationToken::new()).await });
    let mut most = 0;
    while !running.is_finished() {
        most = most.max(watched.stats().await.expect("stats").leased);
    }
    assert_eq!(running.await.unwrap().expect("worked").acked, 3_000);
    assert!((1..=5).contains(&most), "{most} were leased at the same time");
}
