//! What operators can watch. Names and labels are part of the documented interface.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Requests of one route that ended with one status.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RoomTypeLabels {
    room_type: u8,
}

/// All metrics of a server.
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Family<RouteLabels, Histogram>,
    waiting: Family<RoomTypeLabels, Gauge>,
    oldest_wait: Family<RoomTypeLabels, Gauge<f64, AtomicU64>>,
    joins: Counter,
    rooms: Family<KindLabels, Counter>,
    rooms_ended: Counter,
    dropped: Family<ReasonLabels, Counter>,
    time_to_match: Histogram,
    commit_seconds: Histogram,
    commit_commands: Histogram,
    /// Connections open now.
    pub connections: Gauge,
    /// Long polls, streams and sockets open now.
    pub subscriptions: Gauge,
    store_available: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Everything at zero.
    pub fn new() -> Self {
        let metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(|| {
                Histogram::new([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 60.0])
            }),
            waiting: Family::default(),
            oldest_wait: Family::default(),
            joins: Counter::default(),
            rooms: Family::default(),
            rooms_ended: Counter::default(),
            dropped: Family::default(),
            time_to_match: Histogram::new([
                0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0, 300.0,
            ]),
            commit_seconds: Histogram::new([0.0001, 0.0005, 0.001, 0.005, 0.02, 0.1, 0.5, 2.0]),
            commit_commands: Histogram::new([1.0, 2.0, 5.0, 10.0, 50.0, 200.0, 1000.0]),
            connections: Gauge::default(),
            subscriptions: Gauge::default(),
            store_available: Gauge::default(),
        };
        metrics.registered()
    }

    fn registered(mut self) -> Self {
        let registry = self.registry.sub_registry_with_prefix("aiseki");
        registry.register("http_requests", "Requests by route and status", self.requests.clone());
        registry.register(
            "http_request_seconds",
            "Time to the head of the answer by route; long polls count what they waited",
            self.request_seconds.clone(),
        );
        registry.register("waiting_people", "People waiting by room type", self.waiting.clone());
        registry.register(
            "oldest_wait_seconds",
            "How long the person waiting longest has waited, by room type",
            self.oldest_wait.clone(),
        );
        registry.register("joins", "Waits begun", self.joins.clone());
        registry.register("rooms_formed", "Rooms formed by kind", self.rooms.clone());
        registry.register("rooms_ended", "Rooms ended", self.rooms_ended.clone());
        registry.register(
            "waits_dropped",
            "Waits that ended without a seat, by reason",
            self.dropped.clone(),
        );
        registry.register(
            "time_to_match_seconds",
            "From the beginning of a wait to its seat",
            self.time_to_match.clone(),
        );
        registry.register("store_commit_seconds", "Time of a commit", self.commit_seconds.clone());
        registry.register(
            "store_commit_commands",
            "Commands answered by one commit",
            self.commit_commands.clone(),
        );
        registry.register("http_connections", "Connections open", self.connections.clone());
        registry.register(
            "push_subscriptions",
            "Long polls, streams and sockets open",
            self.subscriptions.clone(),
        );
        registry.register(
            "store_available",
            "1 when the store can be asked, 0 when it is away",
            self.store_available.clone(),
        );
        self
    }

    /// A request was answered.
    pub fn request(&self, method: &str, route: &str, status: u16, took: Duration) {
        let route = route.to_owned();
        let labels = RequestLabels { method: method.to_owned(), route: route.clone(), status };
        self.requests.get_or_create(&labels).inc();
        self.request_seconds.get_or_create(&RouteLabels { route }).observe(took.as_secs_f64());
    }

    /// Somebody began to wait.
    pub fn joined(&self) {
        self.joins.inc();
    }

    /// A room was formed for people who had waited so long.
    pub fn room_formed(&self, kind: &'static str, waits: impl Iterator<Item = Duration>) {
        self.rooms.get_or_create(&KindLabels { kind }).inc();
        waits.for_each(|wait| self.time_to_match.observe(wait.as_secs_f64()));
    }

    /// A room ended.
    pub fn room_ended(&self) {
        self.rooms_ended.inc();
    }

    /// A wait ended without a seat.
    pub fn wait_dropped(&self, reason: &'static str) {
        self.dropped.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// The store has committed.
    pub fn committed(&self, commands: usize, took: Duration) {
        self.commit_seconds.observe(took.as_secs_f64());
        self.commit_commands.observe(f64::from(u32::try_from(commands).unwrap_or(u32::MAX)));
    }

    /// How many wait for rooms of this type now, and for how long the oldest has waited.
    pub fn set_waiting(&self, room_type: u8, people: usize, oldest: Duration) {
        let labels = RoomTypeLabels { room_type };
        self.waiting.get_or_create(&labels).set(i64::try_from(people).unwrap_or(i64::MAX));
        self.oldest_wait.get_or_create(&labels).set(oldest.as_secs_f64());
    }

    /// Whether the store can be asked.
    pub fn set_store_available(&self, available: bool) {
        self.store_available.set(i64::from(available));
    }

    /// Everything in the text format of OpenMetrics.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string can be written to");
        text
    }
}
