//! Operator commands: what they say when there is nobody to say it to.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use crate::program::Program;

const TOKEN: &str = "correct-horse-battery";

fn operator() -> Program {
    Program::new().variable("AISEKI_ADMIN_TOKEN", TOKEN)
}

/// Something that is no aiseki: answers one connection with `answer` and hangs up.
fn stranger(answer: &'static str) -> (String, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answering = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(answer.as_bytes());
    });
    (url, answering)
}

#[test]
fn a_server_that_is_not_there_is_told_from_everything_else() {
    // The port was free a moment ago, and nobody takes it by chance so soon.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    for arguments in [&["topics"][..], &["bans", "list"], &["queues"], &["rooms", "close", "a"]] {
        let ended = operator().variable("AISEKI_SERVER", &url).run(arguments);
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        let line = format!("aiseki: no server answers at {url}: ");
        assert!(ended.stderr.starts_with(&line), "{}", ended.stderr);
    }
}

#[test]
fn a_server_that_hangs_up_or_is_no_aiseki_is_named() {
    let (url, answering) = stranger("");
    let ended = operator().run(&["queues", "--server", &url]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    answering.join().unwrap();

    let answer = "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 3\r\n\r\nno\n";
    let (url, answering) = stranger(answer);
    let ended = operator().run(&["queues", "--server", &url]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("502 Bad Gateway"), "{}", ended.stderr);
    answering.join().unwrap();

    let (url, answering) = stranger("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>");
    let ended = operator().run(&["queues", "--server", &url]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    answering.join().unwrap();
}

#[test]
fn a_missing_token_is_told_with_the_likeliest_reason() {
    let ended = Program::new().variable("AISEKI_ADMIN_TOKN", TOKEN).run(&["topics"]);
    assert_eq!(ended.code, Some(4));
    assert!(ended.stderr.contains("did you mean AISEKI_ADMIN_TOKEN?"), "{}", ended.stderr);
    assert!(!ended.stderr.contains(TOKEN));
}

#[test]
fn wrong_usage_is_refused_before_anything_is_sent() {
    let line = operator().refused(&["topics", "--server", "localhost:8080"]);
    assert!(line.starts_with("--server is \"localhost:8080\": expected a URL"), "{line}");
    for arguments in [
        &["topics", "set", "3"][..],
        &["topics", "set", "3", "--active", "--inactive"],
        &["topics", "set", "three", "--active"],
        &["topics", "add"],
        &["bans", "add"],
        &["bans", "add", "--session", "a", "--address", "b"],
        &["bans", "add", "--address", "b", "--for", "7"],
        &["bans", "remove", "0"],
        &["rooms", "close", "../topics"],
        &["rooms", "--topic", "3", "close", "a"],
    ] {
        let ended = operator().run(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{arguments:?}");
    }
}

#[test]
fn the_help_of_every_operator_command_documents_the_exit_codes() {
    for command in ["topics", "bans", "queues", "rooms"] {
        let help = Program::new().run(&[command, "--help"]).stdout;
        for text in ["Exit codes:", "3  no server answers there", "--server <URL>", "--json"] {
            assert!(help.contains(text), "{command}: {help}");
        }
    }
}
