//! A worker: takes messages, runs a handler on each, and settles them.

mod held;
mod signals;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::backoff::Backoff;
use crate::error::{Error, Result, invalid};
use crate::message::{Delivery, Nack, Receipt, Settled, Verdict};
use crate::metrics::Metrics;
use crate::queue::{Consumer, Queue};
use held::{Held, Keeper};

pub use signals::stop_on_signals;

/// After errors of the server a worker pauses this long, growing with each in a row.
const ERROR_PAUSE: Backoff =
    Backoff { first: Duration::from_millis(20), most: Duration::from_secs(2), doubling: 7 };

/// How long an aborted handler may take to notice.
const ABORT: Duration = Duration::from_secs(1);

/// What a handler made of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Ack,
    /// It failed, and is to be tried again after the worker's backoff.
    Fail(String),
    /// It failed, and is to be tried again after this time.
    FailAfter(Duration, String),
    /// Not now, and nobody's fault: not counted.
    Release(Duration),
    /// Trying again is useless.
    Bury(String),
}

/// One message in a handler's hands.
#[derive(Debug)]
pub struct Job {
    /// The message.
    pub delivery: Delivery,
    /// Cancelled when the lease is lost: somebody else may have the message by now. The handler's
    /// future is dropped at its next await then; a handler that blocks should look here.
    pub lost: CancellationToken,
}

/// What a worker did until it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Messages acked.
    pub acked: u64,
    /// Deliveries given back as failed, panics included.
    pub failed: u64,
    /// Deliveries given back uncounted.
    pub released: u64,
    /// Deliveries whose lease was lost before they were settled.
    pub lost: u64,
}

type Handler = Arc<dyn Fn(Job) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// Runs a handler on the messages of a queue.
///
/// Never are more than `concurrency` messages running or finished and not yet acked. Leases are
/// renewed from a thread of the worker's own, so that a handler that burns the runtime's processor
/// keeps its message. A handler that panics has failed, and the worker goes on.
pub struct Worker {
    queue: Arc<dyn Queue>,
    handler: Handler,
    name: String,
    concurrency: usize,
    lease: Duration,
    backoff: Backoff,
    drain: Duration,
    until_empty: bool,
}

impl Worker {
    /// A worker with room for one message, a lease of 30 s, and 25 s for a drain.
    pub fn new<F, H>(queue: Arc<dyn Queue>, handler: H) -> Self
    where
        H: Fn(Job) -> F + Send + Sync + 'static,
        F: Future<Output = Outcome> + Send + 'static,
    {
        Self {
            queue,
            handler: Arc::new(move |job| Box::pin(handler(job))),
            name: "worker".to_owned(),
            concurrency: 1,
            lease: Duration::from_secs(30),
            backoff: Backoff::default(),
            drain: Duration::from_secs(25),
            until_empty: false,
        }
    }

    /// The name that its id begins with.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// How many messages it has at the same time, 1 to 1,000.
    #[must_use]
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self { concurrency, ..self }
    }

    /// After how long of silence its messages are given to others; renewed every third of it.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// How failed messages are spread in time.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// How long a stopping worker waits for its handlers before it gives their messages back.
    #[must_use]
    pub fn drain(self, drain: Duration) -> Self {
        Self { drain, ..self }
    }

    /// Stops when nothing is ready, delayed or out with any worker.
    #[must_use]
    pub fn until_empty(self, until_empty: bool) -> Self {
        Self { until_empty, ..self }
    }

    /// Works until `stop` is cancelled (see [`stop_on_signals`]), then drains: running handlers end
    /// within the time given, the rest is released, uncounted. Errors of the server are borne; only
    /// those that no waiting would mend end the work.
    pub async fn run(&self, stop: CancellationToken) -> Result<Report> {
        if !(1..=crate::BATCH).contains(&self.concurrency) {
            return invalid(format!("a worker's concurrency is 1 to {}", crate::BATCH));
        }
        let consumer = self.queue.consumer(&self.name, self.lease)?;
        let held = Held::default();
        let keeper = Keeper::start(&*consumer, held.clone(), self.lease);
        let mut shift = Shift {
            worker: self,
            metrics: self.queue.metrics().clone(),
            consumer,
            held,
            running: JoinSet::new(),
            acks: Vec::new(),
            nacks: Vec::new(),
            report: Report::default(),
            errors: 0,
        };
        tracing::info!(worker = shift.consumer.worker(), "the worker starts");
        let worked = shift.work(&stop).await;
        let drained = shift.finish().await;
        keeper.stop();
        tracing::info!(worker = shift.consumer.worker(), report = ?shift.report, "it has stopped");
        worked.and(drained).map(|()| shift.report)
    }
}

/// A handler that ended: its receipt and what it made of the message; none when it was stopped
/// because the lease was lost.
type Ended = (Delivery, Option<Outcome>);

struct Shift<'a> {
    worker: &'a Worker,
    metrics: Metrics,
    consumer: Arc<dyn Consumer>,
    held: Held,
    running: JoinSet<Ended>,
    acks: Vec<Receipt>,
    nacks: Vec<Nack>,
    report: Report,
    errors: u32,
}

impl Shift<'_> {
    async fn work(&mut self, stop: &CancellationToken) -> Result<()> {
        // Kept over turns of the loop: a wait that goes on keeps its place with the server.
        let consumer = Arc::clone(&self.consumer);
        let mut waiting: Option<crate::queue::Answer<'_, ()>> = None;
        while !stop.is_cancelled() {
            self.collect();
            let free = self.worker.concurrency - self.running.len() - self.acks.len();
            // A worker that is full has nothing to ask, until something is finished.
            let settling = !self.acks.is_empty() || !self.nacks.is_empty();
            let mut pause = None;
            if settling || (free > 0 && waiting.is_none()) {
                match self.turn(stop).await {
                    Ok(Turn { more: true, .. }) => continue,
                    Ok(Turn { next_due, idle, .. }) => {
                        if idle && self.worker.until_empty && self.is_over().await? {
                            return Ok(());
                        }
                        let patience = consumer.patience();
                        pause = Some(next_due.map_or(patience, |due| due.min(patience)));
                    }
                    Err(error) => {
                        self.bear(error, stop).await?;
                        continue;
                    }
                }
            }
            let free = self.worker.concurrency > self.running.len() + self.acks.len();
            if let Some(pause) = pause
                && free
                && waiting.is_none()
            {
                waiting = Some(consumer.wait(pause));
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                Some(ended) = self.running.join_next(), if !self.running.is_empty() => {
                    self.ended(ended);
                }
                woken = async { waiting.as_mut().expect("asked only then").await },
                    if waiting.is_some() =>
                {
                    waiting = None;
                    match woken {
                        // Woken with no room left: another worker is woken instead.
                        Ok(()) if !free => drop(self.turn(stop).await),
                        Ok(()) => {}
                        Err(error) => self.bear(error, stop).await?,
                    }
                }
                else => {}
            }
        }
        Ok(())
    }

    /// One exchange with the queue, and new handlers for what it brought.
    async fn turn(&mut self, stop: &CancellationToken) -> Result<Turn> {
        self.settle_nacks().await?;
        let room = self.worker.concurrency - self.running.len();
        // A lease begins when the server grants it: not before this, and perhaps soon after.
        let asked = Instant::now();
        let got = self.consumer.exchange(&self.acks, room).await?;
        self.errors = 0;
        self.account(&got.settled);
        let full = got.deliveries.len() >= room;
        let idle = got.deliveries.is_empty() && self.running.is_empty();
        for delivery in got.deliveries {
            if stop.is_cancelled() {
                // Told to stop while the answer was on its way: nobody has seen these.
                let verdict = Verdict::Release { delay: Duration::ZERO };
                self.nacks.push(Nack { receipt: delivery.receipt, verdict });
            } else {
                self.start(delivery, asked + self.worker.lease);
            }
        }
        Ok(Turn { more: got.more && !full && !got.paused, next_due: got.next_due, idle })
    }

    fn start(&mut self, delivery: Delivery, until: Instant) {
        let lost = CancellationToken::new();
        self.held.add(&delivery.receipt, lost.clone(), until);
        let job = Job { delivery: delivery.clone(), lost: lost.clone() };
        let handler = Arc::clone(&self.worker.handler);
        let metrics = self.metrics.clone();
        self.running.spawn(async move {
            let begin = Instant::now();
            metrics.running.inc();
            // A task of its own, so that a panic ends the handler and nothing else.
            let task = tokio::spawn(async move { handler(job).await });
            let mut task = AbortOnDropHandle::new(task);
            let outcome = tokio::select! {
                done = &mut task => Some(done.unwrap_or_else(panicked)),
                () = lost.cancelled() => {
                    task.abort();
                    None
                }
            };
            metrics.running.dec();
            metrics.handler_seconds.observe(begin.elapsed().as_secs_f64());
            (delivery, outcome)
        });
    }

    /// Takes in all handlers that have ended by now.
    fn collect(&mut self) {
        while let Some(ended) = self.running.try_join_next() {
            self.ended(ended);
        }
    }

    fn ended(&mut self, ended: std::result::Result<Ended, tokio::task::JoinError>) {
        let Ok((delivery, outcome)) = ended else { return };
        let receipt = delivery.receipt.clone();
        let Some(outcome) = outcome else {
            self.held.remove(&receipt);
            self.report.lost += 1;
            self.metrics.leases_lost.inc();
            return;
        };
        let verdict = match outcome {
            Outcome::Ack => {
                self.acks.push(receipt);
                return;
            }
            Outcome::Fail(reason) => {
                Verdict::Fail { delay: self.worker.backoff.after(delivery.failures), reason }
            }
            Outcome::FailAfter(delay, reason) => Verdict::Fail { delay, reason },
            Outcome::Release(delay) => Verdict::Release { delay },
            Outcome::Bury(reason) => Verdict::Bury { reason },
        };
        self.nacks.push(Nack { receipt, verdict });
    }

    async fn settle_nacks(&mut self) -> Result<()> {
        if self.nacks.is_empty() {
            return Ok(());
        }
        let answers = self.consumer.nack(&self.nacks).await?;
        for (nack, answer) in std::mem::take(&mut self.nacks).into_iter().zip(answers) {
            self.held.remove(&nack.receipt);
            let (worker, id) = (self.consumer.worker(), &*nack.receipt.id);
            match (answer, nack.verdict) {
                (Settled::Stale, _) => {
                    self.report.lost += 1;
                    tracing::warn!(worker, id, "settled too late: somebody else may have it");
                }
                (_, Verdict::Release { .. }) => self.report.released += 1,
                (answer, Verdict::Fail { reason, .. } | Verdict::Bury { reason }) => {
                    self.report.failed += 1;
                    if answer == Settled::Buried {
                        tracing::warn!(worker, id, reason, "the message is a dead letter");
                    } else {
                        tracing::info!(worker, id, reason, "the message failed");
                    }
                }
            }
        }
        Ok(())
    }

    fn account(&mut self, settled: &[Settled]) {
        for (receipt, answer) in std::mem::take(&mut self.acks).into_iter().zip(settled) {
            self.held.remove(&receipt);
            if *answer == Settled::Stale {
                self.report.lost += 1;
                let (worker, id) = (self.consumer.worker(), &*receipt.id);
                tracing::warn!(worker, id, "settled too late: somebody else may have it");
            } else {
                self.report.acked += 1;
            }
        }
    }

    async fn is_over(&self) -> Result<bool> {
        match self.worker.queue.stats().await {
            Ok(stats) => Ok(stats.is_empty()),
            Err(error) if error.is_passing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits after an error that may pass, or gives up.
    async fn bear(&mut self, error: Error, stop: &CancellationToken) -> Result<()> {
        if !error.is_passing() {
            return Err(error);
        }
        let pause = ERROR_PAUSE.after(self.errors);
        self.errors += 1;
        let (worker, errors) = (self.consumer.worker(), self.errors);
        tracing::warn!(worker, %error, errors, "the queue cannot be reached");
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => {}
        }
        Ok(())
    }

    /// Lets the running handlers end, settles what is done, and gives the rest back.
    async fn finish(&mut self) -> Result<()> {
        let end = Instant::now() + self.worker.drain;
        while let Ok(Some(ended)) = tokio::time::timeout_at(end, self.running.join_next()).await {
            self.ended(ended);
        }
        // A handler that does not even yield goes on; its message is given back all the same.
        let _ = tokio::time::timeout(ABORT, self.running.shutdown()).await;
        self.settle_nacks().await?;
        let settled = if self.acks.is_empty() {
            Vec::new()
        } else {
            self.consumer.exchange(&self.acks, 0).await?.settled
        };
        self.account(&settled);
        self.report.released += self.consumer.drain(&self.held.receipts()).await?;
        Ok(())
    }
}

struct Turn {
    more: bool,
    next_due: Option<Duration>,
    idle: bool,
}

fn panicked(error: tokio::task::JoinError) -> Outcome {
    let Ok(panic) = error.try_into_panic() else {
        return Outcome::Release(Duration::ZERO);
    };
    let text = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned());
    Outcome::Fail(format!("the handler panicked: {}", text.unwrap_or_default()))
}
