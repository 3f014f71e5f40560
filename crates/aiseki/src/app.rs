//! The wiring: the only place that names adapters.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aiseki_lobby::{Change, Queue, SessionId, Sign, TopicId};
use anyhow::Context as _;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bans::Bans;
use crate::config::Config;
use crate::http::{self, Listener, Outside, Services};
use crate::matching::{Join, Matching};
use crate::metrics::Metrics;
use crate::operators::Operators;
use crate::push::Push;
use crate::sessions::Sessions;
use crate::store::embedded::{self, Committed, EmbeddedStore, Settings};
use crate::topics::{Title, Topics};

/// Connections get so long to end after the server was told to.
const DRAIN: Duration = Duration::from_secs(8);
/// People touched in one call to the store.
const TOUCHED_AT_ONCE: usize = 1000;
/// Files that the process needs beside its connections.
const OTHER_FILES: u64 = 64;

/// What an empty embedded store offers, so that there is something to choose.
const DEMONSTRATION: [&str; 6] = [
    "今日あったいいこと",
    "A book that changed my mind",
    "旅に出るならどこへ",
    "What are you cooking tonight?",
    "最近ハマっている音楽",
    "Learning something new",
];

/// A server that runs in this process.
pub struct Server {
    address: SocketAddr,
    draining: CancellationToken,
    ended: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Opens the store, binds the port and starts to serve.
    pub async fn start(config: Config) -> anyhow::Result<Self> {
        let metrics = Arc::new(Metrics::new());
        let (closed, closings) = mpsc::unbounded_channel();
        let push = Push::new(move |session| {
            // The receiver lives as long as the server.
            let _ = closed.send(session);
        });
        let store = open_store(&config, Arc::clone(&metrics), Arc::clone(&push)).await?;
        let topics = Arc::new(Topics::load(store.clone()).await?);
        let bans = Arc::new(Bans::load(store.clone()).await?);
        let operators = Operators::new(topics.clone(), bans.clone(), store.clone(), store.clone());
        // The port comes after the store: of two processes that want both, the second is told of the
        // directory, which is the reason that matters.
        let listener = Listener::bind(config.listen, max_connections(config.max_connections))
            .with_context(|| format!("cannot listen on {}", config.listen))?;
        let address = listener.address().context("the port is not known")?;
        operators.reconcile().await?;
        if config.demo {
            add_demonstration(&topics).await?;
        }
        let draining = CancellationToken::new();
        let sockets = TaskTracker::new();
        let services = Arc::new(Services {
            matching: Matching::new(store.clone(), topics.clone(), bans.clone()),
            operators,
            topics,
            bans,
            sessions: Sessions::new(store.session_keys()),
            conversations: store.clone(),
            push: push.clone(),
            metrics: Arc::clone(&metrics),
            draining: draining.clone(),
            sockets: sockets.clone(),
            outside: Outside {
                base_path: config.base_path,
                admin_token: config.admin_token,
                trusted_proxies: config.trusted_proxies,
                allowed_origins: config.allowed_origins,
                max_wait: Duration::from_millis(config.max_wait),
                room_types: config.policy.room_types.iter().map(|r| r.size).collect(),
            },
        });
        let presence = tokio::spawn(keep_present(
            services.matching.clone(),
            push,
            Duration::from_millis((config.policy.presence_timeout / 3).max(1)),
            closings,
        ));
        let serving = http::serve(listener, http::router(services), metrics, draining.clone());
        let drained = draining.clone();
        let ended = tokio::spawn(async move {
            let all = async {
                serving.await;
                sockets.close();
                sockets.wait().await;
            };
            tokio::pin!(all);
            tokio::select! {
                () = &mut all => {}
                () = async { drained.cancelled().await; tokio::time::sleep(DRAIN).await } => {
                    tracing::warn!("some connections did not end in time and are cut");
                }
            }
            presence.abort();
            let _ = tokio::task::spawn_blocking(move || store.close()).await;
        });
        Ok(Self { address, draining, ended })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tells it to end: nothing new is accepted, open long polls and streams end with an answer.
    pub fn stop(&self) {
        self.draining.cancel();
    }

    /// Waits until it has ended and the store is closed.
    pub async fn ended(self) {
        let _ = self.ended.await;
    }
}

/// Runs a server until the process is told to end.
pub async fn serve(config: Config) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("no signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("no signals")?;
    let base_path = config.base_path.clone();
    let data_dir = config.data_dir.clone();
    let server = Server::start(config).await?;
    tracing::info!(
        data_dir = %data_dir.display(),
        "listening on http://{}{base_path}",
        server.address()
    );
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("ending: people keep their places in the store");
    server.stop();
    server.ended().await;
    tracing::info!("ended");
    Ok(())
}

/// The services of a store that no server has open: for tools that fill one.
#[derive(Clone)]
pub struct Offline {
    store: Arc<EmbeddedStore>,
    topics: Arc<Topics>,
    matching: Matching,
}

impl Offline {
    /// Opens the store of a configuration.
    pub async fn open(config: &Config) -> anyhow::Result<Self> {
        let store = open_store(config, Arc::new(Metrics::new()), Push::new(|_| {})).await?;
        let topics = Arc::new(Topics::load(store.clone()).await?);
        let bans = Arc::new(Bans::load(store.clone()).await?);
        let matching = Matching::new(store.clone(), topics.clone(), bans);
        Ok(Self { store, topics, matching })
    }

    /// Adds an active topic, and returns its number.
    pub async fn add_topic(&self, title: String) -> anyhow::Result<TopicId> {
        Ok(self.topics.add(Title::try_from(title)?, true).await?.id)
    }

    /// Lets somebody wait.
    pub async fn join(&self, session: SessionId, queue: Queue) -> anyhow::Result<()> {
        let address = Ipv4Addr::LOCALHOST.into();
        match self.matching.join(Join { session, queue, address }).await? {
            Ok(_) => Ok(()),
            Err(why) => anyhow::bail!("somebody could not join: {why:?}"),
        }
    }

    /// Commits everything and closes the store.
    pub async fn close(self) {
        let store = self.store;
        let _ = tokio::task::spawn_blocking(move || store.close()).await;
    }
}

/// Copies the store of a directory into a new file, while a server has it open or none does. Returns
/// the bytes of the copy.
pub fn backup(data_dir: &Path, file: &Path) -> anyhow::Result<u64> {
    Ok(embedded::backup(data_dir, file)?)
}

/// Serves a handler that does nothing, through everything that lies between a connection and a
/// handler: the measure for what the handlers cost. Says on standard error where it listens.
pub async fn serve_nothing() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("no signals")?;
    let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 20_000)?;
    let address = listener.address()?;
    let draining = CancellationToken::new();
    let serving =
        http::serve(listener, http::empty_router(), Arc::new(Metrics::new()), draining.clone());
    let serving = tokio::spawn(serving);
    writeln!(std::io::stderr().lock(), "listening on http://{address}/")?;
    terminate.recv().await;
    draining.cancel();
    let _ = tokio::time::timeout(DRAIN, serving).await;
    Ok(())
}

async fn open_store(
    config: &Config,
    metrics: Arc<Metrics>,
    push: Arc<Push>,
) -> anyhow::Result<Arc<EmbeddedStore>> {
    let settings = Settings {
        data_dir: config.data_dir.clone(),
        durability: config.durability,
        policy: config.policy.clone(),
        rate_limits: config.rate_limits,
    };
    let open = move || {
        EmbeddedStore::open(&settings, move |committed| {
            count(&metrics, committed);
            for change in committed.changes {
                announce(&push, change);
            }
        })
    };
    Ok(Arc::new(tokio::task::spawn_blocking(open).await??))
}

fn count(metrics: &Metrics, committed: &Committed<'_>) {
    metrics.committed(committed.commands, committed.took);
    for change in committed.changes {
        match change {
            Change::Entered { .. } => metrics.joined(),
            Change::Reserved(reservation) => {
                let waited = |since: u64| reservation.formed_at.saturating_sub(since);
                let waits = reservation.people.iter().map(|person| waited(person.since));
                metrics.room_formed(reservation.kind.as_str(), waits.map(Duration::from_millis));
            }
            Change::Dropped { reason, .. } => metrics.wait_dropped(reason.as_str()),
            Change::Ended { .. } => metrics.room_ended(),
            Change::Returned { .. } | Change::Seated { .. } | Change::Vacated { .. } => {}
        }
    }
}

fn announce(push: &Push, change: &Change) {
    match change {
        Change::Entered { session, .. }
        | Change::Dropped { session, .. }
        | Change::Returned { session, .. }
        | Change::Vacated { session, .. } => push.announce(*session),
        Change::Seated { people, .. } | Change::Ended { people, .. } => {
            for session in people {
                push.announce(*session);
            }
        }
        // Nobody is told of a room before it is written.
        Change::Reserved(_) => {}
    }
}

/// People who hold a connection open are present, and those who closed it are soon not.
async fn keep_present(
    matching: Matching,
    push: Arc<Push>,
    every: Duration,
    mut closings: mpsc::UnboundedReceiver<SessionId>,
) {
    let mut interval = tokio::time::interval(every);
    let mut closed = Vec::new();
    loop {
        let touched = tokio::select! {
            _ = interval.tick() => touch_all(&matching, &push).await,
            count = closings.recv_many(&mut closed, TOUCHED_AT_ONCE) => match count {
                0 => return,
                _ => matching.touch(std::mem::take(&mut closed), Sign::Closed).await,
            },
        };
        // While the store is away nobody is dropped, and afterwards presence starts anew.
        let _ = touched;
    }
}

async fn touch_all(matching: &Matching, push: &Push) -> Result<(), crate::port::Unavailable> {
    let connected = push.connected();
    for some in connected.chunks(TOUCHED_AT_ONCE) {
        matching.touch(some.to_vec(), Sign::Present).await?;
    }
    Ok(())
}

/// Gives an empty store something to choose.
async fn add_demonstration(topics: &Topics) -> anyhow::Result<()> {
    if !topics.all().is_empty() {
        return Ok(());
    }
    for title in DEMONSTRATION {
        topics.add(Title::try_from(title.to_owned())?, true).await?;
    }
    tracing::info!(
        topics = DEMONSTRATION.len(),
        "the store was empty: demonstration topics were added (--no-demo leaves it empty)"
    );
    Ok(())
}

/// Raises the limit on open files as far as the system allows, and serves no more connections than
/// fit into it.
fn max_connections(wanted: usize) -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the limit on open files stays");
    }
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let room = usize::try_from(files.saturating_sub(OTHER_FILES).max(1)).unwrap_or(usize::MAX);
    if room < wanted {
        tracing::warn!(
            connections = room,
            "the system's limit on open files allows fewer connections than are set"
        );
    }
    wanted.min(room)
}
