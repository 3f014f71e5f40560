//! The wiring: the only place that names adapters.

mod doctor;
mod listeners;
mod presence;
mod shared;
mod stores;
mod transfer;

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aiseki_lobby::{Queue, SessionId, TopicId};
use anyhow::Context as _;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::doctor::{Chapter, examine};
use self::shared::{NotReady, SharedStores};
use self::stores::{Closing, Stores};
pub use self::transfer::{Imported, Origin, export, import};
use crate::bans::Bans;
use crate::config::Config;
use crate::http::{self, App, Listener, Outside, Services};
use crate::matching::{Join, Matching};
use crate::metrics::Metrics;
use crate::operators::Operators;
use crate::push::Push;
use crate::rooms::{RoomHub, Rooms};
use crate::sessions::Sessions;
use crate::store::embedded::{self, EmbeddedStore};
use crate::topics::{Title, Topics};

/// Connections get so long to end after the server was told to.
const DRAIN: Duration = Duration::from_secs(8);
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
    /// Opens the stores, binds the port and starts to serve. With shared stores that are away it serves
    /// that it is not ready, and goes on trying.
    pub async fn start(config: Config) -> anyhow::Result<Self> {
        let metrics = Arc::new(Metrics::new());
        let (closed, closings) = mpsc::unbounded_channel();
        let push = Push::new(move |session| {
            // The receiver lives as long as the server.
            let _ = closed.send(session);
        });
        let draining = CancellationToken::new();
        let hub = RoomHub::new();
        let opened = Opened::open(&config, &metrics, &push, &hub).await?;
        // The port comes after the store: of two processes that want both, the second is told of the
        // directory, which is the reason that matters.
        let listener = Listener::bind(config.listen, max_connections(config.max_connections))
            .with_context(|| format!("cannot listen on {}", config.listen))?;
        let address = listener.address().context("the port is not known")?;
        let app = App::new(http::starting_router(&config.base_path));
        let building = Building {
            config,
            metrics: Arc::clone(&metrics),
            push,
            hub,
            closings,
            draining: draining.clone(),
            app: app.clone(),
        };
        // What can be ready at once is, before anybody is told that the server listens.
        let running = match opened {
            Opened::Ready(stores, shared) => {
                let running = building.build(stores, shared).await?;
                tokio::spawn(async move { Some(running) })
            }
            Opened::Later(shared) => tokio::spawn(async move {
                let stores = shared.prepare_patiently(&building.draining).await?;
                tracing::info!("the stores are there: ready");
                match building.build(stores, Some(shared)).await {
                    Ok(running) => Some(running),
                    Err(error) => {
                        tracing::error!(%error, "the stores went away again: restart this server");
                        None
                    }
                }
            }),
        };
        let serving = http::serve(listener, app, metrics, draining.clone());
        let drained = draining.clone();
        let ended = tokio::spawn(async move {
            tokio::pin!(serving);
            let patience = async {
                drained.cancelled().await;
                tokio::time::sleep(DRAIN).await;
            };
            tokio::pin!(patience);
            let cut = || tracing::warn!("some connections did not end in time and are cut");
            tokio::select! {
                () = &mut serving => {}
                () = &mut patience => cut(),
            }
            let Ok(Some(running)) = running.await else { return };
            running.sockets.close();
            tokio::select! {
                () = running.sockets.wait() => {}
                () = &mut patience => cut(),
            }
            running.presence.iter().for_each(tokio::task::JoinHandle::abort);
            for close in running.closings {
                close().await;
            }
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

/// The stores of a configuration.
enum Opened {
    /// They are there.
    Ready(Stores, Option<SharedStores>),
    /// Shared stores that are away.
    Later(SharedStores),
}

impl Opened {
    async fn open(
        config: &Config,
        metrics: &Arc<Metrics>,
        push: &Arc<Push>,
        hub: &Arc<RoomHub>,
    ) -> anyhow::Result<Self> {
        let (metrics, push) = (Arc::clone(metrics), Arc::clone(push));
        let (Some(redis), Some(database)) = (&config.redis_url, &config.database_url) else {
            let store = stores::open_embedded(config, metrics, push, Arc::clone(hub)).await?;
            return Ok(Self::Ready(stores::embedded(store), None));
        };
        let shared = SharedStores::new(config, redis, database, metrics, push, Arc::clone(hub))?;
        match shared.prepare().await {
            Ok(stores) => Ok(Self::Ready(stores, Some(shared))),
            Err(NotReady::Unfit(why)) => Err(why),
            Err(NotReady::Away(store)) => {
                tracing::warn!("{store} is away: not ready until it is there");
                Ok(Self::Later(shared))
            }
        }
    }
}

/// Everything that the services are made of besides the stores.
struct Building {
    config: Config,
    metrics: Arc<Metrics>,
    push: Arc<Push>,
    hub: Arc<RoomHub>,
    closings: mpsc::UnboundedReceiver<SessionId>,
    draining: CancellationToken,
    app: App,
}

/// What runs beside the connections.
struct Running {
    sockets: TaskTracker,
    presence: [tokio::task::JoinHandle<()>; 2],
    closings: Vec<Closing>,
}

impl Building {
    /// Makes the services and serves them from now on.
    async fn build(self, stores: Stores, shared: Option<SharedStores>) -> anyhow::Result<Running> {
        let Self { config, metrics, push, hub, closings, draining, app } = self;
        let Stores { lobby, topics, bans, conversations, reports, rooms, session_keys, close } =
            stores;
        let rules = stores::room_rules(&config);
        let rooms = rooms.filter(|_| rules.rooms).map(|store| Rooms::new(store, hub));
        let topics = Arc::new(Topics::load(topics).await?);
        let bans = Arc::new(Bans::load(bans).await?);
        let operators =
            Operators::new(topics.clone(), bans.clone(), lobby.clone(), conversations.clone());
        operators.reconcile().await?;
        if config.demo {
            add_demonstration(&topics).await?;
        }
        let mut closing = Vec::new();
        if let Some(shared) = shared {
            closing.push(shared.run(topics.clone(), bans.clone(), operators.clone()));
        }
        closing.push(close);
        let sockets = TaskTracker::new();
        let every = Duration::from_millis((config.policy.presence_timeout / 3).max(1));
        let services = Arc::new(Services {
            matching: Matching::new(lobby, topics.clone(), bans.clone()),
            operators,
            topics,
            bans,
            sessions: Sessions::new(session_keys),
            conversations,
            reports,
            rooms: rooms.clone(),
            push: push.clone(),
            metrics,
            draining,
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
        let matching = services.matching.clone();
        let presence = [
            tokio::spawn(presence::keep_present(matching, push, every, closings)),
            tokio::spawn(presence::keep_in_rooms(rooms)),
        ];
        app.ready(http::router(services));
        Ok(Running { sockets, presence, closings: closing })
    }
}

/// Runs a server until the process is told to end.
pub async fn serve(config: Config) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("no signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("no signals")?;
    let base_path = config.base_path.clone();
    let store = match config.redis_url {
        Some(_) => format!("shared, namespace {}", config.namespace),
        None => config.data_dir.display().to_string(),
    };
    let server = Server::start(config).await?;
    tracing::info!(store, "listening on http://{}{base_path}", server.address());
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
        let store = stores::open_embedded(
            config,
            Arc::new(Metrics::new()),
            Push::new(|_| {}),
            RoomHub::new(),
        )
        .await?;
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
        match self.matching.join(Join { session, queue, address, resume: None }).await? {
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
    let serving = http::serve(
        listener,
        App::new(http::empty_router()),
        Arc::new(Metrics::new()),
        draining.clone(),
    );
    let serving = tokio::spawn(serving);
    writeln!(std::io::stderr().lock(), "listening on http://{address}/")?;
    terminate.recv().await;
    draining.cancel();
    let _ = tokio::time::timeout(DRAIN, serving).await;
    Ok(())
}

/// Gives an empty store something to choose.
async fn add_demonstration(topics: &Topics) -> anyhow::Result<()> {
    if !topics.all().is_empty() {
        return Ok(());
    }
    let titles = DEMONSTRATION.map(|title| Title::try_from(title.to_owned()));
    let added = topics.add_first(titles.into_iter().collect::<Result<_, _>>()?).await?;
    if added > 0 {
        tracing::info!(
            topics = added,
            "the store was empty: demonstration topics were added (--no-demo leaves it empty)"
        );
    }
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
