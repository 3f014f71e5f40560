//! All key names, of all engines.

use crate::error::{Result, invalid};
use crate::message::check_name;

/// Where a queue's keys are: one prefix, with a hash tag, for each shard.
///
/// A prefix that has a hash tag is used as it is, so that a queue can live in the slot of its
/// caller's other keys. Otherwise `NAME` becomes `mq:{NAME}`, and the further shards are
/// `mq:{NAME:1}`, `mq:{NAME:2}` and so on: a queue can be given more shards later, and what is in
/// the first stays where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueName {
    name: String,
    prefixes: Vec<String>,
}

impl QueueName {
    /// A queue of one shard.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        Self::sharded(name, 1)
    }

    /// A queue of `shards` shards; more than one only for a name without a hash tag.
    pub fn sharded(name: impl Into<String>, shards: usize) -> Result<Self> {
        let name = name.into();
        check_name("a queue's name", &name)?;
        if !(1..=64).contains(&shards) {
            return invalid("a queue has 1 to 64 shards");
        }
        let prefixes = if has_tag(&name) {
            if shards > 1 {
                return invalid("a queue whose name has a hash tag has one shard: its slot");
            }
            vec![name.clone()]
        } else if name.contains(['{', '}']) {
            return invalid("braces in a queue's name are a hash tag, or not there");
        } else {
            let rest = (1..shards).map(|shard| format!("mq:{{{name}:{shard}}}"));
            std::iter::once(format!("mq:{{{name}}}")).chain(rest).collect()
        };
        Ok(Self { name, prefixes })
    }

    /// The name it was made from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The shards' prefixes.
    pub fn prefixes(&self) -> &[String] {
        &self.prefixes
    }
}

fn has_tag(name: &str) -> bool {
    name.split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .is_some_and(|(tag, _)| !tag.is_empty() && !tag.contains('{'))
}

/// The last part of each key of a `lists` shard, in the order in which scripts receive them.
pub const LISTS_KEYS: [&str; 14] = [
    "state",
    "ready",
    "delayed",
    "leased",
    "payload",
    "meta",
    "dead",
    "reason",
    "unique",
    "holds",
    "done",
    "past",
    "cancelled",
    "wake",
];

/// The fourteen keys of a `lists` shard, in the order in which scripts receive them.
pub fn lists_keys(prefix: &str) -> Vec<String> {
    LISTS_KEYS.iter().map(|part| format!("{prefix}:{part}")).collect()
}

/// The keys of a `plain` queue: its list is its name, as it is, so that any client can fill it. The
/// others begin with the same hash tag.
#[derive(Debug, Clone)]
pub(crate) struct PlainKeys {
    pub(crate) list: String,
    pub(crate) workers: String,
    pub(crate) counts: String,
    pub(crate) dead: String,
    pub(crate) reasons: String,
    pub(crate) state: String,
    base: String,
}

impl PlainKeys {
    pub(crate) fn new(name: &str) -> Self {
        let base = if has_tag(name) { name.to_owned() } else { format!("{{{name}}}") };
        let key = |part: &str| format!("{base}:{part}");
        Self {
            list: name.to_owned(),
            workers: key("workers"),
            counts: key("counts"),
            dead: key("dead"),
            reasons: key("reasons"),
            state: key("state"),
            base,
        }
    }

    pub(crate) fn processing(&self, worker: &str) -> String {
        format!("{}:processing:{worker}", self.base)
    }
}

/// The keys of a `streams` queue: stream, dead letters, state.
pub(crate) fn streams_keys(name: &QueueName) -> [String; 3] {
    ["stream", "stream-dead", "stream-state"].map(|part| format!("{}:{part}", name.prefixes()[0]))
}

/// The shard of a message: by its unique key when it has one, else by its id. FNV-1a, because it
/// must never change.
pub(crate) fn shard_of(routing: &str, shards: usize) -> usize {
    let hash = fnv1a(routing.as_bytes());
    usize::try_from(hash % shards as u64).unwrap_or_default()
}

pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_with_a_hash_tag_stays_as_it_is() -> Result<()> {
        assert_eq!(QueueName::new("{aiseki}:mq:rooms")?.prefixes(), ["{aiseki}:mq:rooms"]);
        assert!(QueueName::sharded("{aiseki}:mq:rooms", 2).is_err());
        Ok(())
    }

    #[test]
    fn each_shard_has_a_hash_tag_of_its_own() -> Result<()> {
        let name = QueueName::sharded("orders", 3)?;
        assert_eq!(name.prefixes(), ["mq:{orders}", "mq:{orders:1}", "mq:{orders:2}"]);
        assert!(QueueName::new("half{open").is_err());
        assert!(QueueName::new("").is_err());
        Ok(())
    }

    #[test]
    fn the_shard_of_an_id_never_changes() {
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        let hit: std::collections::BTreeSet<_> =
            (0..100).map(|n| shard_of(&format!("id-{n}"), 4)).collect();
        assert_eq!(hit.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }
}
