//! A server, a queue and a plain connection for one test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aiseki_mq::{
    Consumer, Delivery, Lists, ListsOptions, Message, Nack, Published, Queue, QueueName, Receipt,
    Server, Timeouts, Verdict,
};
use aiseki_testkit::Redis;
use redis::aio::MultiplexedConnection;

/// How long a test waits for what must happen.
pub(crate) const SOON: Duration = Duration::from_secs(10);
/// A lease that nothing in a test outlives.
pub(crate) const LONG: Duration = Duration::from_mins(1);

pub(crate) struct Bed {
    pub(crate) redis: Redis,
    pub(crate) server: Server,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self::on(Redis::start().expect("a server"))
    }

    pub(crate) fn with(arguments: &[&str]) -> Self {
        Self::on(Redis::with_arguments(arguments).expect("a server"))
    }

    pub(crate) fn on(redis: Redis) -> Self {
        let server = Server::new(&redis.url()).expect("a URL").with_timeouts(quick());
        Self { redis, server }
    }

    pub(crate) fn lists(&self) -> Lists {
        self.lists_with(ListsOptions::default())
    }

    pub(crate) fn lists_with(&self, options: ListsOptions) -> Lists {
        Lists::new(&self.server, QueueName::new("jobs").expect("a name"), options)
    }

    /// A plain connection, for looking at keys.
    pub(crate) async fn raw(&self) -> MultiplexedConnection {
        connect(&self.redis.url()).await
    }
}

pub(crate) async fn connect(url: &str) -> MultiplexedConnection {
    let client = redis::Client::open(url).expect("a URL");
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(SOON));
    client.get_multiplexed_async_connection_with_config(&config).await.expect("a connection")
}

/// Short enough that a test of a dead link does not take long.
pub(crate) fn quick() -> Timeouts {
    Timeouts {
        connect: Duration::from_secs(2),
        response: Duration::from_millis(1_500),
        operation: SOON,
    }
}

/// Time that moves only when the test says so.
#[derive(Clone)]
pub(crate) struct VirtualTime(pub(crate) Arc<AtomicU64>);

impl VirtualTime {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_700_000_000_000)))
    }

    pub(crate) fn pass(&self, duration: Duration) {
        let ms = u64::try_from(duration.as_millis()).expect("a short time");
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    pub(crate) fn options(&self) -> ListsOptions {
        ListsOptions { virtual_time: Some(Arc::clone(&self.0)), ..ListsOptions::default() }
    }
}

pub(crate) async fn publish(queue: &dyn Queue, messages: &[Message]) {
    let published = queue.publish(messages).await.expect("published");
    assert!(published.iter().all(|each| *each == Published::Accepted), "{published:?}");
}

pub(crate) async fn publish_texts(queue: &dyn Queue, payloads: &[&str]) {
    let messages: Vec<_> = payloads.iter().map(|text| Message::new(*text)).collect();
    publish(queue, &messages).await;
}

pub(crate) async fn take(consumer: &Arc<dyn Consumer>, max: usize) -> Vec<Delivery> {
    consumer.exchange(&[], max).await.expect("an exchange").deliveries
}

/// Takes one message that must be there by now.
pub(crate) async fn take_one(consumer: &Arc<dyn Consumer>) -> Delivery {
    take(consumer, 1).await.pop().expect("a message")
}

pub(crate) fn texts(deliveries: &[Delivery]) -> Vec<String> {
    deliveries.iter().map(|each| String::from_utf8_lossy(&each.payload).into_owned()).collect()
}

pub(crate) fn receipts(deliveries: &[Delivery]) -> Vec<Receipt> {
    deliveries.iter().map(|each| each.receipt.clone()).collect()
}

pub(crate) fn fail(delivery: &Delivery, delay: Duration) -> Nack {
    let verdict = Verdict::Fail { delay, reason: "the handler failed".to_owned() };
    Nack { receipt: delivery.receipt.clone(), verdict }
}

pub(crate) fn release(delivery: &Delivery) -> Nack {
    let verdict = Verdict::Release { delay: Duration::ZERO };
    Nack { receipt: delivery.receipt.clone(), verdict }
}
