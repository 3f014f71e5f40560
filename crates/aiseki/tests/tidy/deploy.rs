use std::collections::BTreeSet;

use aiseki::config::{Role, SETTINGS};

use crate::tree::{Text, files, root};

/// Names in capitals after `prefix`, in text that is no comment.
fn names_after(text: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        for (i, _) in line.match_indices(prefix) {
            let rest = &line[i + prefix.len()..];
            let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '_');
            names.insert(rest[..end.unwrap_or(rest.len())].to_owned());
        }
    }
    names
}

fn file(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_setting_that_is_deployed_exists() {
    let mut known: BTreeSet<String> =
        SETTINGS.iter().map(aiseki::config::Setting::variable).collect();
    let secrets = SETTINGS.iter().filter(|setting| setting.role == Role::Secret);
    known.extend(secrets.map(|setting| format!("{}_FILE", setting.variable())));
    let mut seen = 0;
    for Text { path, text } in files("deploy", "").into_iter().chain(files("scripts", "cluster")) {
        for name in names_after(&text, "AISEKI_") {
            let name = format!("AISEKI_{name}");
            assert!(known.contains(&name), "{path} sets {name}, which is no setting");
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn the_load_balancer_is_told_all_that_it_asks_for() {
    let asked = names_after(&file("deploy/haproxy.cfg"), "${");
    assert_eq!(asked.len(), 3, "{asked:?}");
    let compose = file("deploy/compose.yaml");
    let cluster = file("scripts/cluster");
    for name in asked {
        assert!(compose.contains(&format!("\n      {name}: ")), "compose.yaml does not set {name}");
        assert!(cluster.contains(&format!("{name}=127.0.0.1")), "scripts/cluster: {name}");
    }
}

/// The names at the second level below a heading at the first.
fn names_below<'a>(compose: &'a str, heading: &str) -> BTreeSet<&'a str> {
    let lines = compose.lines().skip_while(|line| *line != format!("{heading}:"));
    let lines = lines.skip(1).take_while(|line| line.is_empty() || line.starts_with([' ', '#']));
    let second = lines
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with([' ', '#']) && !line.is_empty());
    second.map(|line| line.split(':').next().unwrap_or(line)).collect()
}

/// What stands in brackets after a key, wherever it is.
fn listed<'a>(compose: &'a str, key: &str) -> BTreeSet<&'a str> {
    let lines =
        compose.lines().filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": ["));
    lines.flat_map(|line| line.trim_end_matches(']').split(", ")).collect()
}

#[test]
fn compose_names_what_it_has() {
    let compose = file("deploy/compose.yaml");
    assert!(!compose.contains('\t'), "YAML knows no tabs");
    let services = names_below(&compose, "services");
    assert_eq!(services, BTreeSet::from(["one", "two", "haproxy", "redis", "postgres"]));
    assert!(listed(&compose, "depends_on").is_subset(&services));
    let (secrets, networks) = (names_below(&compose, "secrets"), names_below(&compose, "networks"));
    assert_eq!(listed(&compose, "secrets"), secrets);
    assert_eq!(listed(&compose, "networks"), networks);
    for secret in &secrets {
        assert!(compose.contains(&format!("/run/secrets/{secret}")), "{secret} is used by nobody");
        assert!(compose.contains(&format!("file: ./secrets/{secret}")), "{secret} has no file");
    }
    for volume in names_below(&compose, "volumes") {
        assert!(compose.contains(&format!("\"{volume}:/")), "{volume} is used by nobody");
    }
    for line in compose.lines().filter_map(|line| line.trim().strip_prefix("- ./")) {
        let path = line.split(':').next().expect("a path");
        assert!(root().join("deploy").join(path).exists(), "{path} is not there");
    }
    for line in compose.lines().filter_map(|line| line.trim().strip_prefix("dockerfile: ")) {
        assert!(root().join(line).exists(), "{line} is not there");
    }
    // Everything ends and begins by itself, and says whether it is well.
    for what in ["restart: unless-stopped", "healthcheck:"] {
        let count = compose.matches(what).count();
        assert_eq!(count, services.len() - 1, "two servers share what they say: {what}");
    }
    for setting in ["--appendonly yes", "--maxmemory-policy noeviction", "read_only: true"] {
        assert!(compose.contains(setting), "{setting}");
    }
}

#[test]
fn the_image_and_the_unit_run_what_there_is() {
    let image = file("deploy/Dockerfile");
    for line in ["USER 65532:65532", "ENTRYPOINT [\"aiseki\"]", "CMD [\"aiseki\", \"health\"]"] {
        assert!(image.contains(line), "{line}");
    }
    let unit = file("deploy/aiseki.service");
    for line in ["DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes"] {
        assert!(unit.contains(&format!("\n{line}\n")), "{line}");
    }
}
