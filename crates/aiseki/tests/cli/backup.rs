//! `aiseki backup`: a copy that is taken while the server works, and works itself.

use std::os::unix::fs::PermissionsExt as _;

use crate::program::Program;
use crate::server::Server;

#[test]
fn a_copy_taken_under_load_has_the_places_of_everybody_who_waits() {
    let program = Program::new();
    let server = Server::start(&program, &["--rate-limit", "off"]);
    let (first, last) = (server.session(), server.session());
    let join = r#"{"topic_id":6,"room_type":2}"#;
    let (status, waiting) = server.ask("POST", "/api/matching", &first, join);
    assert_eq!((status, &waiting["status"]), (202, &"waiting".into()));

    // Others come and go meanwhile, on the topics before.
    let url = server.url();
    let crowd = ["simulate", "--server", &url, "--people", "40", "--topics", "3", "--for", "4s"];
    let mut crowd = program.command(&crowd).stdout(std::process::Stdio::null()).spawn().unwrap();
    let ended = program.run(&["backup", "copy.db"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("copy.db: "), "{}", ended.stdout);
    let copy = program.path("copy.db");
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let again = program.run(&["backup", "copy.db"]);
    assert_eq!(again.code, Some(1));
    assert_eq!(again.stderr, "aiseki: copy.db is there already: choose another name\n");
    // Nobody was disturbed: the simulated people check what has to hold.
    assert!(crowd.wait().unwrap().success());
    drop(server);

    std::fs::create_dir(program.path("other")).unwrap();
    std::fs::rename(&copy, program.path("other/aiseki.db")).unwrap();
    let server = Server::start(&program, &["--data-dir", "other"]);
    let (status, found) = server.ask("GET", "/api/matching", &first, "");
    assert_eq!((status, &found["waiting_since"]), (200, &waiting["waiting_since"]), "{found}");
    // The session that never joined is valid there too, and completes the room.
    let (status, matched) = server.ask("POST", "/api/matching", &last, join);
    assert_eq!((status, &matched["status"]), (200, &"matched".into()), "{matched}");
}

#[test]
fn there_is_no_copy_of_what_is_no_store() {
    let program = Program::new();
    let ended = program.run(&["backup", "copy.db"]);
    assert_eq!(ended.code, Some(1));
    let line = "aiseki: ./aiseki-data has no store: name the server's --data-dir\n";
    assert_eq!(ended.stderr, line);

    std::fs::create_dir(program.path("other")).unwrap();
    let program =
        program.file("other/aiseki.db", "not a database, although it has the name of one");
    let ended = program.run(&["backup", "copy.db", "--data-dir", "other"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.starts_with("aiseki: other/aiseki.db is damaged"), "{}", ended.stderr);
    let left: Vec<_> = std::fs::read_dir(program.path(".")).unwrap().collect();
    assert_eq!(left.len(), 1, "no part of a copy is left: {left:?}");
}
