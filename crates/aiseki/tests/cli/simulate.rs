//! `aiseki simulate`: the demonstration in one command, and against a server that is there.

use serde_json::Value;

use crate::program::Program;
use crate::running::{Running, TOKEN};

#[test]
fn simulated_people_meet_on_a_server_of_their_own_and_everything_holds() {
    let program = Program::new();
    let ended = program.run(&["simulate", "--people", "40", "--for", "5s", "--json"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(report["waits"]["seated"].as_u64() > Some(10), "{report}");
    assert!(report["invariants"].as_array().unwrap().iter().all(|held| held["held"] == true));
    for told in ["polls", "long_polls", "streams", "sockets"] {
        assert!(report["told"][told].as_u64() > Some(0), "{told}: {report}");
    }
    let left: Vec<_> = std::fs::read_dir(program.path(".")).unwrap().collect();
    assert!(left.is_empty(), "nothing is left in the working directory: {left:?}");
}

#[test]
fn the_limits_of_a_server_are_respected_and_nobody_is_left_behind() {
    let server = Running::start(&["--address-rate-limit", "20/2s"]);
    server.call("POST", "/admin/topics", TOKEN, r#"{"title":"a"}"#);
    let ended = server.program().run(&[
        "simulate",
        "--people",
        "20",
        "--for",
        "3s",
        "--server",
        &server.url(),
    ]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("which was respected"), "{}", ended.stdout);
    let topics = server.call("GET", "/api/topics", "", "");
    let waiting = &topics["topics"][0]["waiting"];
    assert_eq!(*waiting, serde_json::json!({ "2": 0, "3": 0 }), "{topics}");
}

#[test]
fn no_server_and_wrong_numbers_are_said_in_one_line() {
    let ended = Program::new().run(&["simulate", "--server", "http://127.0.0.1:1", "--for", "1s"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.stderr, "aiseki: no server answers at http://127.0.0.1:1\n");
    for wrong in [&["--people", "0"][..], &["--for", "5"], &["--server", "ftp://a"]] {
        let ended = Program::new().run(&[&["simulate"], wrong].concat());
        assert_eq!(ended.code, Some(2), "{wrong:?}: {}", ended.stderr);
    }
}
