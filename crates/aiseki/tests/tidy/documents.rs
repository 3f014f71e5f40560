use std::path::Path;
use std::process::Command;

use crate::tree::{Text, files, root};

/// What stands in parentheses after a text in brackets, outside of code.
fn links(document: &Text) -> Vec<String> {
    let mut links = Vec::new();
    let mut code = false;
    for line in document.text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        if !code {
            links.extend(line.match_indices("](").filter_map(|(i, _)| {
                let rest = &line[i + 2..];
                rest.find(')').map(|end| rest[..end].to_owned())
            }));
        }
    }
    links
}

/// The name by which a heading is linked to.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    for document in files("", ".md") {
        for link in links(&document) {
            if link.starts_with("https://") || link.starts_with("http://") {
                continue;
            }
            let (path, wanted) = link.split_once('#').unwrap_or((&link, ""));
            let folder = Path::new(&document.path).parent().expect("a folder");
            let target = match path {
                "" => root().join(&document.path),
                path => root().join(folder).join(path),
            };
            assert!(target.exists(), "{} links to {link}", document.path);
            if !wanted.is_empty() {
                let text = std::fs::read_to_string(&target).expect("a text");
                let found =
                    text.lines().any(|line| line.starts_with('#') && anchor(line) == wanted);
                assert!(found, "{} links to {link}, and there is no such heading", document.path);
            }
        }
    }
}

#[test]
fn every_call_and_every_code_is_described() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a text");
    let description: serde_json::Value = serde_json::from_str(&read("openapi.json")).expect("JSON");
    let document = read("docs/api.md");
    let codes = description["components"]["schemas"]["Code"]["enum"].as_array().expect("a list");
    assert!(codes.len() > 10, "{codes:?}");
    for code in codes.iter().filter_map(|code| code.as_str()) {
        assert!(document.contains(&format!("`{code}`")), "docs/api.md does not tell of {code}");
    }
    for path in description["paths"].as_object().expect("a table").keys() {
        let told = [' ', '?', '`'].iter().any(|end| document.contains(&format!("{path}{end}")));
        assert!(told, "docs/api.md does not tell of {path}");
    }
}

/// The lines of all blocks that are marked as `console`.
fn commands(document: &Text) -> Vec<String> {
    let mut lines = Vec::new();
    let mut inside = false;
    for line in document.text.lines() {
        if line.trim_start().starts_with("```") {
            inside = line.trim() == "```console";
        } else if inside {
            lines.push(line.trim().trim_start_matches("$ ").to_owned());
        }
    }
    lines
}

/// What `aiseki … --help` says.
fn help(subcommands: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_aiseki"))
        .args(subcommands)
        .arg("--help")
        .env_clear()
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "aiseki {subcommands:?} is no command");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The arguments of a call of our program in a line of a document, if it is one.
fn of_our_program(line: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = line.split_whitespace().skip_while(|word| word.contains('=')).collect();
    let (first, rest) = words.split_first()?;
    if first.ends_with("/aiseki") || *first == "aiseki" {
        return Some(rest.to_vec());
    }
    let separator = words.iter().position(|word| *word == "--");
    if words.contains(&"--example") {
        return None;
    }
    (words.starts_with(&["cargo", "run"])).then(|| match separator {
        Some(at) => words[at + 1..].to_vec(),
        None => Vec::new(),
    })
}

#[test]
fn every_command_in_a_document_is_one() {
    let mut seen = 0;
    for document in files("", ".md") {
        for line in commands(&document) {
            let Some(arguments) = of_our_program(&line) else {
                let script = line.split_whitespace().next().filter(|word| word.contains('/'));
                if let Some(script) = script.filter(|word| word.starts_with("scripts/")) {
                    assert!(root().join(script).exists(), "{}: {line}", document.path);
                }
                continue;
            };
            seen += 1;
            let flags = arguments.iter().position(|word| word.starts_with('-'));
            let words = &arguments[..flags.unwrap_or(arguments.len())];
            // Of the words those that are commands; what follows them are values.
            let mut known: Vec<&str> = Vec::new();
            let mut text = help(&known);
            for word in words {
                let listed = text.lines().any(|l| l.split_whitespace().next() == Some(word));
                if !listed {
                    assert!(!known.is_empty(), "{}: {line}", document.path);
                    break;
                }
                known.push(word);
                text = help(&known);
            }
            if known.is_empty() {
                text = help(&["serve"]);
            }
            for flag in arguments.iter().filter(|word| word.starts_with("--")) {
                let flag = flag.split('=').next().expect("a name");
                let found = text.split([' ', ',', '\n']).any(|word| word == flag);
                assert!(found || flag == "--help", "{}: {line}: no {flag}", document.path);
            }
        }
    }
    assert!(seen > 0, "the documents show no command at all");
}
