//! What the `lists` engine has beyond the common core.

use std::sync::Arc;
use std::time::Duration;

use aiseki_mq::{
    Cancelled, Error, Lists, ListsOptions, Message, Published, Queue, QueueName, Settled, Verdict,
    Which,
};
use redis::AsyncCommands;

use crate::bed::{
    Bed, LONG, SOON, VirtualTime, fail, publish, publish_texts, receipts, take, take_one, texts,
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn first_in_first_out() {
    let bed = Bed::new();
    let queue = bed.lists();
    publish_texts(&queue, &["1", "2", "3"]).await;
    publish_texts(&queue, &["4"]).await;
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    assert_eq!(texts(&take(&consumer, 3).await), ["1", "2", "3"]);
    assert_eq!(texts(&take(&consumer, 3).await), ["4"]);
}

#[tokio::test]
async fn a_delayed_message_is_due_in_its_time_and_runs_once() {
    let (bed, time) = (Bed::new(), VirtualTime::new());
    let queue = bed.lists_with(time.options());
    let lease = SECOND;
    publish(&queue, &[Message::new("later").with_delay(lease * 3)]).await;
    let consumer = queue.consumer("w", lease).expect("a consumer");
    let got = consumer.exchange(&[], 1).await.expect("an exchange");
    assert!(got.deliveries.is_empty());
    assert_eq!(got.next_due, Some(lease * 3));
    assert_eq!(queue.stats().await.expect("stats").delayed, 1);
    time.pass(Duration::from_millis(2_999));
    assert!(take(&consumer, 1).await.is_empty());
    time.pass(Duration::from_millis(1));
    let delivery = take_one(&consumer).await;
    assert_eq!(delivery.attempt(), 1);
    assert_eq!(consumer.ack(&[delivery.receipt]).await.expect("acked"), [Settled::Done]);
    time.pass(lease * 10);
    assert!(take(&consumer, 1).await.is_empty());
}

#[tokio::test]
async fn a_blocked_worker_learns_of_a_delay_that_ends_earlier() {
    let bed = Bed::new();
    let queue = bed.lists();
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let blocked = Arc::clone(&consumer);
    let waiting = tokio::spawn(async move { blocked.wait(LONG).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let begin = tokio::time::Instant::now();
    let delay = Duration::from_millis(200);
    publish(&queue, &[Message::new("soon").with_delay(delay)]).await;
    // It would have blocked for the whole time that it was given.
    waiting.await.expect("the worker").expect("woken");
    assert!(begin.elapsed() < LONG / 2);
    let got = consumer.receive(1, SOON).await.expect("received");
    assert_eq!(texts(&got), ["soon"]);
    assert!(begin.elapsed() >= delay);
}

#[tokio::test]
async fn an_id_is_published_once() {
    let bed = Bed::new();
    let queue = bed.lists();
    let message = Message::new("once").with_id("order-7");
    let twice = [message.clone(), message.clone()];
    let expected = vec![Published::Accepted, Published::Duplicate];
    assert_eq!(queue.publish(&twice).await.expect("published"), expected);
    assert_eq!(queue.publish(&twice).await.expect("published"), vec![Published::Duplicate; 2]);
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let delivery = take_one(&consumer).await;
    assert_eq!(queue.publish(&twice).await.expect("published"), vec![Published::Duplicate; 2]);
    assert_eq!(consumer.ack(&[delivery.receipt]).await.expect("acked"), [Settled::Done]);
    // Also when it is done: the producer whose answer was lost comes late.
    assert_eq!(queue.publish(&twice).await.expect("published"), vec![Published::Duplicate; 2]);
}

#[tokio::test]
async fn the_memory_of_done_ids_is_bounded() {
    let bed = Bed::new();
    let queue = bed.lists_with(ListsOptions { memo_limit: 10, ..ListsOptions::default() });
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    for n in 0..50 {
        publish(&queue, &[Message::new("x").with_id(format!("id-{n}"))]).await;
        let delivery = take_one(&consumer).await;
        consumer.ack(&[delivery.receipt]).await.expect("acked");
    }
    let mut raw = bed.raw().await;
    let done: usize = raw.hlen("mq:{jobs}:done").await.expect("a length");
    let past: usize = raw.hlen("mq:{jobs}:past").await.expect("a length");
    assert!(done <= 10 && past <= 10 && done + past >= 10, "{done} {past}");
    let again = [Message::new("x").with_id("id-49"), Message::new("x").with_id("id-0")];
    let expected = [Published::Duplicate, Published::Accepted];
    assert_eq!(queue.publish(&again).await.expect("published"), expected);
}

#[tokio::test]
async fn a_unique_key_is_held_exactly_as_long_as_its_message_lives() {
    let bed = Bed::new();
    let queue = bed.lists();
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let first = Message::new("a").with_id("first").with_unique("user:1");
    let other = |id: &str| Message::new("b").with_id(id).with_unique("user:1");
    let taken = |by: &str| vec![Published::Taken { by: by.to_owned() }];
    publish(&queue, &[first]).await;
    assert_eq!(queue.publish(&[other("second")]).await.expect("answered"), taken("first"));
    let delivery = take_one(&consumer).await;
    assert_eq!(queue.publish(&[other("second")]).await.expect("answered"), taken("first"));
    consumer.nack(&[fail(&delivery, Duration::ZERO)]).await.expect("nacked");
    assert_eq!(queue.publish(&[other("second")]).await.expect("answered"), taken("first"));
    let delivery = take_one(&consumer).await;
    consumer.ack(&[delivery.receipt]).await.expect("acked");
    publish(&queue, &[other("second")]).await;

    // A dead letter frees it; the replay takes it again only if nobody has it.
    let delivery = take_one(&consumer).await;
    let verdict = Verdict::Bury { reason: "no".to_owned() };
    let nack = aiseki_mq::Nack { receipt: delivery.receipt, verdict };
    consumer.nack(&[nack]).await.expect("nacked");
    publish(&queue, &[other("third")]).await;
    assert_eq!(queue.replay(&Which::All).await.expect("answered"), 0);
    assert_eq!(queue.cancel(&["third".to_owned()]).await.expect("answered"), [Cancelled::Done]);
    assert_eq!(queue.replay(&Which::All).await.expect("answered"), 1);
    assert_eq!(queue.publish(&[other("fourth")]).await.expect("answered"), taken("second"));
    let delivery = take_one(&consumer).await;
    assert_eq!(delivery.id(), "second");
    consumer.ack(&[delivery.receipt]).await.expect("acked");
    let mut raw = bed.raw().await;
    let left: (bool, bool) = (
        raw.exists("mq:{jobs}:unique").await.unwrap(),
        raw.exists("mq:{jobs}:holds").await.unwrap(),
    );
    assert_eq!(left, (false, false));
}

#[tokio::test]
async fn a_full_queue_refuses_and_loses_nothing() {
    let bed = Bed::new();
    let queue = bed.lists_with(ListsOptions { max_length: Some(3), ..ListsOptions::default() });
    publish_texts(&queue, &["1", "2"]).await;
    let refused = queue.publish(&[Message::new("3"), Message::new("4")]).await;
    assert!(matches!(refused, Err(Error::Full)), "{refused:?}");
    assert_eq!(queue.stats().await.expect("stats").ready, 2);
    publish_texts(&queue, &["3"]).await;
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let got = take(&consumer, 3).await;
    assert!(matches!(queue.publish(&[Message::new("4")]).await, Err(Error::Full)));
    consumer.ack(&receipts(&got[..1])).await.expect("acked");
    publish_texts(&queue, &["4"]).await;
}

#[tokio::test]
async fn a_payload_over_the_limit_is_refused_before_it_is_sent() {
    let bed = Bed::new();
    let queue = bed.lists_with(ListsOptions { payload_limit: 100, ..ListsOptions::default() });
    publish(&queue, &[Message::new(vec![7; 100])]).await;
    let refused = queue.publish(&[Message::new("small"), Message::new(vec![7; 101])]).await;
    assert!(matches!(refused, Err(Error::PayloadTooLarge { size: 101, limit: 100 })));
    assert_eq!(queue.stats().await.expect("stats").ready, 1);
}

#[tokio::test]
async fn names_with_control_characters_are_refused() {
    let bed = Bed::new();
    let queue = bed.lists();
    for bad in ["", "two\nlines", &"x".repeat(257)] {
        let refused = queue.publish(&[Message::new("x").with_id(bad)]).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{bad:?}");
    }
    publish(&queue, &[Message::new("x").with_id("席 1:2 {a}")]).await;
}

#[tokio::test]
async fn failures_and_crashes_have_budgets_of_their_own() {
    let (bed, time) = (Bed::new(), VirtualTime::new());
    let options = ListsOptions { failure_budget: 2, crash_budget: 2, ..time.options() };
    let queue = bed.lists_with(options);
    let consumer = queue.consumer("w", SECOND).expect("a consumer");
    publish_texts(&queue, &["x"]).await;
    let delivery = take_one(&consumer).await;
    consumer.nack(&[fail(&delivery, Duration::ZERO)]).await.expect("nacked");
    assert_eq!(take_one(&consumer).await.failures, 1);
    time.pass(SECOND * 2);
    let delivery = take_one(&consumer).await;
    assert_eq!((delivery.failures, delivery.crashes, delivery.attempt()), (1, 1, 3));
    let buried = consumer.nack(&[fail(&delivery, Duration::ZERO)]).await.expect("nacked");
    assert_eq!(buried, [Settled::Buried]);
    let letter = queue.dead_letters(0, 1).await.expect("letters").remove(0);
    assert_eq!((letter.failures, letter.crashes), (2, 1));
}

#[tokio::test]
async fn a_message_is_cancelled_in_every_state() {
    let bed = Bed::new();
    let queue = bed.lists();
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let ids = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    publish(&queue, &[Message::new("l").with_id("leased")]).await;
    let leased = take_one(&consumer).await;
    publish(
        &queue,
        &[
            Message::new("r").with_id("ready"),
            Message::new("d").with_id("delayed").with_delay(LONG),
            Message::new("s").with_id("stays"),
        ],
    )
    .await;
    let answers = queue.cancel(&ids(&["ready", "delayed", "leased", "nobody"])).await;
    let done = Cancelled::Done;
    assert_eq!(answers.expect("answered"), [done, done, done, Cancelled::NotThere]);
    let stats = queue.stats().await.expect("stats");
    assert_eq!((stats.ready, stats.delayed, stats.leased), (1, 0, 0));
    let late = consumer.ack(std::slice::from_ref(&leased.receipt)).await.expect("answered");
    assert_eq!(late, [Settled::Stale]);
    // A publish whose answer was lost comes again after the cancel: it stays cancelled.
    let again = queue.publish(&[Message::new("r").with_id("ready")]).await.expect("answered");
    assert_eq!(again, [Published::Duplicate]);
    assert_eq!(texts(&take(&consumer, 5).await), ["s"]);
    let stats = queue.stats().await.expect("stats");
    assert_eq!((stats.ready, stats.dead), (0, 0));
}

#[tokio::test]
async fn a_repeated_ack_is_fine_and_a_stale_one_changes_nothing() {
    let (bed, time) = (Bed::new(), VirtualTime::new());
    let queue = bed.lists_with(time.options());
    let (one, two) = (queue.consumer("1", SECOND).unwrap(), queue.consumer("2", SECOND).unwrap());
    publish_texts(&queue, &["x"]).await;
    let slow = [take_one(&one).await.receipt];
    time.pass(SECOND * 2);
    let quick = [take_one(&two).await.receipt];
    assert!(quick[0].token > slow[0].token);
    assert_eq!(one.ack(&slow).await.unwrap(), [Settled::Stale]);
    assert_eq!(two.ack(&quick).await.unwrap(), [Settled::Done]);
    assert_eq!(two.ack(&quick).await.unwrap(), [Settled::Repeated]);
    assert_eq!(one.ack(&slow).await.unwrap(), [Settled::Stale]);
    assert_eq!(queue.stats().await.unwrap().acked, 1);
}

#[tokio::test]
async fn a_late_ack_counts_while_nobody_else_has_the_message() {
    let (bed, time) = (Bed::new(), VirtualTime::new());
    let queue = bed.lists_with(time.options());
    let consumer = queue.consumer("w", SECOND).expect("a consumer");
    publish_texts(&queue, &["x"]).await;
    let late = [take_one(&consumer).await.receipt];
    time.pass(SECOND * 5);
    assert_eq!(consumer.ack(&late).await.expect("acked"), [Settled::Done]);
}

#[tokio::test]
async fn a_repeated_nack_is_fine() {
    let bed = Bed::new();
    let queue = bed.lists();
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    publish_texts(&queue, &["x"]).await;
    let nack = [fail(&take_one(&consumer).await, LONG)];
    assert_eq!(consumer.nack(&nack).await.expect("nacked"), [Settled::Done]);
    assert_eq!(consumer.nack(&nack).await.expect("nacked"), [Settled::Repeated]);
    let stats = queue.stats().await.expect("stats");
    assert_eq!((stats.delayed, stats.ready), (1, 0));
}

#[tokio::test]
async fn messages_without_a_lease_are_found() {
    let bed = Bed::new();
    let queue = bed.lists();
    publish_texts(&queue, &["1", "2"]).await;
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    assert_eq!(take(&consumer, 2).await.len(), 2);
    let mut raw = bed.raw().await;
    let _: () = raw.del("mq:{jobs}:leased").await.expect("deleted");
    assert!(take(&consumer, 2).await.is_empty());
    assert_eq!(queue.recover().await.expect("recovered"), 4, "two found, two reclaimed");
    let other = queue.consumer("other", LONG).expect("a consumer");
    let got = take(&other, 2).await;
    assert_eq!(got.len(), 2);
    assert!(got.iter().all(|each| each.crashes == 1));
}

#[tokio::test]
async fn what_a_worker_claimed_last_is_forgotten_when_it_is_long_gone() {
    let bed = Bed::new();
    let queue = bed.lists();
    let mut raw = bed.raw().await;
    let _: () = raw.hset("mq:{jobs}:state", "claim:gone", "1 7\nid").await.expect("set");
    publish_texts(&queue, &["1"]).await;
    let consumer = queue.consumer("here", LONG).expect("a consumer");
    take_one(&consumer).await;
    queue.recover().await.expect("recovered");
    let fields: Vec<String> = raw.hkeys("mq:{jobs}:state").await.expect("fields");
    let claims: Vec<_> = fields.iter().filter(|field| field.starts_with("claim:")).collect();
    assert_eq!(claims, [&format!("claim:{}", consumer.worker())]);
}

#[tokio::test]
async fn a_message_whose_payload_is_gone_or_broken_is_a_dead_letter_at_once() {
    let bed = Bed::new();
    let queue = bed.lists();
    let named = |id: &str| Message::new("x").with_id(id);
    publish(&queue, &[named("gone"), named("broken"), named("well")]).await;
    let mut raw = bed.raw().await;
    let _: () = raw.hdel("mq:{jobs}:payload", "gone").await.expect("deleted");
    let _: () = raw.hset("mq:{jobs}:payload", "broken", "short").await.expect("set");
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let got = take(&consumer, 3).await;
    assert_eq!(got.iter().map(aiseki_mq::Delivery::id).collect::<Vec<_>>(), ["well"]);
    let letters = queue.dead_letters(0, 10).await.expect("letters");
    let reasons: Vec<_> =
        letters.iter().map(|each| (each.id.as_str(), each.reason.as_str())).collect();
    assert!(reasons.contains(&("gone", "the payload is gone")), "{reasons:?}");
    assert!(reasons.contains(&("broken", "the payload cannot be read")), "{reasons:?}");
    assert_eq!(queue.drop_dead(&Which::All).await.expect("dropped"), 2);
}

#[tokio::test]
async fn shards_have_their_slots_and_share_the_work() {
    let bed = Bed::new();
    let name = QueueName::sharded("wide", 4).expect("a name");
    let queue = Lists::new(
        &bed.server,
        name,
        ListsOptions { max_length: Some(100), ..ListsOptions::default() },
    );
    let messages: Vec<_> = (0..40).map(|n| Message::new(format!("{n}"))).collect();
    publish(&queue, &messages).await;
    let mut raw = bed.raw().await;
    for key in ["mq:{wide}:ready", "mq:{wide:1}:ready", "mq:{wide:2}:ready", "mq:{wide:3}:ready"] {
        let length: usize = raw.llen(key).await.expect("a length");
        assert!((1..40).contains(&length), "{key} {length}");
    }
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let got = take(&consumer, 25).await;
    assert_eq!(got.len(), 25, "never more than asked for, and all shards together");
    let acked = consumer.exchange(&receipts(&got), 40).await.expect("an exchange");
    assert_eq!(acked.settled, vec![Settled::Done; 25]);
    let rest = acked.deliveries.len() + take(&consumer, 40).await.len();
    assert_eq!(rest, 15);
}

#[tokio::test]
async fn a_server_out_of_memory_refuses_messages_and_lets_workers_finish() {
    let bed = Bed::with(&["--maxmemory", "8mb", "--maxmemory-policy", "noeviction"]);
    let queue = bed.lists();
    let payload = vec![b'x'; 10_000];
    let mut published = 0;
    let refused = loop {
        match queue.publish(&[Message::new(payload.clone())]).await {
            Ok(_) => published += 1,
            Err(error) => break error,
        }
        assert!(published < 10_000, "the server has no limit");
    };
    assert!(matches!(refused, Error::OutOfMemory), "{refused:?}");
    let consumer = queue.consumer("w", LONG).expect("a consumer");
    let mut acked = 0;
    let mut acks = Vec::new();
    loop {
        let got = consumer.exchange(&acks, 50).await.expect("an exchange");
        acked += got.settled.iter().filter(|each| **each == Settled::Done).count();
        acks = receipts(&got.deliveries);
        if acks.is_empty() {
            break;
        }
    }
    assert_eq!(acked, published, "nothing that was accepted is lost");
    publish_texts(&queue, &["there is room again"]).await;
}
