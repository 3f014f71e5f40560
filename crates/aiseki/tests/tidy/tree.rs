use std::fs;
use std::path::{Path, PathBuf};

/// A file of the repository as text.
pub(crate) struct Text {
    /// Its path from the root, with slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below `folder` whose name ends with `ending`. Folders that are made and not written, and
/// those of tools, are left out.
pub(crate) fn files(folder: &str, ending: &str) -> Vec<Text> {
    let mut found = Vec::new();
    collect(&root().join(folder), &mut found);
    let root = root();
    let mut texts: Vec<_> = found
        .into_iter()
        .map(|path| (path.strip_prefix(&root).expect("below the root").to_owned(), path))
        .filter(|(name, _)| name.to_str().is_some_and(|name| name.ends_with(ending)))
        .map(|(name, path)| Text {
            path: name.to_str().expect("UTF-8").to_owned(),
            text: fs::read_to_string(&path).expect("a text"),
        })
        .collect();
    texts.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!texts.is_empty(), "nothing in {folder} ends with {ending}");
    texts
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let made = ["target", "aiseki-data", "node_modules", "__pycache__"].contains(&name);
        if made || name == ".git" || name.starts_with(".venv") {
            continue;
        }
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The paths that follow `prefix` in a source, the first two parts of each: of `a::{b, c::d}` both
/// `a::b` and `a::c`. Comments do not count.
pub(crate) fn paths_after(source: &str, prefix: &str) -> Vec<String> {
    let code: String = source
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut paths = Vec::new();
    for (i, _) in code.match_indices(prefix) {
        let preceded =
            code[..i].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
        if !preceded {
            expand("", &code[i + prefix.len()..], &mut paths);
        }
    }
    paths
}

/// Follows one path, or each of a list in braces.
fn expand(before: &str, rest: &str, paths: &mut Vec<String>) {
    if let Some(list) = rest.strip_prefix('{') {
        let mut depth = 1_usize;
        let mut start = 0;
        for (i, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => {
                    expand(before, list[start..i].trim(), paths);
                    start = i + 1;
                }
                _ => {}
            }
            if depth == 0 {
                if !list[start..i].trim().is_empty() {
                    expand(before, list[start..i].trim(), paths);
                }
                return;
            }
        }
        return;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let word = &rest[..end];
    match (before, rest[end..].strip_prefix("::")) {
        ("", Some(more)) => expand(word, more, paths),
        ("", None) => paths.push(word.to_owned()),
        _ => paths.push(format!("{before}::{word}")),
    }
}

#[test]
fn paths_are_found_in_lists_and_not_in_comments() {
    let source =
        "use crate::a::{B, c::D};\nuse crate::{e, f::G};\n// crate::h\nlet x = crate::i();";
    assert_eq!(paths_after(source, "crate::"), ["a::B", "a::c", "e", "f::G", "i"]);
}
