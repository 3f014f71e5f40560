//! The shared store: Redis for who waits, PostgreSQL for who sits where, and what every server does
//! on both.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aiseki_lobby::Policy;
use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::listeners;
use super::stores::{self, Stores};
use crate::bans::Bans;
use crate::config::{Config, Eviction, Secret};
use crate::metrics::Metrics;
use crate::operators::Operators;
use crate::port::Unavailable;
use crate::push::Push;
use crate::rooms::{RoomHub, RoomRules};
use crate::shared::{Keeper, Recorder, SharedLobby, SharedRooms};
use crate::store::postgres::{MigrateError, Notice, PostgresSettings, PostgresStore};
use crate::store::redis::{CheckError, Listeners, RedisStore, Settings};
use crate::topics::Topics;

/// A join that completes a room holds its answer for so long, until the room is written.
const HOLD: Duration = Duration::from_millis(250);
/// How long to wait before the stores are tried again at the start.
const PAUSE: Duration = Duration::from_millis(500);
/// How often topics and bans are read again although nobody said that they changed.
const REFRESH: Duration = Duration::from_secs(10);
/// A recorder that is told to end has so long to write what it has taken.
const LAST_ROOMS: Duration = Duration::from_secs(4);

/// The two stores, of which nobody knows yet whether they are there.
pub(super) struct SharedStores {
    waiting: Arc<RedisStore>,
    records: Arc<PostgresStore>,
    lobby: Arc<SharedLobby>,
    recorder: Arc<Recorder>,
    keeper: Arc<Keeper>,
    rooms: Arc<SharedRooms>,
    policy: Policy,
    rules: RoomRules,
}

/// Why the stores cannot be used yet, or never.
pub(super) enum NotReady {
    /// One of them is away.
    Away(&'static str),
    /// One of them is there and not fit: this is for an operator.
    Unfit(anyhow::Error),
}

impl SharedStores {
    /// The stores at these places.
    pub(super) fn new(
        config: &Config,
        redis_url: &Secret,
        database_url: &Secret,
        metrics: Arc<Metrics>,
        push: Arc<Push>,
        hub: Arc<RoomHub>,
    ) -> anyhow::Result<Self> {
        let rules = stores::room_rules(config);
        let records = PostgresStore::open(&PostgresSettings::new(database_url.expose()))
            .context("the database URL cannot be used")?;
        let records = Arc::new(records);
        let lobby = Arc::new(OnceLock::<Arc<SharedLobby>>::new());
        let connected = rules.rooms.then(|| Arc::clone(&hub));
        let settings = Settings {
            server: aiseki_mq::Server::new(redis_url.expose())?,
            namespace: config.namespace.clone(),
            policy: config.policy.clone(),
            rate_limits: config.rate_limits,
            rooms: rules,
            rematch_after: stores::rematch_after(config),
            eviction_accepted: config.redis_eviction == Eviction::Accept,
            virtual_time: None,
        };
        let (told, all, seated) = (Arc::clone(&push), Arc::clone(&push), Arc::clone(&lobby));
        let listeners = Listeners {
            changes: Box::new(move |changes| listeners::count(&metrics, changes)),
            changed: Box::new(move |session| told.announce(session)),
            seated: Box::new(move |people| {
                if let Some(lobby) = seated.get() {
                    lobby.seated(people);
                }
            }),
            missed: Box::new(move || {
                for session in all.connected() {
                    all.announce(session);
                }
            }),
            room: Box::new(move |news| match news {
                Some((room, signal)) => hub.tell(room, signal),
                None => hub.tell_all(),
            }),
        };
        let waiting = Arc::new(RedisStore::new(settings, listeners)?);
        let shared = Arc::new(SharedLobby::new(waiting.clone(), records.clone(), HOLD, connected));
        // Nobody else sets it.
        let _ = lobby.set(Arc::clone(&shared));
        let recorder =
            Recorder::new(waiting.clone(), waiting.clone(), records.clone(), shared.clone());
        let (heard, missed) = (Arc::clone(&waiting), push);
        let keeper = Arc::new(Keeper::new(
            waiting.clone(),
            records.clone(),
            shared.clone(),
            waiting.tick_every(),
            move || heard.last_heard(),
            move || {
                for session in missed.connected() {
                    missed.announce(session);
                }
            },
        ));
        let rooms = Arc::new(SharedRooms::new(
            waiting.clone(),
            waiting.clone(),
            records.clone(),
            records.clone(),
        ));
        let policy = config.policy.clone();
        Ok(Self { waiting, records, lobby: shared, recorder, keeper, rooms, policy, rules })
    }

    /// Looks whether the stores are there and fit, and makes them ready.
    pub(super) async fn prepare(&self) -> Result<Stores, NotReady> {
        match self.waiting.check().await {
            Ok(()) => {}
            Err(CheckError::Away) => return Err(NotReady::Away("Redis")),
            Err(unfit) => return Err(NotReady::Unfit(unfit.into())),
        }
        let records = &self.records;
        match records.migrate().await {
            Ok(()) => {}
            Err(MigrateError::Unavailable(_)) => return Err(NotReady::Away("PostgreSQL")),
            Err(error) => return Err(NotReady::Unfit(error.into())),
        }
        let session_keys =
            records.session_keys().await.map_err(|Unavailable| NotReady::Away("PostgreSQL"))?;
        let begun = async {
            self.waiting.begin().await?;
            self.lobby.end_abolished(&self.policy).await?;
            self.keeper.check_seats().await
        };
        begun.await.map_err(|Unavailable| NotReady::Away("Redis"))?;
        self.recorder.feel().await;
        Ok(Stores {
            lobby: self.lobby.clone(),
            topics: records.clone(),
            bans: records.clone(),
            conversations: records.clone(),
            rooms: Some(self.rooms.clone()),
            reports: records.clone(),
            session_keys,
            close: Box::new(|| Box::pin(async {})),
        })
    }

    /// The same, again and again until they are; `None` when told to stop.
    pub(super) async fn prepare_patiently(&self, stop: &CancellationToken) -> Option<Stores> {
        let mut said = None;
        loop {
            let why = match self.prepare().await {
                Ok(stores) => return Some(stores),
                Err(NotReady::Away(store)) => format!("{store} is away"),
                Err(NotReady::Unfit(error)) => format!("{error:#}"),
            };
            if said.as_ref() != Some(&why) {
                tracing::warn!("not ready: {why}; trying again");
                said = Some(why);
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    /// Does what every server does, from now on until the stores are closed.
    pub(super) fn run(
        &self,
        topics: Arc<Topics>,
        bans: Arc<Bans>,
        operators: Operators,
    ) -> super::stores::Closing {
        let (recorder, keeper) = (Arc::clone(&self.recorder), Arc::clone(&self.keeper));
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&recorder).pulse());
        tasks.spawn(Arc::clone(&keeper).keep());
        tasks.spawn(Arc::clone(&keeper).keep_seats());
        tasks.spawn(keeper.keep_endings());
        if self.rules.rooms {
            tasks.spawn(Arc::clone(&self.rooms).keep_away());
        }
        tasks.spawn(keep_known(Arc::clone(&self.records), topics, bans, operators));
        let stop = CancellationToken::new();
        let recording = tokio::spawn(recorder.record(stop.clone()));
        let waiting = Arc::clone(&self.waiting);
        Box::new(move || {
            Box::pin(async move {
                stop.cancel();
                if tokio::time::timeout(LAST_ROOMS, recording).await.is_err() {
                    tracing::warn!("rooms that this server has taken are left to the others");
                }
                waiting.give_back().await;
                tasks.shutdown().await;
            })
        })
    }
}

/// Keeps topics and bans as the database has them, and the waiting people as these say.
async fn keep_known(
    records: Arc<PostgresStore>,
    topics: Arc<Topics>,
    bans: Arc<Bans>,
    operators: Operators,
) {
    let mut notices = records.notices();
    // Whether somebody may still wait who should not.
    let mut behind = true;
    loop {
        let notice = tokio::select! {
            notice = notices.recv() => notice.unwrap_or(Notice::Reconnected),
            () = tokio::time::sleep(REFRESH) => Notice::Reconnected,
        };
        let news = match notice {
            Notice::Topics => topics.refresh().await,
            Notice::Bans => bans.refresh().await,
            Notice::Reconnected => {
                // Both, whether or not the first has news.
                let (topics, bans) = (topics.refresh().await, bans.refresh().await);
                topics.and_then(|topics| bans.map(|bans| topics || bans))
            }
        };
        behind |= news == Ok(true);
        if behind {
            // While Redis is away nobody can be taken out: the next round does it.
            behind = operators.reconcile().await.is_err();
        }
    }
}
