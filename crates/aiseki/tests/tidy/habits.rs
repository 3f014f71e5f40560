use crate::tree::files;

/// A file that is longer than this is asking to be two.
const LINES: usize = 430;

#[test]
fn no_source_is_too_long() {
    for file in files("crates", ".rs") {
        let lines = file.text.lines().count();
        assert!(lines <= LINES, "{} has {lines} lines, of {LINES} at most", file.path);
    }
}

#[test]
fn nothing_is_named_for_being_left_over() {
    for file in files("crates", ".rs") {
        for part in file.path.trim_end_matches(".rs").split('/') {
            let vague = ["util", "utils", "common", "helpers", "helper", "types", "models", "misc"];
            assert!(!vague.contains(&part), "{} says nothing of what is in it", file.path);
        }
    }
}

#[test]
fn nothing_unfinished_is_left() {
    // Put together here, so that this file does not hold them.
    let words = ["todo!(", "dbg!(", "unimplemented!("].map(str::to_owned);
    let marks = ["FIX", "TO", "XX"].iter().zip(["ME", "DO", "X"]).map(|(a, b)| format!("{a}{b}"));
    let words: Vec<String> = words.into_iter().chain(marks).collect();
    for ending in [".rs", ".sql", ".toml", ".md"] {
        for file in files("", ending) {
            if file.path.ends_with("tidy/habits.rs") {
                continue;
            }
            for word in &words {
                assert!(!file.text.contains(word), "{} holds {word}", file.path);
            }
        }
    }
}

#[test]
fn every_exception_from_a_lint_has_its_reason() {
    for file in files("crates", ".rs") {
        for attribute in ["#[allow(", "#![allow(", "#[expect(", "#![expect("] {
            for (i, _) in file.text.match_indices(attribute) {
                let end = file.text[i..].find(")]").map_or(file.text.len(), |end| i + end);
                let text = &file.text[i..end];
                let quoted = file.text[..i].ends_with('"');
                assert!(quoted || text.contains("reason"), "{}: {text}", file.path);
            }
        }
    }
}

#[test]
fn lines_end_where_their_text_ends() {
    for ending in [".rs", ".sql", ".toml", ".md"] {
        for file in files("", ending) {
            assert!(file.text.ends_with('\n'), "{} does not end with a line", file.path);
            for line in file.text.lines() {
                assert_eq!(line, line.trim_end(), "{}", file.path);
            }
        }
    }
}
