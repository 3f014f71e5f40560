//! `aiseki backup`: a copy that is taken while the server works, and works itself.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::json;

use crate::program::Program;
use crate::running::{Running, TOKEN};

#[test]
fn a_copy_taken_under_load_has_the_places_of_everybody_who_waits() {
    let server = Running::start(&["--rate-limit", "off"]);
    for title in ["a", "b"] {
        server.call("POST", "/admin/topics", TOKEN, &json!({ "title": title }).to_string());
    }
    let (first, last) = (server.person(), server.person());
    let waiting = server.join(&first, 2, 2);
    assert_eq!(waiting["status"], "waiting");

    // Others come and go meanwhile, on the topic before, and check what has to hold.
    let url = server.url();
    let crowd = ["simulate", "--server", &url, "--people", "40", "--topics", "1", "--for", "4s"];
    let program = server.program();
    let mut crowd = program.command(&crowd).stdout(Stdio::null()).spawn().unwrap();
    let ended = program.run(&["backup", "copy.db"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("copy.db: "), "{}", ended.stdout);
    let copy = program.path("copy.db");
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let again = program.run(&["backup", "copy.db"]);
    assert_eq!(again.code, Some(1));
    assert_eq!(again.stderr, "aiseki: copy.db is there already: choose another name\n");
    assert!(crowd.wait().unwrap().success());

    let other = Program::new();
    std::fs::create_dir(other.path("data")).unwrap();
    std::fs::rename(&copy, other.path("data/aiseki.db")).unwrap();
    let other = Running::start_program(other, &["--data-dir", "data"]);
    let found = other.call("GET", "/api/matching", &first, "");
    assert_eq!(found["waiting_since"], waiting["waiting_since"], "{found}");
    // The session that never joined is valid there too, and completes the room.
    assert_eq!(other.join(&last, 2, 2)["status"], "matched");
}

#[test]
fn there_is_no_copy_of_what_is_no_store() {
    let program = Program::new();
    let ended = program.run(&["backup", "copy.db"]);
    assert_eq!(ended.code, Some(1));
    let line = "aiseki: ./aiseki-data has no store: name the server's --data-dir\n";
    assert_eq!(ended.stderr, line);

    std::fs::create_dir(program.path("other")).unwrap();
    let program = program.file("other/aiseki.db", "no database, although it has the name of one");
    let ended = program.run(&["backup", "copy.db", "--data-dir", "other"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.starts_with("aiseki: other/aiseki.db is damaged"), "{}", ended.stderr);
    let left: Vec<_> = std::fs::read_dir(program.path(".")).unwrap().collect();
    assert_eq!(left.len(), 1, "no part of a copy is left: {left:?}");
}
