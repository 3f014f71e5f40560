//! The table of settings.

use super::{Form, Group, RateLimits, Role, Setting, urls, values};
use crate::duration::{DAY, HOUR, SECOND, Shown};

/// Waits are counted in seconds or minutes; a tenth of a second leaves room for tests, and a week
/// for patient people.
const SHORTEST: u64 = 100;
const LONGEST: u64 = 7 * DAY;

/// What every duration of the policy has in common: only its field and its bounds differ.
macro_rules! policy_duration {
    ($name:literal, $field:ident, $default:literal, $longest:expr, $help:literal) => {
        Setting {
            name: $name,
            group: Group::Matching,
            form: Form::Duration,
            default: $default,
            help: $help,
            role: Role::Open,
            set: |config, text| {
                config.policy.$field = values::duration(text, SHORTEST..=$longest)?;
                Ok(())
            },
            show: |config| Shown(config.policy.$field).to_string(),
        }
    };
}

/// Every setting, in the order in which people read them. `rate_limit` stands before
/// `address_rate_limit`, which it may turn off.
pub static SETTINGS: &[Setting] = &[
    Setting {
        name: "listen",
        group: Group::Serving,
        form: Form::Text("ADDRESS"),
        default: "127.0.0.1:8080",
        help: "Where to listen; port 0 takes a free one",
        role: Role::Open,
        set: |config, text| {
            config.listen = values::socket_address(text)?;
            Ok(())
        },
        show: |config| config.listen.to_string(),
    },
    Setting {
        name: "base_path",
        group: Group::Serving,
        form: Form::Text("PATH"),
        default: "/",
        help: "Where all routes stand, such as /talk behind a proxy",
        role: Role::Open,
        set: |config, text| {
            config.base_path = values::base_path(text)?;
            Ok(())
        },
        show: |config| config.base_path.clone(),
    },
    Setting {
        name: "allowed_origins",
        group: Group::Serving,
        form: Form::List("ORIGINS"),
        default: "",
        help: "Other origins whose pages may call, such as https://example.org",
        role: Role::Open,
        set: |config, text| {
            config.allowed_origins = values::list(text, values::web_origin)?;
            Ok(())
        },
        show: |config| config.allowed_origins.join(","),
    },
    Setting {
        name: "trusted_proxies",
        group: Group::Serving,
        form: Form::List("ADDRESSES"),
        default: "",
        help: "Proxies whose X-Forwarded-For and X-Forwarded-Proto are believed: \
               addresses or blocks such as 10.0.0.0/8",
        role: Role::Open,
        set: |config, text| {
            config.trusted_proxies = values::list(text, values::address_block)?;
            Ok(())
        },
        show: |config| {
            let blocks: Vec<_> = config.trusted_proxies.iter().map(ToString::to_string).collect();
            blocks.join(",")
        },
    },
    Setting {
        name: "admin_token",
        group: Group::Serving,
        form: Form::Text("TOKEN"),
        default: "",
        help: "The token of operators, at least 16 characters; none: no admin routes",
        role: Role::Secret,
        set: |config, text| {
            config.admin_token = Some(values::admin_token(text)?);
            Ok(())
        },
        show: |_| String::new(),
    },
    Setting {
        name: "max_wait",
        group: Group::Serving,
        form: Form::Duration,
        default: "55s",
        help: "The longest that a long poll is held open (1s to 55s)",
        role: Role::Open,
        set: |config, text| {
            config.max_wait = values::duration(text, SECOND..=55 * SECOND)?;
            Ok(())
        },
        show: |config| Shown(config.max_wait).to_string(),
    },
    Setting {
        name: "demo",
        group: Group::Serving,
        form: Form::OnOff,
        default: "on",
        help: "Make six demonstration topics in an empty store",
        role: Role::Open,
        set: |config, text| {
            config.demo = values::on_off(text)?;
            Ok(())
        },
        show: |config| values::show_on_off(config.demo),
    },
    Setting {
        name: "data_dir",
        group: Group::Storing,
        form: Form::Text("DIRECTORY"),
        default: "./aiseki-data",
        help: "Where the embedded store keeps its files",
        role: Role::Open,
        set: |config, text| {
            config.data_dir = values::directory(text)?;
            Ok(())
        },
        show: |config| config.data_dir.display().to_string(),
    },
    Setting {
        name: "durability",
        group: Group::Storing,
        form: Form::Text("normal|full"),
        default: "normal",
        help: "full: what was answered also survives a power cut, at the price of speed",
        role: Role::Open,
        set: |config, text| {
            config.durability = text.parse()?;
            Ok(())
        },
        show: |config| config.durability.to_string(),
    },
    Setting {
        name: "redis_url",
        group: Group::Storing,
        form: Form::Text("URL"),
        default: "",
        help: "Redis or Valkey of the shared store: redis://, rediss://, redis-sentinel://, \
               redis-cluster://",
        role: Role::Secret,
        set: |config, text| {
            config.redis_url = Some(urls::redis_url(text)?);
            Ok(())
        },
        show: |_| String::new(),
    },
    Setting {
        name: "database_url",
        group: Group::Storing,
        form: Form::Text("URL"),
        default: "",
        help: "PostgreSQL of the shared store: postgres://USER:PASSWORD@HOST/DATABASE",
        role: Role::Secret,
        set: |config, text| {
            config.database_url = Some(urls::database_url(text)?);
            Ok(())
        },
        show: |_| String::new(),
    },
    Setting {
        name: "namespace",
        group: Group::Storing,
        form: Form::Text("NAME"),
        default: "aiseki",
        help: "Under which name everything stands in Redis: servers of one name share their queues",
        role: Role::Open,
        set: |config, text| {
            config.namespace = values::namespace(text)?;
            Ok(())
        },
        show: |config| config.namespace.clone(),
    },
    Setting {
        name: "redis_eviction",
        group: Group::Storing,
        form: Form::Text("refuse|accept"),
        default: "refuse",
        help: "accept: start although Redis may throw waiting people away when memory is short",
        role: Role::Open,
        set: |config, text| {
            config.redis_eviction = text.parse()?;
            Ok(())
        },
        show: |config| config.redis_eviction.to_string(),
    },
    Setting {
        name: "room_types",
        group: Group::Matching,
        form: Form::List("SIZES"),
        default: "2,3>2",
        help: "How many people a room may have (2 to 8), each with at most one smaller fallback",
        role: Role::Open,
        set: |config, text| {
            config.policy.room_types = text.parse().map_err(|e| format!("{e}"))?;
            Ok(())
        },
        show: |config| config.policy.room_types.to_string(),
    },
    policy_duration!(
        "fallback_after",
        fallback_after,
        "1m",
        LONGEST,
        "After so long a smaller room will do, where the room type has a fallback (100ms to 7d)"
    ),
    Setting {
        name: "merge_fallback",
        group: Group::Matching,
        form: Form::OnOff,
        default: "on",
        help: "Seat people past their fallback time with those who wait for the smaller room",
        role: Role::Open,
        set: |config, text| values::on_off(text).map(|on| config.policy.merge_fallback = on),
        show: |config| values::show_on_off(config.policy.merge_fallback),
    },
    policy_duration!(
        "wait_timeout",
        wait_timeout,
        "5m",
        LONGEST,
        "A wait ends after so long (100ms to 7d)"
    ),
    Setting {
        name: "rematch_after",
        group: Group::Matching,
        form: Form::Text("DURATION|off"),
        default: "10m",
        help: "Who shared a room meets others first for so long",
        role: Role::Open,
        set: |config, text| {
            values::duration_or_off(text, SHORTEST..=LONGEST).map(|it| config.rematch_after = it)
        },
        show: |config| config.rematch_after.map_or("off".into(), |time| Shown(time).to_string()),
    },
    policy_duration!(
        "presence_timeout",
        presence_timeout,
        "30s",
        LONGEST,
        "Somebody who waits and shows no sign of life for so long is dropped (100ms to 7d)"
    ),
    policy_duration!(
        "reservation_ttl",
        reservation_ttl,
        "30s",
        HOUR,
        "A formed room that is not written within so long is undone (100ms to 1h)"
    ),
    Setting {
        name: "rooms",
        group: Group::Talking,
        form: Form::OnOff,
        default: "on",
        help: "Rooms to talk in; off: for applications with a conversation of their own",
        role: Role::Open,
        set: |config, text| values::on_off(text).map(|on| config.rooms = on),
        show: |config| values::show_on_off(config.rooms),
    },
    Setting {
        name: "away_timeout",
        group: Group::Talking,
        form: Form::Text("DURATION|off"),
        default: "1m",
        help: "Somebody without a connection to their room loses the seat after so long",
        role: Role::Open,
        set: |config, text| {
            values::duration_or_off(text, SHORTEST..=LONGEST).map(|it| config.away_timeout = it)
        },
        show: |config| config.away_timeout.map_or("off".into(), |time| Shown(time).to_string()),
    },
    Setting {
        name: "message_limit",
        group: Group::Talking,
        form: Form::Text("N/DURATION|off"),
        default: "20/10s",
        help: "What one member of a room may say",
        role: Role::Open,
        set: |config, text| {
            config.message_limit = match text.trim() {
                "off" => None,
                text => Some(values::rate_limit(text).map_err(|reason| reason + ", or off")?),
            };
            Ok(())
        },
        show: |config| config.message_limit.map_or("off".into(), |limit| limit.to_string()),
    },
    Setting {
        name: "rate_limit",
        group: Group::Limits,
        form: Form::Text("N/DURATION|off"),
        default: "30/1m",
        help: "Joins of one session; off: neither this limit nor that of addresses",
        role: Role::Open,
        set: |config, text| {
            if text.trim() == "off" {
                config.rate_limits = None;
                return Ok(());
            }
            let session = values::rate_limit(text).map_err(|reason| reason + ", or off")?;
            config.rate_limits = config.rate_limits.map(|limits| RateLimits { session, ..limits });
            Ok(())
        },
        show: |config| config.rate_limits.map_or("off".into(), |limits| limits.session.to_string()),
    },
    Setting {
        name: "address_rate_limit",
        group: Group::Limits,
        form: Form::Text("N/DURATION"),
        default: "600/1m",
        help: "Joins and new sessions of one address (IPv6: of one /64)",
        role: Role::Open,
        set: |config, text| {
            let address = values::rate_limit(text)
                .map_err(|reason| format!("{reason} (rate_limit = off turns off both limits)"))?;
            config.rate_limits = config.rate_limits.map(|limits| RateLimits { address, ..limits });
            Ok(())
        },
        show: |config| config.rate_limits.map_or("off".into(), |limits| limits.address.to_string()),
    },
    Setting {
        name: "max_connections",
        group: Group::Limits,
        form: Form::Number,
        default: "16384",
        help: "How many connections are served at a time (1 to 1000000)",
        role: Role::Open,
        set: |config, text| {
            config.max_connections = values::number(text, 1..=1_000_000)?;
            Ok(())
        },
        show: |config| config.max_connections.to_string(),
    },
    Setting {
        name: "log",
        group: Group::Logging,
        form: Form::Text("FILTER"),
        default: "info",
        help: "What is logged: a level, or target=level pairs such as warn,aiseki=debug",
        role: Role::Open,
        set: |config, text| {
            config.log = text.parse()?;
            Ok(())
        },
        show: |config| config.log.to_string(),
    },
    Setting {
        name: "log_format",
        group: Group::Logging,
        form: Form::Text("text|json"),
        default: "text",
        help: "How it is logged, to standard error",
        role: Role::Open,
        set: |config, text| {
            config.log_format = text.parse()?;
            Ok(())
        },
        show: |config| config.log_format.to_string(),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, markdown_table};
    use crate::duration;

    #[test]
    fn every_default_is_shown_as_it_stands_in_the_table() {
        let config = Config::default();
        for setting in SETTINGS.iter().filter(|setting| setting.role == Role::Open) {
            assert_eq!(setting.shown(&config).unwrap(), setting.default, "{}", setting.name);
        }
    }

    #[test]
    fn names_are_unique_and_help_lines_are_one_line_without_a_full_stop() {
        let mut names: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SETTINGS.len());
        for Setting { name, help, .. } in SETTINGS {
            assert!(!help.contains('\n') && !help.ends_with('.') && help.len() < 120, "{name}");
        }
    }

    #[test]
    fn durations_keep_to_the_bounds_that_the_help_states() {
        for setting in SETTINGS.iter().filter(|setting| setting.form == Form::Duration) {
            let error = (setting.set)(&mut Config::unset(), "0s").unwrap_err();
            let bounds = error.strip_prefix("expected a duration from ").unwrap();
            assert!(setting.help.ends_with(&format!("({bounds})")), "{}: {bounds}", setting.name);
        }
        assert_eq!(duration::parse("7d", SHORTEST..=LONGEST), Ok(LONGEST));
    }

    #[test]
    fn the_markdown_table_has_a_row_for_each_setting_that_exists() {
        let table = markdown_table();
        let wait = "| `AISEKI_WAIT_TIMEOUT` | `--wait-timeout` | `5m` | \
                    A wait ends after so long (100ms to 7d) |";
        assert!(table.lines().any(|line| line == wait), "{table}");
    }
}
