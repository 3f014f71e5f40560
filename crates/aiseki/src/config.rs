//! What the operator decided.
//!
//! What was *asked* ([`Asked`]: texts from flags, the environment and a file, with where each stands)
//! and what was *decided* ([`Config`]: typed values that go together) are two types. Each setting is
//! one row of [`SETTINGS`]; its flag, its variable, its key in the file, its line in the help, in
//! `aiseki config` and in the README all come from that row.

mod asked;
mod environment;
mod file;
mod flags;
mod setting;
mod settings;
mod table;
mod urls;
mod values;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use aiseki_lobby::{Millis, Policy};
use ipnet::IpNet;

pub use asked::{Asked, Given, Source};
pub use environment::Environment;
pub use flags::Flags;
pub use setting::{Form, Group, Role, Setting};
pub use settings::SETTINGS;
pub use table::markdown_table;
pub use values::{Durability, Eviction, LogFilter, LogFormat, Secret};

use crate::rate_limit::RateLimit;
pub use crate::rate_limit::RateLimits;

/// The variable that names the configuration file, as `--config` does.
const CONFIG_VARIABLE: &str = "AISEKI_CONFIG";
/// The variable that names the server for operator commands, as `--server` does.
pub const SERVER_VARIABLE: &str = "AISEKI_SERVER";

/// Everything the server needs to know to start.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where the server listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where the embedded store keeps its files; relative to the working directory.
    pub data_dir: PathBuf,
    /// What survives a power cut.
    pub durability: Durability,
    /// Redis of the shared store; with [`Config::database_url`], or neither.
    pub redis_url: Option<Secret>,
    /// PostgreSQL of the shared store.
    pub database_url: Option<Secret>,
    /// Under which name everything stands in Redis.
    pub namespace: String,
    /// What to do about a Redis that evicts.
    pub redis_eviction: Eviction,
    /// The token of operators. None: the admin routes answer 404.
    pub admin_token: Option<Secret>,
    /// Peers whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Other origins whose pages may call, as a browser writes them in `Origin`: lower case, no
    /// default port.
    pub allowed_origins: Vec<String>,
    /// Where all routes stand: `/`, or such as `/talk`, without a slash at its end.
    pub base_path: String,
    /// The longest that a long poll is held open, in milliseconds.
    pub max_wait: Millis,
    /// The limits; none when they are off.
    pub rate_limits: Option<RateLimits>,
    /// Who is seated when.
    pub policy: Policy,
    /// Two people who shared a room are kept apart for so long while others will do; none: not at all.
    pub rematch_after: Option<Millis>,
    /// Whether people can talk here.
    pub rooms: bool,
    /// Somebody without a connection to their room loses the seat after so long; none: never.
    pub away_timeout: Option<Millis>,
    /// How often one member of a room may say something; none: as often as they like.
    pub message_limit: Option<RateLimit>,
    /// Whether an empty store gets demonstration topics.
    pub demo: bool,
    /// How many connections are served at a time.
    pub max_connections: usize,
    /// What is logged.
    pub log: LogFilter,
    /// How it is logged.
    pub log_format: LogFormat,
    /// What the operator should know although it stops nothing: one line each, to be logged.
    pub warnings: Vec<String>,
}

/// Why there is no configuration: one line that names the setting as the operator gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Collects what was asked and decides it.
    pub fn load(flags: &Flags, environment: &Environment) -> Result<Self, ConfigError> {
        Self::decide(&Asked::gather(flags, environment)?)
    }

    /// Decides what the text of a configuration file says, and nothing else.
    pub fn of_file(path: &Path, text: &str) -> Result<Self, ConfigError> {
        Self::decide(&Asked::of_file(path, text)?)
    }

    /// Turns texts into values, each by its row, and checks that they go together.
    pub fn decide(asked: &Asked) -> Result<Self, ConfigError> {
        let mut config = Self::unset();
        config.warnings = asked.warnings().to_vec();
        for setting in SETTINGS {
            let given = asked.given(setting);
            let text = given.map_or(setting.default, |given| given.text.as_str());
            // An optional setting has an empty default, which is no value to be read.
            if given.is_none() && text.is_empty() {
                continue;
            }
            (setting.set)(&mut config, text).map_err(|reason| asked.refuse(setting, &reason))?;
        }
        config.check_stores(asked)?;
        config.check_fallback(asked);
        Ok(config)
    }

    /// The shared store is two stores, which are asked for together.
    fn check_stores(&self, asked: &Asked) -> Result<(), ConfigError> {
        let (given, missing) = match (&self.redis_url, &self.database_url) {
            (Some(_), None) => ("redis_url", "database_url"),
            (None, Some(_)) => ("database_url", "redis_url"),
            _ => return Ok(()),
        };
        Err(ConfigError(format!(
            "{} is given without {missing}: the shared store needs Redis and PostgreSQL together",
            asked.name_of(given)
        )))
    }

    /// A fallback after the wait's end would never come. That is allowed, but hardly meant.
    fn check_fallback(&mut self, asked: &Asked) {
        let policy = &self.policy;
        let falls_back = policy.room_types.iter().any(|room_type| room_type.fallback.is_some());
        if !falls_back || policy.fallback_after < policy.wait_timeout {
            return;
        }
        let (fallback, wait) = (asked.name_of("fallback_after"), asked.name_of("wait_timeout"));
        let line = format!(
            "{fallback} ({}) is not less than {wait} ({}), so that no wait would ever fall back",
            crate::duration::Shown(policy.fallback_after),
            crate::duration::Shown(policy.wait_timeout),
        );
        self.warnings.push(line);
    }

    /// What rows are applied to. Every row has been applied before anybody sees a value, so what
    /// stands here is only shape; the defaults stand in the table.
    fn unset() -> Self {
        let limit = RateLimit { burst: 1, per: 1 };
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            data_dir: PathBuf::new(),
            durability: Durability::Normal,
            redis_url: None,
            database_url: None,
            namespace: String::new(),
            redis_eviction: Eviction::Refuse,
            admin_token: None,
            trusted_proxies: Vec::new(),
            allowed_origins: Vec::new(),
            base_path: "/".to_owned(),
            max_wait: 0,
            rate_limits: Some(RateLimits { session: limit, address: limit }),
            policy: Policy::default(),
            rematch_after: None,
            rooms: false,
            away_timeout: None,
            message_limit: None,
            demo: false,
            max_connections: 0,
            log: LogFilter::default(),
            log_format: LogFormat::Text,
            warnings: Vec::new(),
        }
    }
}

impl Default for Config {
    /// The configuration when nothing is asked.
    fn default() -> Self {
        Self::decide(&Asked::default()).expect("the defaults of the table are valid")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let environment = Environment::new(variables.iter().copied());
        Config::load(&Flags::default(), &environment)
    }

    #[test]
    fn the_defaults_are_those_of_the_contract() {
        let config = Config::default();
        assert_eq!(config.policy, Policy::default());
        assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(config.data_dir, PathBuf::from("./aiseki-data"));
        assert_eq!(config.durability, Durability::Normal);
        assert_eq!((config.base_path.as_str(), config.max_wait), ("/", 55_000));
        let limits = config.rate_limits.unwrap();
        assert_eq!(limits.session, RateLimit { burst: 30, per: 60_000 });
        assert_eq!(limits.address, RateLimit { burst: 600, per: 60_000 });
        assert_eq!((config.demo, config.max_connections), (true, 16_384));
        assert!(config.admin_token.is_none() && config.warnings.is_empty());
    }

    #[test]
    fn turning_the_rate_limit_off_turns_off_both_limits_and_still_checks_the_other() {
        let off = ("AISEKI_RATE_LIMIT", "off");
        assert_eq!(decide(&[off]).unwrap().rate_limits, None);
        assert_eq!(
            decide(&[off, ("AISEKI_ADDRESS_RATE_LIMIT", "9/1s")]).unwrap().rate_limits,
            None
        );
        let error = decide(&[off, ("AISEKI_ADDRESS_RATE_LIMIT", "9")]).unwrap_err().to_string();
        assert!(error.starts_with("AISEKI_ADDRESS_RATE_LIMIT is \"9\": expected"), "{error}");
    }

    #[test]
    fn a_fallback_after_the_end_of_the_wait_is_a_warning() {
        let fallback = ("AISEKI_FALLBACK_AFTER", "5m");
        assert_eq!(
            decide(&[fallback]).unwrap().warnings,
            ["AISEKI_FALLBACK_AFTER (5m) is not less than the default of wait_timeout (5m), \
              so that no wait would ever fall back"]
        );
        let without = decide(&[fallback, ("AISEKI_ROOM_TYPES", "2,3")]).unwrap();
        assert!(without.warnings.is_empty(), "{:?}", without.warnings);
        let config = decide(&[("AISEKI_WAIT_TIMEOUT", "30s")]).unwrap();
        assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
    }

    #[test]
    fn the_two_urls_of_the_shared_store_go_together_and_are_not_shown() {
        let redis = ("AISEKI_REDIS_URL", "redis://:hunter2@host");
        let database = ("AISEKI_DATABASE_URL", "postgres://me:hunter2@host/db");
        for (given, missing) in [(redis, "database_url"), (database, "redis_url")] {
            let error = decide(&[given]).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{} is given without {missing}", given.0)),
                "{error}"
            );
            assert!(!error.contains("hunter2"), "{error}");
        }
        let config = decide(&[redis, database]).unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
        assert_eq!(config.redis_url.unwrap().expose(), redis.1);
        for (variable, value) in [
            ("AISEKI_REDIS_URL", "http://:hunter2@host"),
            ("AISEKI_REDIS_URL", "redis-sentinel://:hunter2@host"),
            ("AISEKI_DATABASE_URL", "mysql://me:hunter2@host/db"),
            ("AISEKI_NAMESPACE", "a{b}"),
            ("AISEKI_REDIS_EVICTION", "perhaps"),
        ] {
            let error = decide(&[(variable, value)]).unwrap_err().to_string();
            assert!(error.starts_with(variable) && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_secret_is_in_no_error_and_in_no_debug_output() {
        let error = decide(&[("AISEKI_ADMIN_TOKEN", "hunter2")]).unwrap_err().to_string();
        assert!(error.starts_with("AISEKI_ADMIN_TOKEN: expected at least 16"), "{error}");
        assert!(!error.contains("hunter2"));
        let config = decide(&[("AISEKI_ADMIN_TOKEN", "0123456789abcdef")]).unwrap();
        assert_eq!(config.admin_token.as_ref().unwrap().expose(), "0123456789abcdef");
        assert!(!format!("{config:?}").contains("0123456789abcdef"));
    }

    #[test]
    fn an_unknown_variable_is_a_warning_that_names_the_nearest_setting() {
        let config = decide(&[("AISEKI_WAIT_TIMOUT", "1s"), ("HOME", "/")]).unwrap();
        assert_eq!(
            config.warnings,
            ["AISEKI_WAIT_TIMOUT is not a setting and is ignored: \
              did you mean AISEKI_WAIT_TIMEOUT?"]
        );
    }
}
