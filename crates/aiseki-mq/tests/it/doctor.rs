//! The doctor finds what is wrong, and nothing in what is right.

use aiseki_mq::doctor::{
    Finding, Level, examine_plain, examine_queue, examine_server, examine_streams,
};
use aiseki_mq::{Budgets, Message, Nack, Plain, Queue, QueueName, Streams, Verdict};
use redis::AsyncCommands;

use crate::bed::{Bed, LONG, publish, take, take_one};

fn level(findings: &[Finding], subject: &str) -> Level {
    let found = findings.iter().filter(|finding| finding.subject == subject);
    found.map(|finding| finding.level).max().unwrap_or_else(|| panic!("{subject}: {findings:?}"))
}

fn wrongs(findings: &[Finding]) -> Vec<&str> {
    let wrong = findings.iter().filter(|finding| finding.level == Level::Wrong);
    wrong.map(|finding| finding.text.as_str()).collect()
}

#[tokio::test]
async fn a_busy_queue_is_well() {
    let bed = Bed::new();
    let queue = bed.lists();
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let named = |id: &str| Message::new("x").with_id(id);
    publish(&queue, &[named("dead"), named("leased"), named("cancelled"), named("ready")]).await;
    publish(&queue, &[named("delayed").with_delay(LONG).with_unique("key")]).await;
    let dead = take_one(&consumer).await;
    let verdict = Verdict::Bury { reason: "no".to_owned() };
    consumer.nack(&[Nack { receipt: dead.receipt, verdict }]).await.expect("buried");
    take(&consumer, 1).await;
    queue.cancel(&["cancelled".to_owned()]).await.expect("cancelled");
    let findings = examine_queue(&queue).await.expect("examined");
    assert_eq!(wrongs(&findings), Vec::<&str>::new());
    assert_eq!(level(&findings, "dead letters"), Level::Note);
    assert!(findings.iter().any(|each| each.text.contains("longest: 2 (")), "{findings:?}");
}

#[tokio::test]
async fn every_broken_invariant_is_named() {
    let bed = Bed::new();
    let queue = bed.lists();
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let mut raw = bed.raw().await;
    let key = |part: &str| format!("mq:{{jobs}}:{part}");
    publish(&queue, &[Message::new("x").with_id("out")]).await;
    take_one(&consumer).await;
    let _: () = raw.del(key("leased")).await.unwrap();
    publish(&queue, &[Message::new("x").with_id("nowhere")]).await;
    let _: () = raw.del(key("ready")).await.unwrap();
    publish(&queue, &[Message::new("x").with_id("twice"), Message::new("x").with_id("bare")]).await;
    let _: () = raw.zadd(key("delayed"), "twice", 1).await.unwrap();
    let _: () = raw.hdel(key("payload"), "bare").await.unwrap();
    let _: () = raw.hset(key("unique"), "ghost key", "nobody").await.unwrap();
    let findings = examine_queue(&queue).await.expect("examined");
    let wrongs = wrongs(&findings);
    for (fault, id) in [
        ("without a lease", "out"),
        ("in no state", "nowhere"),
        ("more than one state", "twice"),
        ("without a payload", "bare"),
        ("unique keys", "ghost key"),
    ] {
        let named = wrongs.iter().any(|text| text.contains(fault) && text.contains(id));
        assert!(named, "{fault} {id}: {wrongs:?}");
    }
    assert_eq!(wrongs.len(), 5, "{wrongs:?}");
}

#[tokio::test]
async fn a_plain_list_without_its_worker_is_named() {
    let bed = Bed::new();
    let queue = Plain::new(&bed.server, "jobs", Budgets::default()).expect("a queue");
    publish(&queue, &[Message::new("1"), Message::new("2")]).await;
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    take_one(&consumer).await;
    let findings = examine_plain(&queue).await.expect("examined");
    assert_eq!(wrongs(&findings), Vec::<&str>::new());
    let told = "jobs: 1 ready, 1 out with 1 workers";
    assert!(findings.iter().any(|each| each.text == told), "{findings:?}");
    let mut raw = bed.raw().await;
    let _: () = raw.lpush("{jobs}:processing:nobody", "3").await.expect("pushed");
    let findings = examine_plain(&queue).await.expect("examined");
    assert!(wrongs(&findings)[0].contains("{jobs}:processing:nobody"), "{findings:?}");
}

#[tokio::test]
async fn an_entry_that_was_trimmed_while_it_was_out_is_counted() {
    let bed = Bed::new();
    let name = QueueName::new("jobs").expect("a name");
    let queue = Streams::new(&bed.server, &name, Budgets::default());
    assert_eq!(wrongs(&examine_streams(&queue).await.expect("examined")), Vec::<&str>::new());
    publish(&queue, &[Message::new("1"), Message::new("2")]).await;
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    take_one(&consumer).await;
    assert_eq!(wrongs(&examine_streams(&queue).await.expect("examined")), Vec::<&str>::new());
    let mut raw = bed.raw().await;
    let _: () = redis::cmd("XTRIM")
        .arg("mq:{jobs}:stream")
        .arg("MAXLEN")
        .arg(1)
        .query_async(&mut raw)
        .await
        .expect("trimmed");
    let findings = examine_streams(&queue).await.expect("examined");
    assert!(wrongs(&findings)[0].contains("1 entries are out"), "{findings:?}");
}

#[tokio::test]
async fn settings_are_told_in_plain_words() {
    let bed = Bed::new();
    let findings = examine_server(&bed.server).await.expect("examined");
    assert_eq!(wrongs(&findings), Vec::<&str>::new());
    assert_eq!(level(&findings, "persistence"), Level::Note);
    let lossy = findings.iter().any(|each| each.text.contains("loses every message"));
    assert!(lossy, "{findings:?}");

    let arguments = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let bed = Bed::with(&[&arguments[..], &["--appendonly", "yes"]].concat());
    let findings = examine_server(&bed.server).await.expect("examined");
    assert_eq!(level(&findings, "eviction"), Level::Wrong);
    assert_eq!(level(&findings, "persistence"), Level::Good);
}
