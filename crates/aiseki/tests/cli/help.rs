//! Help, version, and what a typing mistake is answered with.

use crate::program::Program;

#[test]
fn help_and_version_are_printed_and_end_well() {
    let program = Program::new();
    let help = program.run(&["--help"]);
    assert_eq!(help.code, Some(0), "{}", help.stderr);
    for word in ["serve", "config", "`aiseki serve --help` lists every setting"] {
        assert!(help.stdout.contains(word), "{word}: {}", help.stdout);
    }
    let version = program.run(&["--version"]);
    assert_eq!(version.stdout, concat!("aiseki ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn the_help_of_the_server_is_grouped_and_shows_defaults_and_no_secrets() {
    let secret = "correct-horse-battery";
    let help = Program::new().variable("AISEKI_ADMIN_TOKEN", secret).run(&["serve", "--help"]);
    for text in ["Matching:", "Limits:", "--wait-timeout <DURATION>", "[default: 5m]", "--no-demo"]
    {
        assert!(help.stdout.contains(text), "{text}: {}", help.stdout);
    }
    assert!(!help.stdout.contains(secret));
}

#[test]
fn typing_mistakes_are_answered_with_the_nearest_name() {
    for (arguments, nearest) in [
        (&["--listn", "127.0.0.1:0"][..], "--listen"),
        (&["serve", "--wait-timout", "5m"], "--wait-timeout"),
        (&["serv"], "serve"),
        (&["confg"], "config"),
    ] {
        let ended = Program::new().run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}");
        assert!(ended.stderr.contains(&format!("'{nearest}'")), "{}", ended.stderr);
    }
}
