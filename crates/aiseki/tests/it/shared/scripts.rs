use std::process::Command;

use aiseki::store::redis::all_scripts;
use aiseki_testkit::Scratch;

/// The checker's name differs between its packages.
const CHECKERS: [&str; 2] = ["luacheck", "lua-check"];

#[test]
fn every_script_is_lua_without_stray_globals() {
    let scratch = Scratch::new("lobby-lua").expect("a folder");
    let mut files = Vec::new();
    for (name, text) in all_scripts() {
        let path = scratch.path().join(format!("{name}.lua"));
        std::fs::write(&path, text).expect("a file");
        let luac = Command::new("luac5.1").arg("-p").arg(&path).output().expect("luac5.1");
        assert!(luac.status.success(), "{}", String::from_utf8_lossy(&luac.stderr));
        files.push(path);
    }
    let checked = CHECKERS.iter().find_map(|checker| {
        let mut command = Command::new(checker);
        command.args(["--std", "lua51", "--no-color", "--max-line-length", "110"]);
        // A step takes from the parts what it needs, and not everything.
        command.args(["--no-unused", "--read-globals", "redis", "KEYS", "ARGV", "--"]);
        command.args(&files).output().ok()
    });
    let checked = checked.expect("the package lua-check");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn every_script_begins_with_its_contract_and_only_what_brings_something_needs_memory() {
    for (name, text) in all_scripts() {
        let head: Vec<_> = text.lines().take_while(|line| line.starts_with(['#', '-'])).collect();
        assert!(head[0].starts_with("#!lua"), "{name}");
        let says = |word: &str| head.iter().any(|line| line.contains(word));
        assert!(says("KEYS") && says("ARGV") && says("Returns"), "{name}");
        let brings = ["enter", "talk_append"].contains(&name);
        let needs_none = ["allow-oom", "no-writes"].iter().any(|flag| head[0].contains(flag));
        assert_eq!(needs_none, !brings, "{name}");
    }
}
