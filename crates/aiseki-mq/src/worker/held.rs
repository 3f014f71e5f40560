//! What a worker has in hand, and the thread that keeps its leases alive.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::message::Receipt;
use crate::queue::{Consumer, Renewer};

/// The shortest time between two looks for messages without a lease.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// The deliveries that a worker has; copies share them.
#[derive(Clone, Default)]
pub(super) struct Held {
    entries: Arc<Mutex<HashMap<Receipt, Entry>>>,
}

struct Entry {
    lost: CancellationToken,
    /// Until when nobody else can have it, as far as this process knows.
    until: Instant,
}

impl Held {
    pub(super) fn add(&self, receipt: &Receipt, lost: CancellationToken, until: Instant) {
        let entry = Entry { lost, until };
        self.lock().insert(receipt.clone(), entry);
    }

    pub(super) fn remove(&self, receipt: &Receipt) {
        self.lock().remove(receipt);
    }

    pub(super) fn receipts(&self) -> Vec<Receipt> {
        self.lock().keys().cloned().collect()
    }

    fn renewed(&self, receipts: &[Receipt], alive: &[bool], until: Instant) -> u64 {
        let mut entries = self.lock();
        let mut lost = 0;
        for (receipt, alive) in receipts.iter().zip(alive) {
            if let Some(entry) = entries.get_mut(receipt) {
                if *alive {
                    entry.until = until;
                } else {
                    lost += u64::from(!entry.lost.is_cancelled());
                    entry.lost.cancel();
                }
            }
        }
        lost
    }

    /// Without an answer from the server a lease counts as lost when its time is over.
    fn expire(&self, now: Instant) {
        for entry in self.lock().values() {
            if entry.until <= now {
                entry.lost.cancel();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Receipt, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that renews. It has a runtime and connections of its own: a handler that never
/// yields blocks its runtime, and with it everything that lives there.
pub(super) struct Keeper {
    stop: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Keeper {
    pub(super) fn start(consumer: &dyn Consumer, held: Held, lease: Duration) -> Self {
        let (renewer, worker) = (consumer.renewer(), consumer.worker().to_owned());
        let stop = CancellationToken::new();
        let token = stop.clone();
        let thread = std::thread::Builder::new().name("mq-leases".to_owned()).spawn(move || {
            match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime.block_on(keep(renewer, &worker, held, lease, token)),
                Err(error) => tracing::error!(worker, %error, "leases cannot be renewed"),
            }
        });
        Self { stop, thread: thread.ok() }
    }

    pub(super) fn stop(mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn keep(
    mut renewer: Box<dyn Renewer>,
    worker: &str,
    held: Held,
    lease: Duration,
    stop: CancellationToken,
) {
    let mut swept = Instant::now();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(lease / 3) => {}
        }
        let receipts = held.receipts();
        let begin = Instant::now();
        // An operation that repeats itself for longer than the lease is of no use here.
        let renewing = tokio::time::timeout(lease / 3, renewer.renew(&receipts));
        match renewing.await {
            Ok(Ok(alive)) => {
                let lost = held.renewed(&receipts, &alive, begin + lease);
                if lost > 0 {
                    tracing::warn!(worker, lost, "leases are lost");
                }
            }
            Ok(Err(error)) => tracing::warn!(worker, %error, "leases are not renewed"),
            Err(_) => tracing::warn!(worker, "leases are not renewed in time"),
        }
        held.expire(Instant::now());
        if swept.elapsed() >= SWEEP_EVERY.max(lease) {
            swept = Instant::now();
            match tokio::time::timeout(lease, renewer.sweep()).await {
                Ok(Ok(found)) if found > 0 => {
                    tracing::warn!(worker, found, "messages without a lease");
                }
                Ok(Err(error)) => tracing::debug!(worker, %error, "no sweep"),
                Ok(Ok(_)) | Err(_) => {}
            }
        }
    }
}
