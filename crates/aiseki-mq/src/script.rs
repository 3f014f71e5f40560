//! Scripts: sent by their hash, and in full when the server has forgotten them.

use std::sync::LazyLock;
use std::time::Duration;

use redis::Cmd;

macro_rules! parts {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("lua/parts/", $name, ".lua")))),*]
    };
}

const PARTS: &[(&str, &str)] = parts![
    "keys",
    "now",
    "ring",
    "large",
    "publish",
    "meta",
    "unique",
    "bury",
    "memo",
    "due",
    "ack",
    "poison",
    "group",
    "fields",
    "owned",
    "remove",
    "again",
    "bury_entry"
];

/// Builds a script from its source: each line `--@include NAME` is replaced by that part of this
/// crate's Lua.
///
/// This is how another script of the same slot publishes in its own step, with the one source of
/// the publish step:
///
/// ```
/// let script = aiseki_mq::build_script(
///     "#!lua flags=allow-oom
/// -- KEYS: a counter of the caller's, then the queue's fourteen keys (`lists_keys`).
/// --@include keys
/// --@include now
/// --@include ring
/// --@include large
/// --@include publish
/// redis.call('INCR', KEYS[1])
/// return mq_publish(mq_keys(2), mq_now(''), 0, { ARGV[1], '0', '', ARGV[2] })
/// ",
/// );
/// assert!(script.contains("local function mq_publish"));
/// ```
///
/// # Panics
///
/// When there is no part of that name.
pub fn build_script(source: &str) -> String {
    let mut built = String::with_capacity(source.len() * 2);
    for line in source.lines() {
        if let Some(name) = line.strip_prefix("--@include ") {
            let part = PARTS.iter().find(|(part, _)| *part == name.trim());
            built.push_str(part.unwrap_or_else(|| panic!("no part of a script is named {name}")).1);
        } else {
            built.push_str(line);
            built.push('\n');
        }
    }
    built
}

/// A script: its text, and its hash, by which it is sent as a rule.
#[derive(Debug)]
pub struct Script {
    text: String,
    hash: String,
}

impl Script {
    /// The script that is built from this source, see [`build_script`].
    pub fn new(source: &str) -> Self {
        let text = build_script(source);
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }

    /// A call by hash, which is what is sent as a rule; the caller adds the arguments.
    pub fn on(&self, keys: &[String]) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.hash).arg(keys.len()).arg(keys);
        command
    }

    /// The same call with the full text, which also makes the server know it. It is one command, so
    /// nothing can flush the script between loading and running it.
    pub(crate) fn in_full(&self, call: &Cmd) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(&self.text);
        for argument in call.args_iter().skip(2) {
            if let redis::Arg::Simple(bytes) = argument {
                command.arg(bytes);
            }
        }
        command
    }
}

impl Script {
    /// The text as the server gets it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

macro_rules! scripts {
    ($($name:ident = $file:literal),* $(,)?) => {
        $(pub(crate) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(include_str!(concat!("lua/", $file, ".lua"))));)*

        /// Every script of this crate as it is sent to the server, with its file's name.
        pub fn all_scripts() -> Vec<(&'static str, String)> {
            vec![$(($file, $name.text.clone())),*]
        }
    };
}

scripts! {
    PUBLISH = "publish",
    STEP = "step",
    NACK = "nack",
    RENEW = "renew",
    DRAIN = "drain",
    SWEEP = "sweep",
    CANCEL = "cancel",
    PAUSE = "pause",
    STATS = "stats",
    DEAD = "dead",
    REPLAY = "replay",
    DROP = "drop",
    LOCATE = "locate",
    PLAIN_EXCHANGE = "plain/exchange",
    PLAIN_REAP = "plain/reap",
    PLAIN_NACK = "plain/nack",
    PLAIN_RENEW = "plain/renew",
    PLAIN_DRAIN = "plain/drain",
    PLAIN_STATS = "plain/stats",
    PLAIN_DEAD = "plain/dead",
    PLAIN_LETTERS = "plain/letters",
    STREAMS_PUBLISH = "streams/publish",
    STREAMS_EXCHANGE = "streams/exchange",
    STREAMS_NACK = "streams/nack",
    STREAMS_RENEW = "streams/renew",
    STREAMS_RECOVER = "streams/recover",
    STREAMS_DRAIN = "streams/drain",
    STREAMS_STATS = "streams/stats",
    STREAMS_LETTERS = "streams/letters",
}

/// A duration as scripts take it.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
