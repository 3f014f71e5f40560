use std::path::Path;

use crate::tree::{files, paths_after, root};

/// The names of the dependencies in one section of a manifest.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.contains("dependencies]");
        } else if let Some((name, _)) = line.split_once(['.', '=', ' ']).filter(|_| inside)
            && !name.starts_with('#')
        {
            names.push(name.trim().to_owned());
        }
    }
    names
}

#[test]
fn every_dependency_is_used_by_the_crate_that_names_it() {
    for manifest in files("crates", "Cargo.toml") {
        let folder = manifest.path.trim_end_matches("/Cargo.toml");
        let sources = files(folder, ".rs");
        for name in dependencies(&manifest.text) {
            let prefix = format!("{}::", name.replace('-', "_"));
            let used = sources.iter().any(|file| !paths_after(&file.text, &prefix).is_empty());
            assert!(used, "{} names {name}, and nothing uses it", manifest.path);
        }
    }
}

#[test]
fn every_dependency_of_the_workspace_is_named_by_a_crate() {
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).expect("the workspace");
    let named: Vec<String> = files("crates", "Cargo.toml")
        .iter()
        .flat_map(|manifest| dependencies(&manifest.text))
        .collect();
    // A crate of our own may be useful alone.
    for name in dependencies(&workspace).into_iter().filter(|name| !name.starts_with("aiseki")) {
        assert!(named.contains(&name), "no crate depends on {name}");
    }
}

#[test]
fn every_script_of_a_store_is_referred_to() {
    let sources = files("crates", ".rs");
    for script in [".sql", ".lua"].iter().flat_map(|ending| files("crates", ending)) {
        let path = Path::new(&script.path);
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        // Where scripts are in a list, they stand there without their ending, and with their folder.
        let below = script.path.split("/lua/").nth(1).unwrap_or(name);
        let listed = below.trim_start_matches("parts/").trim_end_matches(".lua");
        let used = sources.iter().any(|file| {
            file.text.contains(&format!("{name}\"")) || file.text.contains(&format!("\"{listed}\""))
        });
        assert!(used, "nothing refers to {}", script.path);
    }
}

#[test]
fn every_module_of_a_test_is_a_file_that_is_used() {
    // A test file that no module names is compiled by nobody, and passes for ever.
    for file in files("crates/aiseki/tests", ".rs") {
        let path = Path::new(&file.path);
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap();
        if name == "main" {
            continue;
        }
        let folder = path.parent().unwrap();
        let parents = [folder.join("main.rs"), folder.with_extension("rs")];
        let named = parents.iter().any(|parent| {
            std::fs::read_to_string(root().join(parent))
                .is_ok_and(|text| text.lines().any(|line| line == format!("mod {name};")))
        });
        assert!(named, "no module names {}", file.path);
    }
}
