//! The stores behind the ports.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use aiseki_lobby::Millis;

use super::listeners;
use crate::bans::BanStore;
use crate::config::Config;
use crate::conversations::ConversationStore;
use crate::matching::LobbyStore;
use crate::metrics::Metrics;
use crate::push::Push;
use crate::reports::ReportStore;
use crate::rooms::{RoomHub, RoomRules, RoomStore};
use crate::sessions::SessionKey;
use crate::store::embedded::{EmbeddedStore, Settings};
use crate::topics::TopicStore;

/// What a server is built on.
pub(super) struct Stores {
    pub(super) lobby: Arc<dyn LobbyStore>,
    pub(super) topics: Arc<dyn TopicStore>,
    pub(super) bans: Arc<dyn BanStore>,
    pub(super) conversations: Arc<dyn ConversationStore>,
    pub(super) reports: Arc<dyn ReportStore>,
    /// Where people talk, if these stores can do that.
    pub(super) rooms: Option<Arc<dyn RoomStore>>,
    pub(super) session_keys: Vec<SessionKey>,
    /// Brings what was begun to an end and closes the stores, after the last call.
    pub(super) close: Closing,
}

pub(super) type Closing = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Opens the embedded store of a configuration.
pub(super) async fn open_embedded(
    config: &Config,
    metrics: Arc<Metrics>,
    push: Arc<Push>,
    hub: Arc<RoomHub>,
) -> anyhow::Result<Arc<EmbeddedStore>> {
    let settings = Settings {
        data_dir: config.data_dir.clone(),
        durability: config.durability,
        policy: config.policy.clone(),
        rematch_after: rematch_after(config),
        rate_limits: config.rate_limits,
        rooms: room_rules(config),
    };
    let open = move || {
        EmbeddedStore::open(&settings, hub, move |committed| {
            metrics.committed(committed.commands, committed.took);
            listeners::count(&metrics, committed.changes);
            for change in committed.changes {
                listeners::announce(&push, change);
            }
        })
    };
    Ok(Arc::new(tokio::task::spawn_blocking(open).await??))
}

/// What a configuration decides about rooms.
pub(super) fn room_rules(config: &Config) -> RoomRules {
    let Config { rooms, away_timeout, message_limit, .. } = *config;
    RoomRules { rooms, away_timeout, message_limit }
}

/// For how long people who have shared a room meet others first; 0: not at all.
pub(super) fn rematch_after(config: &Config) -> Millis {
    config.rematch_after.unwrap_or(0)
}

/// The embedded store as what a server is built on.
pub(super) fn embedded(store: Arc<EmbeddedStore>) -> Stores {
    Stores {
        lobby: store.clone(),
        topics: store.clone(),
        bans: store.clone(),
        conversations: store.clone(),
        reports: store.clone(),
        rooms: Some(store.clone()),
        session_keys: store.session_keys(),
        close: Box::new(move || {
            Box::pin(async move {
                let _ = tokio::task::spawn_blocking(move || store.close()).await;
            })
        }),
    }
}
