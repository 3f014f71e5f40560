use crate::tree::{Text, files, paths_after};

/// Every module of the service and what it may import. Arrows go down only.
const FLOORS: &[(&str, &[&str])] = &[
    // The ground.
    ("clock", &[]),
    ("duration", &[]),
    ("metrics", &[]),
    ("port", &[]),
    // Each alone.
    ("bans", &["port"]),
    ("conversations", &["port"]),
    ("rate_limit", &["duration"]),
    ("records", &["port"]),
    ("reports", &["port"]),
    ("sessions", &[]),
    ("topics", &["port"]),
    // What was decided: it is read by those above, and knows none of them.
    ("config", &["duration", "rate_limit"]),
    // Use cases.
    ("matching", &["bans", "port", "rate_limit", "topics"]),
    ("operators", &["bans", "conversations", "matching", "port", "reports", "topics"]),
    ("push", &[]),
    ("rooms", &["port", "rate_limit"]),
    (
        "shared",
        &["bans", "clock", "conversations", "matching", "port", "rate_limit", "records", "rooms"],
    ),
    // The east wing: the only code that talks to a store.
    (
        "store",
        &[
            "bans",
            "clock",
            "config",
            "conversations",
            "matching",
            "port",
            "rate_limit",
            "records",
            "reports",
            "rooms",
            "sessions",
            "shared",
            "topics",
        ],
    ),
    // The west wing: the only code that knows HTTP.
    (
        "http",
        &[
            "bans",
            "clock",
            "config",
            "conversations",
            "matching",
            "metrics",
            "operators",
            "port",
            "push",
            "reports",
            "rooms",
            "sessions",
            "topics",
        ],
    ),
    // The wiring: the only place that names adapters.
    (
        "app",
        &[
            "bans",
            "config",
            "conversations",
            "http",
            "matching",
            "metrics",
            "operators",
            "port",
            "push",
            "reports",
            "rooms",
            "sessions",
            "shared",
            "store",
            "topics",
        ],
    ),
    ("commands", &["app", "clock", "config", "duration"]),
    // Parsers of outside bytes, for fuzzing.
    ("fuzz", &["config", "duration", "http", "rate_limit", "sessions"]),
];

/// The module that a file belongs to.
fn module(file: &Text) -> &str {
    let inside = file.path.strip_prefix("crates/aiseki/src/").expect("a source of the service");
    inside.split(['/', '.']).next().expect("a name")
}

#[test]
fn every_import_goes_down() {
    let mut wrong = Vec::new();
    for file in files("crates/aiseki/src", ".rs") {
        let module = module(&file);
        if ["lib", "main"].contains(&module) {
            continue;
        }
        let allowed = FLOORS.iter().find(|(name, _)| *name == module);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("{module} has no floor: add it here"));
        for path in paths_after(&file.text, "crate::") {
            let target = path.split("::").next().expect("a name");
            if target != module && !allowed.contains(&target) {
                wrong.push(format!("{} imports {path}", file.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_may_be_imported_is_imported() {
    let sources = files("crates/aiseki/src", ".rs");
    for (name, allowed) in FLOORS {
        let own: Vec<_> = sources.iter().filter(|file| module(file) == *name).collect();
        assert!(!own.is_empty(), "there is no module {name}");
        for target in *allowed {
            let used = own.iter().any(|file| {
                let paths = paths_after(&file.text, "crate::");
                paths.iter().any(|path| path.split("::").next() == Some(target))
            });
            assert!(used, "{name} does not import {target} any more: take it from the table");
        }
    }
}

#[test]
fn each_technology_is_known_in_one_place() {
    let sources = files("crates/aiseki/src", ".rs");
    for (technology, place) in [
        ("axum::", "http"),
        ("tower_http::", "http"),
        ("hyper::", "http"),
        ("utoipa::", "http"),
        ("rusqlite::", "store"),
        ("redis::cmd", "store"),
        ("tokio_postgres::", "store"),
        ("deadpool_postgres::", "store"),
        ("clap::", "commands"),
        ("prometheus_client::", "metrics"),
    ] {
        for file in &sources {
            let module = module(file);
            // The flags of the server are made from the table of settings.
            let flags = technology == "clap::" && file.path.ends_with("config/flags.rs");
            // Operators' commands speak HTTP as a client.
            let client = technology == "hyper::" && module == "commands";
            if module != place && !flags && !client {
                let found = paths_after(&file.text, technology);
                assert!(found.is_empty(), "{} knows {technology}", file.path);
            }
        }
    }
}

#[test]
fn the_rule_depends_on_nothing() {
    for file in files("crates/aiseki-lobby/src", ".rs") {
        for word in ["std::time", "std::io", "std::fs", "std::env", "std::net", "std::thread"] {
            assert!(paths_after(&file.text, &format!("{word}::")).is_empty(), "{}", file.path);
        }
    }
    let manifest = files("crates/aiseki-lobby", "Cargo.toml").remove(0).text;
    assert!(!manifest.contains("\n[dependencies]"), "{manifest}");
}
