//! Settings: which layer counts, what is refused, and what `aiseki config` says.

use std::fs;
use std::path::Path;

use aiseki::config::markdown_table;
use serde_json::Value;

use crate::program::Program;

/// The value of a setting and where it came from, as `aiseki config --json` says.
fn decided(program: &Program, name: &str, flags: &[&str]) -> (Value, Value) {
    let ended = program.run(&[&["config", "--json"], flags].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    let rows = all["settings"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name).unwrap();
    (row["value"].clone(), row["from"].clone())
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default() {
    let name = "wait_timeout";
    let program = Program::new();
    let (value, from) = decided(&program, name, &[]);
    assert_eq!((value, &from["kind"]), ("5m".into(), &"default".into()));

    let program = program.file("aiseki.toml", "# ours\nwait_timeout = '4m'\n");
    let (value, from) = decided(&program, name, &[]);
    assert_eq!((value, &from["kind"]), ("4m".into(), &"file".into()));
    assert_eq!((&from["path"], &from["line"]), (&"./aiseki.toml".into(), &2.into()));

    let program = program.variable("AISEKI_WAIT_TIMEOUT", "180s");
    let (value, from) = decided(&program, name, &[]);
    assert_eq!((value, &from["name"]), ("3m".into(), &"AISEKI_WAIT_TIMEOUT".into()));

    let (value, from) = decided(&program, name, &["--wait-timeout", "2m"]);
    assert_eq!((value, &from["name"]), ("2m".into(), &"--wait-timeout".into()));
}

#[test]
fn the_file_is_the_one_that_is_named_and_must_exist_then() {
    let program = Program::new()
        .file("aiseki.toml", "demo = true")
        .file("one.toml", "demo = false")
        .file("two.toml", "max_connections = 2");
    assert_eq!(decided(&program, "demo", &["--config", "one.toml"]).0, "off");
    let program = program.variable("AISEKI_CONFIG", "two.toml");
    assert_eq!(decided(&program, "max_connections", &[]).0, "2");
    assert_eq!(decided(&program, "max_connections", &["--config", "one.toml"]).0, "16384");
    let line = program.refused(&["--config", "none.toml"]);
    assert!(line.starts_with("--config is \"none.toml\": "), "{line}");
    let line = Program::new().variable("AISEKI_CONFIG", "none.toml").refused(&[]);
    assert!(line.starts_with("AISEKI_CONFIG is \"none.toml\": "), "{line}");
}

#[test]
fn a_bad_value_stops_the_start_with_one_line_that_names_it_as_it_was_given() {
    let unit = "a duration needs a unit (ms, s, m, h or d), such as 5s";
    let program = Program::new();
    assert_eq!(
        program.refused(&["--wait-timeout", "5"]),
        format!("--wait-timeout is \"5\": {unit}")
    );
    assert_eq!(
        program.refused(&["serve", "--wait-timeout", "-5s"]),
        "--wait-timeout is \"-5s\": expected a whole number and a unit, such as 300s, 5m or 1500ms"
    );
    let variable = Program::new().variable("AISEKI_MAX_WAIT", "56s");
    assert_eq!(
        variable.refused(&[]),
        "AISEKI_MAX_WAIT is \"56s\": expected a duration from 1s to 55s"
    );
    let file = Program::new().file("aiseki.toml", "\nroom_types = '2,9'");
    assert_eq!(
        file.refused(&["config"]),
        "room_types in ./aiseki.toml (line 2) is \"2,9\": a room of 9 is outside 2 to 8"
    );
}

#[test]
fn every_setting_refuses_nonsense_in_one_line() {
    for (flag, value) in [
        ("--listen", "localhost"),
        ("--base-path", "/a/../b"),
        ("--allowed-origins", "https://a.example/x"),
        ("--trusted-proxies", "10.0.0.0/99"),
        ("--admin-token", "short"),
        ("--max-wait", "0s"),
        ("--demo", "perhaps"),
        ("--data-dir", ""),
        ("--durability", "some"),
        ("--redis-url", "redis://localhost"),
        ("--database-url", "postgres://localhost"),
        ("--room-types", "3>4"),
        ("--fallback-after", "a\nb"),
        ("--merge-fallback", "1"),
        ("--presence-timeout", "99999999999999999999d"),
        ("--reservation-ttl", "2h"),
        ("--rate-limit", "30"),
        ("--address-rate-limit", "off"),
        ("--max-connections", "0"),
        ("--log", "inof"),
        ("--log-format", "xml"),
    ] {
        let line = Program::new().refused(&[flag, value]);
        assert!(line.starts_with(flag), "{line}");
    }
}

#[test]
fn a_mistyped_key_stops_the_start_and_a_mistyped_variable_is_a_warning() {
    let file = Program::new().file("aiseki.toml", "demo = true\nwait_timout = '5m'");
    assert_eq!(
        file.refused(&[]),
        "./aiseki.toml: line 2: \"wait_timout\" is not a setting: did you mean wait_timeout?"
    );
    let ended = Program::new().variable("AISEKI_LISTN", "x").run(&["config"]);
    assert_eq!(ended.code, Some(0));
    assert_eq!(
        ended.stderr,
        "aiseki: warning: AISEKI_LISTN is not a setting and is ignored: \
         did you mean AISEKI_LISTEN?\n"
    );
}

#[test]
fn a_file_that_is_no_toml_is_refused_with_line_and_column() {
    let line = Program::new().file("aiseki.toml", "demo = true\nlisten = \n").refused(&[]);
    assert!(line.starts_with("./aiseki.toml: line 2, column "), "{line}");
}

#[test]
fn a_secret_may_stand_in_a_file_and_is_never_shown() {
    let token = "correct-horse-battery";
    let program = Program::new().file("token", &format!("{token}\n"));
    for program in [
        Program::new().variable("AISEKI_ADMIN_TOKEN", token),
        Program::new().file("aiseki.toml", &format!("admin_token = '{token}'")),
    ] {
        for arguments in [&["config"][..], &["config", "--json"]] {
            let ended = program.run(arguments);
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            assert!(!ended.stdout.contains(token) && !ended.stderr.contains(token));
        }
    }
    let (value, from) = decided(&program, "admin_token", &["--admin-token-file", "token"]);
    assert_eq!((value, &from["name"]), (Value::Null, &"--admin-token-file".into()));

    let program = program.variable("AISEKI_ADMIN_TOKEN_FILE", "token");
    let (_, from) = decided(&program, "admin_token", &[]);
    assert_eq!(from["name"], "AISEKI_ADMIN_TOKEN_FILE");
    let program = program.variable("AISEKI_ADMIN_TOKEN", token);
    assert_eq!(
        program.refused(&[]),
        "AISEKI_ADMIN_TOKEN and AISEKI_ADMIN_TOKEN_FILE are both given: use one of them"
    );
    let line = Program::new().refused(&["--admin-token-file", "none"]);
    assert!(line.starts_with("--admin-token-file: \"none\": "), "{line}");
}

#[test]
fn demonstration_topics_are_turned_off_by_either_flag() {
    let program = Program::new();
    assert_eq!(decided(&program, "demo", &["--no-demo"]).0, "off");
    assert_eq!(decided(&program, "demo", &["--demo", "off"]).0, "off");
    assert_eq!(decided(&program, "demo", &[]).0, "on");
}

#[test]
fn lists_are_normalised_and_their_flag_may_be_repeated() {
    let flags =
        ["--allowed-origins", "https://A.example:443", "--allowed-origins", "http://b.example"];
    let (value, _) = decided(&Program::new(), "allowed_origins", &flags);
    assert_eq!(value, serde_json::json!(["https://a.example", "http://b.example"]));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = Program::new()
        .command(&["config"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn the_readme_has_exactly_the_table_of_settings() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    // Until there is a README, there is no table to be wrong.
    let Ok(readme) = fs::read_to_string(readme) else { return };
    assert!(
        readme.contains(&markdown_table()),
        "the settings table of README.md is out of date: replace it by the output of \
         `cargo run -- config --markdown`"
    );
}

#[test]
fn a_place_that_no_store_can_be_at_stops_the_start_and_is_named() {
    let redis = aiseki_testkit::Redis::start().expect("a Redis");
    let database = aiseki_testkit::Postgres::shared().fresh_database().expect("a database");
    let start = |redis: &str, database: &str| {
        let program = Program::new().variable("AISEKI_REDIS_URL", redis);
        program.variable("AISEKI_DATABASE_URL", database).run(&["serve", "--listen", "127.0.0.1:0"])
    };
    let ended = start(&redis.url(), "postgres://u:hunter2@127.0.0.1:99999/postgres");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("AISEKI_DATABASE_URL"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
    let ended = start(&format!("redis://127.0.0.1:{}/99", redis.port()), &database);
    assert_ne!(ended.code, Some(0), "{}", ended.stderr);
    let line = ended.stderr.lines().last().unwrap_or_default();
    assert!(line.contains("no database of the number in AISEKI_REDIS_URL"), "{}", ended.stderr);
}
