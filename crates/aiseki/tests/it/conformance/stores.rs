use std::pin::Pin;
use std::sync::Arc;

use aiseki::bans::BanStore;
use aiseki::config::Durability;
use aiseki::conversations::ConversationStore;
use aiseki::matching::LobbyStore;
use aiseki::rate_limit::RateLimits;
use aiseki::rooms::{RoomHub, RoomRules};
use aiseki::store::embedded::{EmbeddedStore, Settings};
use aiseki::topics::TopicStore;
use aiseki_lobby::Policy;

use crate::harness::Directory;

/// All ports of one store.
pub(crate) trait Store: LobbyStore + TopicStore + BanStore + ConversationStore {
    /// Ends it as a server ends it that is told to.
    fn close(&self);
}

/// What a store is told about seating.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    pub(crate) policy: Policy,
    pub(crate) limits: Option<RateLimits>,
    pub(crate) rooms: RoomRules,
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

impl Store for EmbeddedStore {
    fn close(&self) {
        EmbeddedStore::close(self);
    }
}
