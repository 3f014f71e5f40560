use crate::tree::{files, root};

/// The folders whose files browsers ask for.
const FOLDERS: [&str; 5] = ["client", "console", "i18n", "page", "vendor"];
/// A module that is longer than this is asking to be two.
const LINES: usize = 430;

fn embedded() -> String {
    let source = root().join("crates/aiseki/src/http/page.rs");
    std::fs::read_to_string(source).expect("the routes of the page")
}

#[test]
fn every_file_of_the_page_is_part_of_the_program() {
    let embedded = embedded();
    for folder in FOLDERS {
        for ending in [".js", ".css", ".svg"] {
            let folder = format!("web/{folder}");
            if !has(&folder, ending) {
                continue;
            }
            for file in files(&folder, ending) {
                let name = file.path.trim_start_matches("web/");
                let is_test = name.contains("/test/");
                let listed = embedded.contains(&format!("\"{name}\"\n"));
                assert_ne!(is_test, listed, "http/page.rs and web/{name} do not agree");
            }
        }
    }
}

fn has(folder: &str, ending: &str) -> bool {
    std::fs::read_dir(root().join(folder))
        .expect("a folder")
        .any(|entry| entry.expect("an entry").file_name().to_string_lossy().ends_with(ending))
}

#[test]
fn the_document_fetches_every_module_of_the_page_at_once() {
    // A module that is not named is asked for only when the one that imports it has arrived.
    let document = std::fs::read_to_string(root().join("web/index.html")).expect("the document");
    for folder in ["client", "i18n", "page", "vendor"] {
        for file in files(&format!("web/{folder}"), ".js") {
            let name = file.path.trim_start_matches("web/");
            let named = document.contains(&format!("\"{{files}}/{name}\""));
            assert!(named || name.contains("/test/"), "web/index.html does not name {name}");
        }
    }
}

#[test]
fn no_module_of_the_page_is_too_long() {
    for folder in ["client", "console", "e2e", "i18n", "page"] {
        for file in files(&format!("web/{folder}"), ".js") {
            let lines = file.text.lines().count();
            let limit = if folder == "i18n" { 2 * LINES } else { LINES };
            assert!(lines <= limit, "{} has {lines} lines", file.path);
        }
    }
}
