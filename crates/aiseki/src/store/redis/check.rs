//! Whether a Redis is fit for waiting people.

use super::calls::When;
use super::{RedisStore, scripts};

/// The version of the layout of keys that this program reads and writes.
pub(super) const LAYOUT: u32 = 1;
/// The first version of Redis that has what the scripts need, and of Valkey.
const OLDEST: (u32, u32) = (7, 8);

/// Why a Redis cannot be used. Its `Display` is one line for an operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// It does not answer: that may pass.
    #[error("Redis is away")]
    Away,
    /// It answers, and is not fit.
    #[error("{0}")]
    Unfit(String),
}

impl RedisStore {
    /// Looks at the server: a version that has what is needed, a primary, no eviction, a layout that is
    /// understood.
    pub async fn check(&self) -> Result<(), CheckError> {
        let inner = &self.inner;
        let call = scripts::CHECK.on(&[inner.keys.layout()]);
        let answer = match inner.link.run(&scripts::CHECK, &call).await {
            Ok(answer) => answer,
            Err(error) => return Err(refused(&error)),
        };
        let read = || {
            let mut words = super::words::Words::of(answer).ok()?;
            Some((words.text().ok()?, words.text().ok()?))
        };
        let Some((info, layout)) = read() else {
            return Err(unfit("its answers are not those of a Redis"));
        };
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_default().trim()
        };
        let major = |version: &str| version.split('.').next()?.parse::<u32>().ok();
        match (major(field("valkey_version")), major(field("redis_version"))) {
            (Some(valkey), _) if valkey < OLDEST.1 => {
                return Err(unfit(format!("Valkey {valkey} is too old: 8 or later is needed")));
            }
            (None, Some(redis)) if redis < OLDEST.0 => {
                return Err(unfit(format!("Redis {redis} is too old: 7 or later is needed")));
            }
            _ => {}
        }
        if field("role") == "slave" {
            return Err(unfit("it is a replica: name its primary, or the Sentinels that know it"));
        }
        let policy = field("maxmemory_policy");
        let limited = field("maxmemory") != "0";
        if limited && policy != "noeviction" && !inner.eviction_accepted {
            return Err(unfit(format!(
                "its maxmemory-policy is {policy}: it would throw waiting people away. Set \
                 noeviction, or accept it with --redis-eviction accept"
            )));
        }
        if layout.is_empty() {
            // Should another server be first, what it wrote stays.
            let word = LAYOUT.to_string();
            let noted = inner.note(&inner.keys.layout(), &word, None, true).await;
            noted.map_err(|_| CheckError::Away)?;
        } else if layout.parse().ok().is_none_or(|layout: u32| layout > LAYOUT) {
            return Err(unfit(format!(
                "a newer aiseki has used this namespace (layout {layout}, this one knows {LAYOUT}): \
                 upgrade this server, or give it a namespace of its own"
            )));
        }
        // The first step sets the clock and finds the store available.
        let call = scripts::RUN.on(&[inner.keys.seats()]);
        inner.run(&scripts::RUN, &call, When::Always).await.map_err(|_| CheckError::Away)?;
        Ok(())
    }
}

fn unfit(why: impl std::fmt::Display) -> CheckError {
    CheckError::Unfit(format!("this Redis cannot be used: {why}"))
}

fn refused(error: &aiseki_mq::Error) -> CheckError {
    let text = error.to_string();
    let mention = |word: &str| text.contains(word);
    if mention("READONLY") || mention("read only replica") {
        unfit("it is a replica: name its primary, or the Sentinels that know it")
    } else if mention("CLUSTERDOWN") || mention("Hash slot not served") {
        unfit("the cluster does not serve all its slots")
    } else if mention("NOAUTH") || mention("WRONGPASS") || mention("AuthenticationFailed") {
        unfit("it wants another user or password")
    } else if mention("NOPERM") {
        unfit(format!("its user may not do what is needed ({text})"))
    } else if mention("index is out of range") || mention("invalid DB index") {
        unfit("it has no database of the number in AISEKI_REDIS_URL: see its setting `databases`")
    } else if mention("MOVED") {
        unfit("it is a node of a cluster: use a redis-cluster:// URL")
    } else {
        CheckError::Away
    }
}
