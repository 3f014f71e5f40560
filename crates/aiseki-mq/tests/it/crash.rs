//! Workers that are killed or frozen, as processes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use aiseki_mq::{Message, Queue};
use aiseki_testkit::eventually;

use crate::bed::{Bed, LONG, SOON, publish, publish_texts, texts};

/// Built with the tests.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_mq-stepper");
const LEASE: Duration = Duration::from_millis(600);

/// The program `mq-stepper` as a process that is killed with this value.
pub(crate) struct Stepper {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Stepper {
    pub(crate) fn start(url: &str, lease: Duration) -> Self {
        let lease = lease.as_millis().to_string();
        let mut process = Command::new(PROGRAM)
            .args(["steps", url, "jobs", &lease])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the stepper starts");
        let input = process.stdin.take().expect("its input");
        let output = BufReader::new(process.stdout.take().expect("its output"));
        Self { process, input, output }
    }

    /// Reads what it has just done.
    pub(crate) fn said(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("its output");
        line.trim().to_owned()
    }

    /// Lets it go on.
    pub(crate) fn go(&mut self) {
        self.input.write_all(b"\n").expect("its input");
    }

    pub(crate) fn kill(mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("gone");
    }

    fn signal(&self, name: &str) {
        let done = Command::new("kill").args([name, &self.process.id().to_string()]).status();
        assert!(done.expect("kill").success());
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Killed at this point: the message comes again within one lease, unless it was acked.
async fn killed_at(point: &str, comes_again: bool) {
    let bed = Bed::new();
    let queue = bed.lists();
    let unique = Message::new("work").with_id("m").with_unique("only one");
    publish(&queue, std::slice::from_ref(&unique)).await;
    let mut stepper = Stepper::start(&bed.redis.url(), LEASE);
    assert_eq!(stepper.said(), "ready");
    loop {
        stepper.go();
        let said = stepper.said();
        if said == format!("{point} m") {
            break;
        }
        assert!(said.ends_with(" m"), "{said}");
    }
    stepper.kill();
    let killed = tokio::time::Instant::now();
    let other = queue.consumer("other", LEASE).expect("a consumer");
    if comes_again {
        let got = other.receive(1, SOON).await.expect("received");
        let took = killed.elapsed();
        assert_eq!(texts(&got), ["work"]);
        assert_eq!(got[0].crashes, 1);
        assert!(took < LEASE + Duration::from_millis(500), "{took:?}");
        other.ack(&[got[0].receipt.clone()]).await.expect("acked");
    } else {
        assert!(other.receive(1, LEASE * 2).await.expect("received").is_empty());
    }
    // Whatever happened, the unique key went with its message.
    publish(&queue, &[unique.with_id("next")]).await;
    assert_eq!(queue.stats().await.expect("stats").acked, 1);
}

#[tokio::test]
async fn killed_after_the_claim() {
    killed_at("claimed", true).await;
}

#[tokio::test]
async fn killed_after_the_handler() {
    killed_at("handled", true).await;
}

#[tokio::test]
async fn killed_after_the_ack() {
    killed_at("acked", false).await;
}

/// The server serves the worker that has waited longest; that one is frozen.
#[tokio::test]
async fn a_frozen_worker_does_not_keep_a_message_from_the_others() {
    let bed = Bed::new();
    let queue = bed.lists();
    let mut frozen = Stepper::start(&bed.redis.url(), LONG);
    assert_eq!(frozen.said(), "ready");
    frozen.go();
    let blocked = |count: usize| {
        let text = format!("blocked_clients:{count}");
        let redis = &bed.redis;
        move || {
            let found = redis.command("INFO clients").expect("an answer").contains(&text);
            async move { found }
        }
    };
    eventually("it blocks", SOON, blocked(1)).await;
    frozen.signal("-STOP");
    let other = queue.consumer("other", LONG).expect("a consumer");
    let waiting = tokio::spawn(async move { other.receive(1, SOON).await });
    eventually("both block", SOON, blocked(2)).await;
    publish_texts(&queue, &["for whoever is alive"]).await;
    let got = waiting.await.expect("the worker").expect("received");
    assert_eq!(texts(&got), ["for whoever is alive"]);
}

/// A rolling deploy: B is there before A goes, and nothing else is started.
#[tokio::test]
async fn a_worker_that_was_there_before_takes_over() {
    let bed = Bed::new();
    let queue = bed.lists();
    publish_texts(&queue, &["a's"]).await;
    let mut a = Stepper::start(&bed.redis.url(), LEASE);
    assert_eq!(a.said(), "ready");
    a.go();
    assert!(a.said().starts_with("claimed"));
    let b = queue.consumer("b", LEASE).expect("a consumer");
    let waiting = tokio::spawn(async move { b.receive(1, SOON).await });
    let begin = tokio::time::Instant::now();
    a.kill();
    let got = waiting.await.expect("b").expect("received");
    assert_eq!(texts(&got), ["a's"]);
    assert!(begin.elapsed() < LEASE + Duration::from_millis(500), "{:?}", begin.elapsed());
}
