//! What is counted in this process.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Counters of one queue in this process; copies count together.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// Messages accepted.
    pub published: Counter,
    /// Messages refused as duplicates, by id or unique key.
    pub duplicates: Counter,
    /// Calls refused because the queue or the server's memory was full.
    pub refused: Counter,
    /// Deliveries received.
    pub received: Counter,
    /// Deliveries acked.
    pub acked: Counter,
    /// Deliveries given back as failed.
    pub failed: Counter,
    /// Deliveries given back uncounted.
    pub released: Counter,
    /// Messages that this process made dead letters by a nack.
    pub buried: Counter,
    /// Acks and nacks that came too late.
    pub stale: Counter,
    /// Leases lost while the handler ran.
    pub leases_lost: Counter,
    /// Connections that had to be made again.
    pub reconnects: Counter,
    /// Handlers running now.
    pub running: Gauge,
    /// How long handlers run, in seconds.
    pub handler_seconds: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            published: Counter::default(),
            duplicates: Counter::default(),
            refused: Counter::default(),
            received: Counter::default(),
            acked: Counter::default(),
            failed: Counter::default(),
            released: Counter::default(),
            buried: Counter::default(),
            stale: Counter::default(),
            leases_lost: Counter::default(),
            reconnects: Counter::default(),
            running: Gauge::default(),
            handler_seconds: Histogram::new(exponential_buckets(0.001, 4.0, 10)),
        }
    }
}

impl Metrics {
    /// Registers everything, with names that begin with `mq_`; give the registry a prefix or
    /// labels of its own to tell queues apart.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("mq");
        let counters = [
            ("published", "Messages accepted", &self.published),
            ("duplicates", "Messages refused as duplicates", &self.duplicates),
            ("refused", "Publishes refused because something was full", &self.refused),
            ("received", "Deliveries received", &self.received),
            ("acked", "Deliveries acked", &self.acked),
            ("failed", "Deliveries given back as failed", &self.failed),
            ("released", "Deliveries given back uncounted", &self.released),
            ("buried", "Messages made dead letters by a nack", &self.buried),
            ("stale", "Acks and nacks that came too late", &self.stale),
            ("leases_lost", "Leases lost while the handler ran", &self.leases_lost),
            ("reconnects", "Connections made again", &self.reconnects),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        registry.register("running", "Handlers running now", self.running.clone());
        let seconds = self.handler_seconds.clone();
        registry.register("handler_seconds", "How long handlers run", seconds);
    }
}
