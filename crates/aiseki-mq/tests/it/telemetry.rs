//! What a worker counts and says, after deliveries, failures, dead letters and stale acks.

use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use aiseki_mq::{Backoff, Error, Lists, ListsOptions, Message, Outcome, Published, Queue, Worker};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::bed::{Bed, publish};

const AT_ONCE: Backoff = Backoff { first: Duration::ZERO, most: Duration::ZERO, doubling: 1 };
const LEASE: Duration = Duration::from_millis(300);

/// What all tests of this process say: each line is an event as JSON.
static SAID: LazyLock<Arc<Mutex<Vec<u8>>>> = LazyLock::new(|| {
    let said = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&said);
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::INFO)
        .with_writer(move || Page(Arc::clone(&writer)))
        .finish();
    tracing::subscriber::set_global_default(subscriber).expect("the only subscriber");
    said
});

struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The events that name this worker.
fn said_of(worker: &str) -> Vec<String> {
    let name = format!(r#""worker":"{worker}."#);
    let all = String::from_utf8(SAID.lock().unwrap().clone()).expect("text");
    all.lines().filter(|line| line.contains(&name)).map(str::to_owned).collect()
}

fn exposed(queue: &Lists) -> String {
    let (mut registry, mut text) = (Registry::default(), String::new());
    queue.metrics().register(&mut registry);
    encode(&mut text, &registry).expect("encoded");
    text
}

/// Runs one message at a time: two are well, one fails until it is a dead letter, one is taken away
/// before its ack, one while its handler runs.
async fn run_all(queue: &Arc<Lists>, name: &str) {
    let messages =
        ["well", "well too", "bad", "late", "taken"].map(|id| Message::new(id).with_id(id));
    publish(&**queue, &messages).await;
    let taking = Arc::clone(queue);
    let worker = Worker::new(Arc::clone(queue) as Arc<dyn Queue>, move |job| {
        let queue = Arc::clone(&taking);
        async move {
            match job.delivery.id() {
                "bad" => return Outcome::Fail("it cannot be read".to_owned()),
                id @ ("late" | "taken") => {
                    queue.cancel(&[id.to_owned()]).await.expect("cancelled");
                    if id == "taken" {
                        std::future::pending::<()>().await;
                    }
                }
                _ => {}
            }
            Outcome::Ack
        }
    });
    let worker = worker.name(name).lease(LEASE).backoff(AT_ONCE).until_empty(true);
    worker.run(CancellationToken::new()).await.expect("worked");
}

#[tokio::test]
async fn a_worker_counts_what_it_does() {
    let bed = Bed::new();
    let options =
        ListsOptions { failure_budget: 2, max_length: Some(10), ..ListsOptions::default() };
    let queue = Arc::new(bed.lists_with(options));
    run_all(&queue, "counting").await;
    let again = queue.publish(&[Message::new("x").with_id("well")]).await.expect("answered");
    assert_eq!(again, [Published::Duplicate]);
    let many: Vec<_> = (0..11).map(|_| Message::new("x")).collect();
    assert!(matches!(queue.publish(&many).await, Err(Error::Full)));
    bed.redis.command("CLIENT KILL TYPE normal").expect("killed");
    queue.stats().await.expect("connected again");

    let text = exposed(&queue);
    for line in [
        "mq_published_total 5",
        "mq_duplicates_total 1",
        "mq_refused_total 1",
        "mq_received_total 6",
        "mq_acked_total 2",
        "mq_failed_total 1",
        "mq_buried_total 1",
        "mq_released_total 0",
        "mq_stale_total 1",
        "mq_leases_lost_total 1",
        "mq_running 0",
        "mq_handler_seconds_count 6",
    ] {
        assert!(text.lines().any(|each| each == line), "no {line} in\n{text}");
    }
    assert!(!text.contains("mq_reconnects_total 0"), "{text}");
}

#[tokio::test]
async fn a_worker_says_what_went_wrong_and_with_which_message() {
    LazyLock::force(&SAID);
    let bed = Bed::new();
    let options = ListsOptions { failure_budget: 2, ..ListsOptions::default() };
    let queue = Arc::new(bed.lists_with(options));
    run_all(&queue, "telling").await;
    let said = said_of("telling");
    for (level, message, field) in [
        ("INFO", "the worker starts", ""),
        ("INFO", "the message failed", r#""id":"bad","reason":"it cannot be read""#),
        ("WARN", "the message is a dead letter", r#""id":"bad","reason":"it cannot be read""#),
        ("WARN", "settled too late: somebody else may have it", r#""id":"late""#),
        ("WARN", "leases are lost", r#""lost":1"#),
        ("INFO", "it has stopped", "acked: 2, failed: 2, released: 0, lost: 2"),
    ] {
        let matching = said.iter().filter(|line| {
            line.contains(&format!(r#""level":"{level}""#))
                && line.contains(&format!(r#""message":"{message}""#))
                && line.contains(field)
        });
        assert_eq!(matching.count(), 1, "{level} {message} {field} in\n{}", said.join("\n"));
    }
}

#[tokio::test]
async fn a_worker_says_when_the_queue_cannot_be_reached() {
    LazyLock::force(&SAID);
    let bed = Bed::new();
    let proxy = aiseki_testkit::Proxy::to(bed.redis.port()).expect("a proxy");
    let timeouts =
        aiseki_mq::Timeouts { operation: Duration::from_millis(100), ..crate::bed::quick() };
    let server = aiseki_mq::Server::new(&proxy.url()).expect("a URL").with_timeouts(timeouts);
    let name = aiseki_mq::QueueName::new("jobs").expect("a name");
    let queue = Lists::new(&server, name, ListsOptions::default());
    proxy.refuse(true);
    let worker = Worker::new(Arc::new(queue), |_| async { Outcome::Ack }).name("cut off");
    let stop = CancellationToken::new();
    let token = stop.clone();
    let running = tokio::spawn(async move { worker.until_empty(true).run(token).await });
    aiseki_testkit::eventually("it says so", crate::bed::SOON, || async {
        let said = said_of("cut off");
        said.iter().any(|line| line.contains("cannot be reached") && line.contains(r#""errors":2"#))
    })
    .await;
    proxy.refuse(false);
    let report = tokio::time::timeout(crate::bed::SOON, running).await.expect("it goes on");
    assert_eq!(report.expect("the worker").expect("worked").acked, 0);
}
