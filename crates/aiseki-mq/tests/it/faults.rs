//! A network that cuts, delays and loses answers, and a server that goes away or forgets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aiseki_mq::{
    Durability, Error, Lists, ListsOptions, Message, Outcome, Published, Queue, QueueName, Server,
    Settled, Timeouts, Worker,
};
use aiseki_testkit::{Proxy, Redis, eventually};
use tokio_util::sync::CancellationToken;

use crate::bed::{
    Bed, LONG, SOON, fail, publish, publish_texts, quick, receipts, release, take, texts,
};

/// A queue behind a proxy, and the same queue beside it.
struct Behind {
    bed: Bed,
    proxy: Proxy,
    far: Lists,
    near: Lists,
}

impl Behind {
    fn new() -> Self {
        let bed = Bed::new();
        let proxy = Proxy::to(bed.redis.port()).expect("a proxy");
        let timeouts = Timeouts { response: Duration::from_millis(400), ..quick() };
        let server = Server::new(&proxy.url()).expect("a URL").with_timeouts(timeouts);
        let name = QueueName::new("jobs").expect("a name");
        let far = Lists::new(&server, name, ListsOptions::default());
        let near = bed.lists();
        Self { bed, proxy, far, near }
    }
}

/// Counts what a worker handled, until it is told to stop.
struct Counting {
    handled: Arc<AtomicUsize>,
    stop: CancellationToken,
    running: tokio::task::JoinHandle<aiseki_mq::Result<aiseki_mq::Report>>,
}

impl Counting {
    fn start(queue: &Lists) -> Self {
        let (handled, stop) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
        let (count, token) = (Arc::clone(&handled), stop.clone());
        let worker = Worker::new(Arc::new(queue.clone()), move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Outcome::Ack }
        });
        let worker = worker.concurrency(4).lease(Duration::from_secs(2));
        let running = tokio::spawn(async move { worker.run(token).await });
        Self { handled, stop, running }
    }

    async fn reaches(&self, count: usize) {
        eventually("everything is handled", SOON * 2, || async {
            self.handled.load(Ordering::SeqCst) >= count
        })
        .await;
    }

    async fn end(self) -> aiseki_mq::Report {
        self.stop.cancel();
        self.running.await.expect("the worker").expect("stopped")
    }
}

#[tokio::test]
async fn a_repeated_publish_after_a_lost_answer_is_one_message() {
    let behind = Behind::new();
    behind.proxy.lose_reply_to(b"EVALSHA");
    publish_texts(&behind.far, &["warm up"]).await;
    behind.proxy.lose_reply_to(b"precious");
    let message = Message::new("precious").with_id("m");
    // The first attempt was executed; its repetition finds the message there.
    let published = behind.far.publish(&[message]).await.expect("published");
    assert_eq!(published, [Published::Duplicate]);
    assert_eq!(behind.proxy.lost_replies(), 2);
    assert_eq!(behind.near.stats().await.expect("stats").ready, 2);
}

#[tokio::test]
async fn a_claim_whose_answer_is_lost_brings_the_same_again() {
    let behind = Behind::new();
    publish_texts(&behind.near, &["1", "2", "3"]).await;
    let consumer = behind.far.consumer("w", LONG).expect("a consumer");
    assert!(take(&consumer, 0).await.is_empty());
    behind.proxy.lose_reply_to(b"EVALSHA");
    let got = take(&consumer, 2).await;
    assert_eq!(behind.proxy.lost_replies(), 1);
    assert_eq!(texts(&got), ["1", "2"]);
    assert!(got.iter().all(|each| each.attempt() == 1));
    assert_eq!(behind.near.stats().await.expect("stats").leased, 2, "and no more than those");
    behind.proxy.lose_reply_to(b"EVALSHA");
    let settled = consumer.ack(&receipts(&got)).await.expect("acked");
    assert_eq!(behind.proxy.lost_replies(), 2);
    assert_eq!(settled, [Settled::Repeated; 2]);
    assert_eq!(behind.near.stats().await.expect("stats").acked, 2);
}

#[tokio::test]
async fn a_nack_whose_answer_is_lost_counts_once() {
    let behind = Behind::new();
    publish_texts(&behind.near, &["x"]).await;
    let consumer = behind.far.consumer("w", LONG).expect("a consumer");
    let delivery = take(&consumer, 1).await.remove(0);
    // The server knows the script by now.
    consumer.nack(&[release(&delivery)]).await.expect("released");
    let delivery = take(&consumer, 1).await.remove(0);
    behind.proxy.lose_reply_to(b"fail");
    let settled = consumer.nack(&[fail(&delivery, Duration::ZERO)]).await.expect("nacked");
    assert_eq!((behind.proxy.lost_replies(), settled), (1, vec![Settled::Repeated]));
    assert_eq!(take(&consumer, 1).await[0].failures, 1);
}

/// An answer that comes after the worker was told to stop: released, uncounted, at once.
#[tokio::test]
async fn told_to_stop_while_the_claim_is_on_its_way() {
    let behind = Behind::new();
    publish_texts(&behind.near, &["x", "y"]).await;
    let started = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&started);
    let worker = Worker::new(Arc::new(behind.far.clone()), move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Outcome::Ack }
    });
    let stop = CancellationToken::new();
    let token = stop.clone();
    let running = tokio::spawn(async move { worker.concurrency(2).lease(LONG).run(token).await });
    // The worker's claim reaches the server late, and its answer later still.
    behind.proxy.delay(Duration::from_millis(60));
    eventually("both are leased", SOON, || async {
        let leased = behind.near.stats().await.expect("stats").leased == 2;
        if leased {
            stop.cancel();
        }
        leased
    })
    .await;
    let report = running.await.expect("the worker").expect("stopped");
    assert_eq!((report.released, report.acked, started.load(Ordering::SeqCst)), (2, 0, 0));
    let other = behind.near.consumer("other", LONG).expect("a consumer");
    let got = take(&other, 2).await;
    assert_eq!(got.len(), 2);
    assert!(got.iter().all(|each| each.attempt() == 1));
}

#[tokio::test]
async fn idle_workers_outlive_an_outage_and_cut_connections() {
    let mut behind = Behind::new();
    let counting = Counting::start(&behind.far);
    publish_texts(&behind.near, &["before"]).await;
    counting.reaches(1).await;
    behind.bed.redis.kill();
    tokio::time::sleep(Duration::from_secs(3)).await;
    behind.bed.redis.boot().expect("it is back");
    let texts: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    publish_texts(&behind.near, &texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
    counting.reaches(101).await;

    for round in 0..20 {
        behind.proxy.cut();
        publish_texts(&behind.near, &["while it is cut"]).await;
        tokio::time::sleep(Duration::from_millis(100 + round)).await;
    }
    counting.reaches(121).await;
    let stats = || behind.near.stats();
    eventually("all are acked", SOON, || async { stats().await.expect("stats").is_empty() }).await;
    counting.end().await;
}

/// Connections that are open and dead: nothing is answered, nothing is refused.
#[tokio::test]
async fn a_half_open_link_is_replaced() {
    let behind = Behind::new();
    let counting = Counting::start(&behind.far);
    publish_texts(&behind.near, &["before"]).await;
    counting.reaches(1).await;
    behind.proxy.black_hole(true);
    publish_texts(&behind.near, &["1", "2", "3"]).await;
    let messages = [Message::new("lost")];
    let refused = behind.far.publish(&messages);
    let refused = tokio::time::timeout(Duration::from_secs(1), refused).await;
    assert!(refused.is_err(), "nothing passes");
    behind.proxy.black_hole(false);
    counting.reaches(4).await;
    publish_texts(&behind.far, &["after"]).await;
    counting.reaches(5).await;
    counting.end().await;
}

/// The block is longer than what client libraries wait by default.
#[tokio::test]
async fn a_long_block_does_not_swallow_the_message() {
    let bed = Bed::new();
    let queue = bed.lists();
    let counting = Counting::start(&queue);
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    publish_texts(&queue, &["after a while"]).await;
    counting.reaches(1).await;
    assert_eq!(counting.end().await.acked, 1);
}

#[tokio::test]
async fn a_frozen_server_is_waited_for() {
    let bed = Bed::new();
    let queue = bed.lists();
    let counting = Counting::start(&queue);
    publish_texts(&queue, &["before"]).await;
    counting.reaches(1).await;
    bed.redis.freeze();
    tokio::time::sleep(Duration::from_secs(4)).await;
    bed.redis.thaw();
    publish_texts(&queue, &["after"]).await;
    counting.reaches(2).await;
    counting.end().await;
}

#[tokio::test]
async fn scripts_are_sent_in_full_when_the_server_forgot_them() {
    let bed = Bed::with(&["--appendonly", "yes", "--appendfsync", "everysec"]);
    let queue = bed.lists();
    let flush = || assert_eq!(bed.redis.command("SCRIPT FLUSH").expect("flushed"), "+OK");
    for round in 0..5 {
        flush();
        publish_texts(&queue, &["x", "y"]).await;
        let consumer = queue.consumer("w", LONG).expect("a consumer");
        flush();
        let got = take(&consumer, 2).await;
        flush();
        let held = receipts(&got);
        assert_eq!(consumer.renewer().renew(&held).await.expect("renewed"), [true, true]);
        flush();
        consumer.nack(&[fail(&got[0], Duration::ZERO)]).await.expect("nacked");
        flush();
        assert_eq!(consumer.ack(&held[1..]).await.expect("acked"), [Settled::Done]);
        flush();
        consumer.drain(&[]).await.expect("drained");
        flush();
        assert_eq!(queue.stats().await.expect("stats").ready, round + 1);
    }
}

/// Leases that ended while the server was away belong to workers that were cut off, not lost.
#[tokio::test]
async fn after_a_restart_every_worker_has_a_lease_to_come_back() {
    let lease = Duration::from_secs(2);
    let mut bed = Bed::with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let queue = bed.lists();
    publish_texts(&queue, &["kept", "not kept"]).await;
    let holder = queue.consumer("holder", lease).expect("a consumer");
    let held = receipts(&take(&holder, 2).await);
    bed.redis.kill();
    tokio::time::sleep(lease + Duration::from_millis(100)).await;
    bed.redis.boot().expect("it is back");
    let back = tokio::time::Instant::now();
    let rival = queue.consumer("rival", lease).expect("a consumer");
    assert!(take(&rival, 2).await.is_empty(), "both leases are over, and nobody is lost");
    assert_eq!(holder.renewer().renew(&held[..1]).await.expect("renewed"), [true]);
    let mut renewer = holder.renewer();
    let got = loop {
        assert_eq!(renewer.renew(&held[..1]).await.expect("renewed"), [true]);
        let got = rival.receive(2, lease / 8).await.expect("received");
        if !got.is_empty() {
            break got;
        }
        assert!(back.elapsed() < SOON, "nobody took what is not renewed");
    };
    assert_eq!((texts(&got), got[0].crashes), (vec!["not kept".to_owned()], 1));
    assert!(back.elapsed() < lease + Duration::from_millis(1_500), "{:?}", back.elapsed());
    let settled = holder.ack(&held).await.expect("answered");
    assert_eq!(settled, [Settled::Done, Settled::Stale]);
}

#[tokio::test]
async fn everything_goes_on_after_a_flush() {
    let bed = Bed::new();
    let queue = bed.lists();
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    publish_texts(&queue, &["lost"]).await;
    let lost = take(&consumer, 1).await;
    assert_eq!(bed.redis.command("FLUSHALL").expect("flushed"), "+OK");
    assert_eq!(consumer.ack(&receipts(&lost)).await.expect("answered"), [Settled::Stale]);
    publish_texts(&queue, &["new"]).await;
    let got = take(&consumer, 1).await;
    assert_eq!(texts(&got), ["new"]);
    assert!(got[0].receipt.token > lost[0].receipt.token, "tokens never go back");
}

/// 20,000 messages due in the same millisecond, then 20,000 leases that end in the same one. How
/// much one step does is bounded by number; its time is that of the machine, and no test's.
#[tokio::test]
async fn a_flood_is_served_in_small_steps() {
    const FLOOD: u64 = 20_000;
    let bed = Bed::new();
    let time = crate::bed::VirtualTime::new();
    let queue = bed.lists_with(time.options());
    let second = Duration::from_secs(1);
    let messages: Vec<_> =
        (0..FLOOD).map(|n| Message::new(n.to_string()).with_delay(second)).collect();
    publish(&queue, &messages).await;
    time.pass(second);
    for crashes in 0..2 {
        let consumer = queue.consumer("w", second).expect("a consumer");
        let first = consumer.exchange(&[], 1).await.expect("an exchange");
        assert!(first.more, "there is more than one step does");
        let stats = queue.stats().await.expect("stats");
        let (moved, bound) = if crashes == 0 {
            (FLOOD - stats.delayed, 512)
        } else {
            (FLOOD + 1 - stats.leased, 128)
        };
        assert!((1..=bound).contains(&moved), "one step moved {moved}");
        let mut got = first.deliveries.len() as u64;
        loop {
            let step = consumer.exchange(&[], 1_000).await.expect("an exchange");
            assert!(step.deliveries.iter().all(|each| each.crashes == crashes));
            got += step.deliveries.len() as u64;
            if !step.more && step.deliveries.is_empty() {
                break;
            }
        }
        assert_eq!(got, FLOOD);
        time.pass(second * 2);
    }
}

#[expect(clippy::disallowed_methods, reason = "a campaign is asked for by the environment")]
fn races() -> usize {
    std::env::var("AISEKI_MQ_RACES").map_or(4_000, |count| count.parse().expect("a number"))
}

/// An ack and the reaper meet: either the ack is done, or the message comes again; never both. A
/// campaign races more often: `AISEKI_MQ_RACES=100000`.
#[tokio::test]
async fn an_acked_message_never_comes_back() {
    let races = races();
    let bed = Bed::new();
    let time = crate::bed::VirtualTime::new();
    let options = ListsOptions { crash_budget: 1_000, ..time.options() };
    let queue = bed.lists_with(options.clone());
    let second = Duration::from_secs(1);
    let consumer = queue.consumer("racer", second).expect("a consumer");
    // On connections of their own, so that either may come first.
    let rival = bed.lists_with(options).consumer("rival", second).expect("a consumer");
    let (mut acked, mut again) = (0, 0);
    for race in 0..races {
        publish(&queue, &[Message::new("x").with_id(race.to_string())]).await;
        let held = receipts(&take(&consumer, 1).await);
        time.pass(second);
        let (settled, got) = if race % 2 == 0 {
            tokio::join!(consumer.ack(&held), rival.exchange(&[], 1))
        } else {
            let (got, settled) = tokio::join!(rival.exchange(&[], 1), consumer.ack(&held));
            (settled, got)
        };
        let (settled, got) = (settled.expect("answered"), got.expect("an exchange").deliveries);
        match settled[0] {
            Settled::Done => {
                assert!(got.is_empty(), "an acked message came back");
                acked += 1;
            }
            Settled::Stale => {
                assert_eq!(got[0].id(), held[0].id);
                rival.ack(&receipts(&got)).await.expect("acked");
                again += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(acked > 0 && again > 0, "no race: {acked} {again}");
    assert_eq!(queue.stats().await.expect("stats").acked, races as u64);
}

#[tokio::test]
async fn durable_publishes_say_what_they_could_not_reach() {
    let within = Duration::from_millis(300);
    let bed = Bed::new();
    let durable = |server: &Server, durability| {
        let options = ListsOptions { durability, ..ListsOptions::default() };
        Lists::new(server, QueueName::new("jobs").expect("a name"), options)
    };
    let replicas = durable(&bed.server, Durability::Replicas { count: 1, within });
    let alone = replicas.publish(&[Message::new("x")]).await;
    let missing = Error::NotDurable { what: "replicas", confirmed: 0, wanted: 1, within };
    assert_eq!(alone.expect_err("no replica").to_string(), missing.to_string());

    let primary = ["127.0.0.1".to_owned(), bed.redis.port().to_string()].join(" ");
    let replica = Redis::with_arguments(&["--replicaof", &primary]).expect("a replica");
    eventually("the replica follows", SOON * 2, || async {
        replica.command("INFO replication").unwrap().contains("master_link_status:up")
    })
    .await;
    // Here the replica is there, so the time is only for how long it may take.
    let replicas = durable(&bed.server, Durability::Replicas { count: 1, within: SOON * 2 });
    publish_texts(&replicas, &["on two servers"]).await;
    // The script is forgotten in the middle of a pipeline, too.
    bed.redis.command("SCRIPT FLUSH").expect("flushed");
    publish_texts(&replicas, &["on two servers as well"]).await;

    // Redis 7.0 cannot say when its log is on disk: refused, with nothing published.
    let before = replicas.stats().await.expect("stats").ready;
    let fsync = durable(&bed.server, Durability::Fsync { within });
    let refused = fsync.publish(&[Message::new("x")]).await;
    assert!(matches!(&refused, Err(Error::Unsupported(why)) if why.contains("7.2")), "{refused:?}");
    assert_eq!(replicas.stats().await.expect("stats").ready, before);
}
