//! The Lua itself: syntax, globals, and the part that others embed.

use std::process::Command;

use aiseki_mq::{LISTS_KEYS, Queue, all_scripts, build_script, lists_keys};
use aiseki_testkit::Scratch;

use crate::bed::{Bed, LONG, take_one};

/// The checker's name differs between its packages.
const CHECKERS: [&str; 2] = ["luacheck", "lua-check"];

#[test]
fn every_script_is_lua_without_stray_globals() {
    let scratch = Scratch::new("lua").expect("a folder");
    let mut files = Vec::new();
    for (name, text) in all_scripts() {
        let path = scratch.path().join(format!("{}.lua", name.replace('/', "-")));
        std::fs::write(&path, text).expect("a file");
        let luac = Command::new("luac5.1").arg("-p").arg(&path).output().expect("luac5.1");
        assert!(luac.status.success(), "{}", String::from_utf8_lossy(&luac.stderr));
        files.push(path);
    }
    let checked = CHECKERS.iter().find_map(|checker| {
        let globals = ["redis", "KEYS", "ARGV", "cjson"];
        let mut command = Command::new(checker);
        command.args(["--std", "lua51", "--no-color", "--max-line-length", "100"]).args(&files);
        command.arg("--read-globals").args(globals).output().ok()
    });
    let checked = checked.expect("the package lua-check");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn every_script_begins_with_its_contract() {
    for (name, text) in all_scripts() {
        let head: Vec<_> = text.lines().take_while(|line| line.starts_with(['#', '-'])).collect();
        assert!(head[0].starts_with("#!lua"), "{name}");
        for word in ["-- KEYS:", "-- ARGV:", "-- Returns"] {
            assert!(head.iter().any(|line| line.starts_with(word)), "{name}: {word}");
        }
        let allowed = head[0].contains("allow-oom") || head[0].contains("no-writes");
        assert_eq!(allowed, !name.ends_with("publish"), "{name}: {}", head[0]);
    }
}

/// Another script of the same slot publishes in its own step, and workers find the message.
#[tokio::test]
async fn another_script_publishes_in_its_own_step() {
    let bed = Bed::new();
    let script = build_script(
        "#!lua flags=allow-oom
--@include keys
--@include now
--@include ring
--@include large
--@include publish
local seated = redis.call('INCR', KEYS[1])
local codes = mq_publish(mq_keys(2), mq_now(''), 0, { 'room-1', '0', '', ARGV[1] })
return { seated, codes }
",
    );
    let name = aiseki_mq::QueueName::new("{aiseki}:mq:rooms").expect("a name");
    let queue = aiseki_mq::Lists::new(&bed.server, name, aiseki_mq::ListsOptions::default());
    let mut raw = bed.raw().await;
    let keys = lists_keys("{aiseki}:mq:rooms");
    assert_eq!(keys.len(), LISTS_KEYS.len());
    for (seated, code) in [(1, "1"), (2, "2")] {
        let mut call = redis::cmd("EVAL");
        call.arg(&script).arg(1 + keys.len()).arg("{aiseki}:seated").arg(&keys).arg("two people");
        let answer: (u32, String) = call.query_async(&mut raw).await.expect("an answer");
        assert_eq!(answer, (seated, code.to_owned()));
    }
    let consumer = queue.consumer("recorder", LONG).expect("a consumer");
    let delivery = take_one(&consumer).await;
    assert_eq!((delivery.id(), delivery.payload.as_slice()), ("room-1", b"two people".as_slice()));
}
