//! `aiseki export` and `aiseki import`: from one machine to many.

use std::os::unix::fs::PermissionsExt as _;

use aiseki_testkit::{Postgres, Redis};

use crate::program::Program;
use crate::running::{Running, TOKEN};

#[test]
fn what_one_machine_had_goes_on_on_many() {
    let server = Running::start(&[]);
    for title in ["a", "b", "c"] {
        server.call("POST", "/admin/topics", TOKEN, &format!("{{ \"title\": \"{title}\" }}"));
    }
    server.done(&["bans", "add", "--address", "192.0.2.0/24", "--reason", "spam"]);
    server.done(&["bans", "add", "--address", "198.51.100.7", "--reason", "x", "--for", "7d"]);
    server.done(&["bans", "remove", "2"]);
    let people: Vec<String> = (0..4).map(|_| server.person()).collect();
    let mut rooms = Vec::new();
    for pair in people.chunks(2) {
        server.join(&pair[0], 2, 2);
        rooms.push(server.join(&pair[1], 2, 2)["room_id"].as_str().expect("a room").to_owned());
    }
    // Who blocks somebody never meets them again, wherever that is.
    let (here, seat) = (format!("/api/rooms/{}", rooms[1]), "{ \"seat\": 2 }");
    server.call("POST", &format!("{here}/block"), &people[2], seat);
    let reason = "{ \"seat\": 2, \"reason\": \"spam\" }";
    server.call("POST", &format!("{here}/report"), &people[2], reason);
    // The second room is over.
    server.done(&["rooms", "close", &rooms[1]]);

    // While the server runs; nobody else may read the file, and it is never replaced.
    let program = server.program();
    let ended = program.run(&["export", "out.jsonl"]);
    assert_eq!(
        ended.stdout, "out.jsonl: 3 topics, 1 bans, 2 conversations, 1 blocks, 1 reports\n",
        "{}",
        ended.stderr
    );
    let file = program.path("out.jsonl");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(program.run(&["export", "out.jsonl"]).code, Some(1));

    let redis = Redis::start().expect("a Redis");
    let database = Postgres::shared().fresh_database().expect("a database");
    let import = |arguments: &[&str]| {
        program.run(&[&["import"], arguments, &["--database-url", &database]].concat())
    };
    let first = import(&["out.jsonl"]);
    assert_eq!((first.code, first.stderr.as_str()), (Some(0), ""));
    let last = "conversations: 2 of 2 new\nblocks: 1 of 1 new\nreports: 1 of 1 new\n";
    assert!(first.stdout.ends_with(last), "{}", first.stdout);
    for again in [import(&["out.jsonl"]), import(&["--from", "aiseki-data"])] {
        assert_eq!(again.code, Some(0), "{}", again.stderr);
        let counts = again.stdout.lines().all(|line| line.contains(": 0 of "));
        assert!(counts, "the second time changes nothing: {}", again.stdout);
    }
    drop(server);

    let many = Program::new()
        .variable("AISEKI_REDIS_URL", &redis.url())
        .variable("AISEKI_DATABASE_URL", &database)
        .variable("AISEKI_ADMIN_TOKEN", TOKEN);
    let many = Running::start_program(many, &[]);
    for person in &people[..2] {
        let state = many.call("GET", "/api/matching", person, "");
        assert_eq!(
            (&state["status"], &state["room_id"]),
            (&"matched".into(), &rooms[0].as_str().into())
        );
    }
    let state = many.call("GET", "/api/matching", &people[2], "");
    assert_eq!(state["status"], "idle", "{state}");
    let reports = many.call("GET", "/admin/reports", TOKEN, "");
    assert_eq!(reports["reports"][0]["reason"], "spam", "{reports}");
    for person in &people[2..] {
        assert_eq!(many.join(person, 2, 2)["status"], "waiting", "they have blocked each other");
    }
    assert_eq!(many.join(&many.person(), 2, 2)["status"], "matched");
    // Numbers that were given out once never come back.
    let topic = many.call("POST", "/admin/topics", TOKEN, "{ \"title\": \"d\" }");
    assert_eq!(topic["id"], 4, "{topic}");
    let added = many.done(&["bans", "add", "--address", "203.0.113.9", "--reason", "x"]);
    assert!(added.starts_with("ban 3: "), "{added}");
}

#[test]
fn an_import_that_cannot_be_whole_changes_nothing() {
    let server = Running::start(&[]);
    server.call("POST", "/admin/topics", TOKEN, "{ \"title\": \"a\" }");
    server.done_here(&["export", "out.jsonl"]);
    let program = server.program();
    let lines = std::fs::read_to_string(program.path("out.jsonl")).unwrap();
    let database = Postgres::shared().fresh_database().expect("a database");
    let refused = |text: &str, because: &str| {
        std::fs::write(program.path("bad.jsonl"), text).unwrap();
        let ended = program.run(&["import", "bad.jsonl", "--database-url", &database]);
        assert_eq!(ended.code, Some(1), "{because}");
        assert!(ended.stderr.contains(because), "{because}: {}", ended.stderr);
        assert!(ended.stderr.starts_with("aiseki: nothing was imported: "), "{}", ended.stderr);
    };
    let count = |table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        Postgres::shared().psql(&database, &sql).expect("an answer").trim().to_owned()
    };
    let cut: Vec<&str> = lines.lines().take(3).collect();
    refused(&cut.join("\n"), "the end of the export is missing");
    let short: Vec<&str> = lines.lines().filter(|line| !line.starts_with("{\"topic\"")).collect();
    refused(&short.join("\n"), "lines are missing");
    refused("", "no export of aiseki");
    refused(&lines.replace("\"version\":1", "\"version\":9"), "line 1 is of version 9");
    refused(&lines.replace("\"title\"", "\"titel\""), "line 3 is not understood");
    refused(&lines.repeat(2), "something follows the end of the export");
    refused(
        &lines.replace("{\"id\":1,", "{\"id\":-1,"),
        "topic -1 has a number that no topic can have",
    );
    assert_eq!((count("topics"), count("session_keys")), ("0".into(), "0".into()));

    let ended = program.run(&["import", "out.jsonl", "--database-url", &database]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let other = lines.replace("\"created_at_ms\":1", "\"created_at_ms\":2");
    refused(&other, "topic 1 of the database is another one");
    assert_eq!(count("topics"), "1");
    // A database on which a server has already started has a key of its own.
    Postgres::shared().psql(&database, "UPDATE session_keys SET secret = sha256('x')").unwrap();
    refused(&lines, "session key 1 of the database is another one");
}
