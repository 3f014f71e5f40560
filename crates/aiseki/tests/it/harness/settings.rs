//! Settings by their names, as an operator gives them: for a server in this process and for the
//! real program alike.

use std::path::Path;
use std::sync::LazyLock;

use aiseki::config::{Config, Environment, Flags};
use aiseki_testkit::{Postgres, Redis};

/// The Redis that the tests of this process share.
pub(crate) fn redis_url() -> String {
    static REDIS: LazyLock<Redis> = LazyLock::new(|| Redis::start().expect("a Redis"));
    REDIS.url()
}

/// The token of operators on every server that has one.
pub(crate) const ADMIN_TOKEN: &str = "correct-horse-battery-staple";

#[derive(Clone)]
pub(crate) struct Settings(Vec<(String, String)>);

impl Settings {
    /// No demonstration topics, no limits, everybody meets again, nobody ever away for too long, an admin token, a free port.
    pub(crate) fn new() -> Self {
        Self(Vec::new())
            .set("listen", "127.0.0.1:0")
            .set("demo", "off")
            .set("rate_limit", "off")
            .set("rematch_after", "off")
            .set("away_timeout", "off")
            .set("message_limit", "off")
            .set("admin_token", ADMIN_TOKEN)
    }

    /// The same on a database and in a namespace of their own, on servers that all tests share.
    pub(crate) fn shared() -> Self {
        let database = Postgres::shared().fresh_database().expect("a database");
        let namespace = database.rsplit('/').next().expect("a name");
        let namespace = format!("server-{}", namespace.split('?').next().expect("a name"));
        Self::new()
            .set("redis_url", &redis_url())
            .set("database_url", &database)
            .set("namespace", &namespace)
    }

    /// A setting by its name in the configuration file.
    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self = self.unset(name);
        self.0.push((variable(name), value.to_owned()));
        self
    }

    /// A variable that is no setting of ours.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.0.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn unset(mut self, name: &str) -> Self {
        self.0.retain(|(known, _)| *known != variable(name));
        self
    }

    pub(crate) fn data_dir(self, path: &Path) -> Self {
        self.set("data_dir", path.to_str().expect("UTF-8"))
    }

    pub(crate) fn variables(&self) -> &[(String, String)] {
        &self.0
    }

    pub(crate) fn config(&self) -> Config {
        let environment = Environment::new(self.0.iter().cloned());
        let config = Config::load(&Flags::default(), &environment).expect("settings are valid");
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);
        config
    }
}

fn variable(name: &str) -> String {
    format!("AISEKI_{}", name.to_uppercase())
}
