use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aiseki::bans::BanStore;
use aiseki::config::Durability;
use aiseki::conversations::ConversationStore;
use aiseki::matching::LobbyStore;
use aiseki::rate_limit::RateLimits;
use aiseki::reports::ReportStore;
use aiseki::rooms::{RoomHub, RoomRules};
use aiseki::store::embedded::{EmbeddedStore, Settings};
use aiseki::topics::TopicStore;
use aiseki_lobby::{Millis, Policy};
use aiseki_testkit::Postgres;

use super::shared::SharedStore;
use crate::harness::Directory;

/// All ports of one store.
pub(crate) trait Store:
    LobbyStore + TopicStore + BanStore + ConversationStore + ReportStore
{
    /// Ends it as a server ends it that is told to.
    fn close(&self);
}

/// What a store is told about seating.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    pub(crate) policy: Policy,
    pub(crate) limits: Option<RateLimits>,
    pub(crate) rooms: RoomRules,
    pub(crate) rematch_after: Millis,
}

/// Where a store keeps its data; empty at first, and the same when it is opened again.
pub(crate) trait Place: Send + Sync {
    fn open(&self, rules: Rules) -> Opening<'_>;
}

pub(crate) type Opening<'a> = Pin<Box<dyn Future<Output = Arc<dyn Store>> + Send + 'a>>;

pub(crate) fn embedded() -> Box<dyn Place> {
    Box::new(Directory::new())
}

impl Place for Directory {
    fn open(&self, rules: Rules) -> Opening<'_> {
        let settings = Settings {
            data_dir: self.data(),
            durability: Durability::Normal,
            policy: rules.policy,
            rematch_after: rules.rematch_after,
            rate_limits: rules.limits,
            rooms: rules.rooms,
        };
        Box::pin(async move {
            let store =
                EmbeddedStore::open(&settings, RoomHub::new(), |_| {}).expect("the store opens");
            Arc::new(store) as Arc<dyn Store>
        })
    }
}

/// A database of its own and a namespace of its own, on servers that all tests share.
struct SharedPlace {
    database_url: String,
    namespace: String,
}

pub(crate) fn shared() -> Box<dyn Place> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Box::new(SharedPlace {
        database_url: Postgres::shared().fresh_database().expect("a database"),
        namespace: format!("conformance-{number}"),
    })
}

impl Place for SharedPlace {
    fn open(&self, rules: Rules) -> Opening<'_> {
        Box::pin(async move {
            let shared = SharedStore::open(&self.database_url, &self.namespace, rules).await;
            Arc::new(shared) as Arc<dyn Store>
        })
    }
}

impl Store for EmbeddedStore {
    fn close(&self) {
        EmbeddedStore::close(self);
    }
}
