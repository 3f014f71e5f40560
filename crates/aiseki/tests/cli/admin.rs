//! Operator commands against a running server.

use serde_json::Value;

use crate::program::Program;
use crate::running::{Running, TOKEN};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn topics_are_added_listed_and_changed() {
    let server = Running::start(&[]);
    assert_eq!(server.done(&["topics"]), "There are no topics.\n");
    assert_eq!(server.done(&["topics", "add", "猫と暮らす"]), "topic 1 (active): 猫と暮らす\n");
    let second = json(&server.done(&["topics", "add", "Later", "--inactive", "--json"]));
    assert_eq!((&second["id"], &second["active"]), (&2.into(), &false.into()));
    assert_eq!(server.done(&["topics", "set", "2", "--active"]), "topic 2 (active): Later\n");
    assert_eq!(
        server.done(&["topics", "set", "1", "--title", "犬", "--inactive"]),
        "topic 1 (inactive): 犬\n"
    );
    let table = server.done(&["topics", "list"]);
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["ID", "ACTIVE", "WAITING", "TITLE"]);
    assert_eq!(rows[1], ["1", "no", "2:0", "3:0", "犬"]);
    assert_eq!(rows[2], ["2", "yes", "2:0", "3:0", "Later"]);
    let all = json(&server.done(&["topics", "--json"]));
    assert_eq!(all["topics"][0]["title"], "犬");
    assert_eq!(all, server.call("GET", "/admin/topics", TOKEN, ""));
}

#[test]
fn bans_are_added_listed_and_removed() {
    let server = Running::start(&[]);
    assert_eq!(server.done(&["bans"]), "There are no bans.\n");
    assert_eq!(
        server.done(&["bans", "add", "--address", "203.0.113.0/24", "--reason", "floods"]),
        "ban 1: address 203.0.113.0/24, without end\n"
    );
    let session = "0123456789abcdef0123456789abcdef";
    let ban = json(&server.done(&["bans", "add", "--session", session, "--for", "7d", "--json"]));
    assert_eq!((&ban["id"], &ban["session"]), (&2.into(), &session.into()));
    let time = |name: &str| ban[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let length = time("expires_at").duration_since(time("created_at"));
    assert!((length.as_secs() - 7 * 86_400).abs() < 60, "{ban}");
    let table = server.done(&["bans", "list"]);
    assert!(table.contains("floods") && table.contains(session), "{table}");
    assert_eq!(server.done(&["bans", "remove", "1"]), "ban 1 is removed\n");
    assert_eq!(server.done(&["bans", "remove", "2", "--json"]), "");
    assert_eq!(server.done(&["bans"]), "There are no bans.\n");
}

#[test]
fn a_session_is_banned_by_what_the_list_of_rooms_shows_and_is_refused_then() {
    let server = Running::start(&[]);
    server.done(&["topics", "add", "a"]);
    let people = [server.person(), server.person()];
    for person in &people {
        server.join(person, 1, 2);
    }
    let rooms = json(&server.done(&["rooms", "--json"]));
    let seats = rooms["rooms"][0]["seats"].as_array().unwrap();
    for seat in seats {
        server.done(&["bans", "add", "--session", seat["session"].as_str().unwrap()]);
    }
    for person in &people {
        assert_eq!(server.join(person, 1, 2)["code"], "banned");
    }
}

#[test]
fn queues_and_rooms_show_who_waits_and_who_sits_where() {
    let server = Running::start(&[]);
    server.done(&["topics", "add", "猫"]);
    server.done(&["topics", "add", "犬"]);
    assert_eq!(server.done(&["queues"]), "Nobody waits.\n");
    assert_eq!(server.done(&["rooms"]), "There are no live rooms.\n");

    let person = server.person();
    assert_eq!(server.join(&person, 1, 2)["status"], "waiting");
    let table = server.done(&["queues"]);
    let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((&row[..3], row[5]), (&["1", "2", "1"][..], "猫"), "{table}");
    assert_eq!(json(&server.done(&["queues", "--json"]))["queues"][0]["waiting"], 1);

    let room = server.join(&server.person(), 1, 2);
    assert_eq!(room["status"], "matched");
    let room = room["room_id"].as_str().unwrap();
    for list in [&["rooms"][..], &["rooms", "list", "--topic", "1"], &["rooms", "--topic", "1"]] {
        let table = server.done(list);
        assert_eq!(table.lines().filter(|line| line.starts_with(room)).count(), 2, "{table}");
    }
    assert_eq!(server.done(&["rooms", "list", "--topic", "2"]), "There are no live rooms.\n");
    assert_eq!(server.done(&["rooms", "close", room]), format!("room {room} is closed\n"));
    assert_eq!(server.done(&["rooms"]), "There are no live rooms.\n");
    let state = server.call("GET", "/api/matching", &person, "");
    assert_eq!((&state["status"], &state["reason"]), (&"idle".into(), &"room_closed".into()));
}

#[test]
fn what_does_not_exist_is_told_from_what_is_refused() {
    let server = Running::start(&[]);
    for arguments in [
        &["topics", "set", "9", "--active"][..],
        &["bans", "remove", "9"],
        &["rooms", "close", "0197a3c4-0000-7000-8000-000000000001"],
    ] {
        let ended = server.operate(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(5), ""), "{}", ended.stderr);
        assert!(ended.stderr.ends_with("(not_found)\n"), "{}", ended.stderr);
    }
    for (arguments, code) in [
        (&["topics", "add", ""][..], "invalid_title"),
        (&["bans", "add", "--address", "everywhere"], "invalid_ban"),
        (&["bans", "add", "--session", "somebody"], "invalid_ban"),
    ] {
        let ended = server.operate(arguments);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.ends_with(&format!("({code})\n")), "{}", ended.stderr);
    }
}

#[test]
fn a_wrong_token_is_told_from_a_server_that_has_none() {
    let server = Running::start(&[]);
    let other = Program::new().variable("AISEKI_ADMIN_TOKEN", "another-token-of-16");
    let ended = other.run(&["queues", "--server", &server.url()]);
    assert_eq!(ended.code, Some(4));
    let reason = "does not accept the admin token from AISEKI_ADMIN_TOKEN";
    assert!(ended.stderr.contains(reason), "{}", ended.stderr);

    let without = Running::start_program(Program::new(), &[]);
    for arguments in [&["queues"][..], &["topics", "set", "1", "--active"]] {
        let ended = other.run(&[arguments, &["--server", &without.url()]].concat());
        assert_eq!(ended.code, Some(4));
        assert!(ended.stderr.contains("has no admin routes"), "{}", ended.stderr);
        assert!(!ended.stderr.contains("another-token"), "{}", ended.stderr);
    }
}

#[test]
fn the_token_may_stand_in_a_file_or_in_the_configuration() {
    let server = Running::start(&[]);
    let url = server.url();
    let held = Program::new().file("token", &format!("{TOKEN}\n"));
    let ended = held.run(&["topics", "--server", &url, "--admin-token-file", "token"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let configured = Program::new()
        .file("aiseki.toml", &format!("admin_token = '{TOKEN}'"))
        .variable("AISEKI_SERVER", &url);
    let ended = configured.run(&["topics"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn a_server_with_a_base_path_is_reached_under_it() {
    let server = Running::start(&["--base-path", "/talk"]);
    let at = |url: &str| {
        let program = Program::new().variable("AISEKI_ADMIN_TOKEN", TOKEN);
        program.run(&["topics", "--server", url])
    };
    let ended = at(&format!("{}/talk/", server.url()));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let ended = at(&server.url());
    assert_eq!(ended.code, Some(4));
    assert!(ended.stderr.contains("add its base path"), "{}", ended.stderr);
}

#[test]
fn control_characters_in_what_operators_wrote_do_not_reach_the_terminal() {
    let server = Running::start(&[]);
    let reason = "red \u{1b}[31m\nsecond line";
    server.done(&["bans", "add", "--address", "203.0.113.7", "--reason", reason]);
    let table = server.done(&["bans"]);
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(!table.contains('\u{1b}') && table.contains(r"red \u{1b}[31m"), "{table}");
}
