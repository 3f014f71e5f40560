//! `aiseki doctor`: what it finds in stores that were broken on purpose.

use std::io::{Seek as _, Write as _};

use aiseki_testkit::{Postgres, Redis};
use serde_json::Value;

use crate::program::Program;
use crate::running::{Running, TOKEN};

/// What the doctor finds wrong: store, subject and text of each, and its exit code.
fn wrong(program: &Program, flags: &[&str]) -> (Option<i32>, Vec<String>) {
    let ended = program.run(&[&["doctor", "--json"], flags].concat());
    let found: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let findings = found["findings"].as_array().expect("a list").iter();
    let wrong = findings.filter(|finding| finding["level"] == "wrong");
    let line = |finding: &Value| {
        let word = |name: &str| finding[name].as_str().expect("a text").to_owned();
        format!("{} {}: {}", word("store"), word("subject"), word("text"))
    };
    (ended.code, wrong.map(line).collect())
}

#[test]
fn an_embedded_store_is_whole_or_damaged() {
    let empty = Program::new();
    assert_eq!(wrong(&empty, &[]), (Some(0), Vec::new()));

    let server = Running::start(&[]);
    for n in 0..40 {
        let title =
            format!("{{ \"title\": \"topic {n}, with some words to fill a page of a file\" }}");
        server.call("POST", "/admin/topics", TOKEN, &title);
    }
    // Beside the server that has it open.
    let ended = server.program().run(&["doctor"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
    assert!(ended.stdout.contains("every page and index"), "{}", ended.stdout);
    let copy = Program::new();
    std::fs::create_dir(copy.path("data")).unwrap();
    let file = copy.path("data/aiseki.db");
    server.done_here(&["backup", file.to_str().unwrap()]);
    assert_eq!(wrong(&copy, &["--data-dir", "data"]), (Some(0), Vec::new()));
    let mut file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    file.seek(std::io::SeekFrom::Start(4096)).unwrap();
    file.write_all(&[0xa5; 3000]).unwrap();
    let (code, found) = wrong(&copy, &["--data-dir", "data"]);
    assert!(code == Some(1) && found[0].contains("put a backup in its place"), "{found:?}");
}

#[test]
fn what_was_broken_in_the_shared_stores_is_named() {
    let redis = Redis::start().expect("a Redis");
    let database = Postgres::shared().fresh_database().expect("a database");
    let program = || {
        Program::new()
            .variable("AISEKI_REDIS_URL", &redis.url())
            .variable("AISEKI_DATABASE_URL", &database)
            .variable("AISEKI_ADMIN_TOKEN", TOKEN)
    };
    let doctor = program();
    // The shared database of the tests does not wait for the disk.
    let healthy = vec![
        "postgresql durability: fsync is off: a power cut can destroy the database; turn it on"
            .to_owned(),
    ];
    assert_eq!(wrong(&doctor, &[]), (Some(1), healthy.clone()), "before the first start");

    let server = Running::start_program(program(), &[]);
    let topic = server.call("POST", "/admin/topics", TOKEN, "{ \"title\": \"a\" }");
    let topic = topic["id"].as_i64().expect("a number");
    let people = [server.person(), server.person()];
    server.join(&people[0], topic, 2);
    let matched = server.join(&people[1], topic, 2);
    assert_eq!(matched["status"], "matched", "{matched}");
    server.join(&server.person(), topic, 2);
    assert_eq!(wrong(&doctor, &[]), (Some(1), healthy), "with a server at work");
    let (_, found) = wrong(&doctor, &["--wait-timeout", "4m"]);
    let policy = found.iter().find(|line| line.starts_with("redis policy: "));
    assert!(policy.is_some_and(|it| it.contains("wait_timeout: 5m there, 4m here")), "{found:?}");
    // Full: whoever joins now is answered 503.
    redis.command("CONFIG SET maxmemory 100kb").expect("Redis answers");
    let (_, found) = wrong(&doctor, &[]);
    assert!(found.iter().any(|line| line.starts_with("redis memory: ")), "{found:?}");
    redis.command("CONFIG SET maxmemory 0").expect("Redis answers");
    drop(server);

    let ghost = "000000000000000000000000000000aa";
    let room = matched["room_id"].as_str().expect("a room");
    redis.command(&format!("ZADD {{aiseki}}:matching:queue:{topic}:2 1 {ghost}")).unwrap();
    redis.command(&format!("HSET {{aiseki}}:matching:room:{ghost} room {room}")).unwrap();
    redis
        .command(
            "HSET {aiseki}:matching:waiting:000000000000000000000000000000bb queue 1:3 since 1",
        )
        .unwrap();
    redis.command("HSET {aiseki}:matching:reservations x y").unwrap();
    redis.command("SET {aiseki}:layout 99").unwrap();
    let sql = "UPDATE conversations SET ended_at = now()";
    Postgres::shared().psql(&database, sql).expect("changed");
    let (code, found) = wrong(&doctor, &[]);
    assert_eq!(code, Some(1));
    for begins in [
        "redis layout: version 99",
        "redis queues: 1 of 2 people",
        "redis reservations: 1 of 1 are not readable",
        "postgresql rooms: 2 people hold a seat of a room that is not live",
        "both seats: 1 people sit in Redis and not in PostgreSQL",
        "both waits: 1 people wait and stand in no queue",
    ] {
        assert!(found.iter().any(|line| line.starts_with(begins)), "{begins}: {found:#?}");
    }
}

#[test]
fn stores_that_are_away_are_a_line_each() {
    let port = aiseki_testkit::free_port().expect("a port");
    let program = Program::new()
        .variable("AISEKI_REDIS_URL", &format!("redis://:hunter2@127.0.0.1:{port}"))
        .variable("AISEKI_DATABASE_URL", &format!("postgres://me:hunter2@127.0.0.1:{port}/x"));
    let (code, found) = wrong(&program, &[]);
    assert_eq!((code, found.len()), (Some(1), 2), "{found:?}");
    for (line, store) in found.iter().zip(["redis", "postgresql"]) {
        assert!(line.starts_with(&format!("{store} reachable: ")), "{line}");
        assert!(!line.contains("hunter2"), "{line}");
    }
}
