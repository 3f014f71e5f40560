//! The doctor finds what is wrong, and nothing in what is right.

use aiseki_mq::doctor::{Finding, Level, examine_queue, examine_server};
use aiseki_mq::{Message, Nack, Queue, Verdict};
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
