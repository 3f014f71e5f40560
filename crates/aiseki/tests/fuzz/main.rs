//! Every parser of bytes from outside, with a corpus that is kept and inputs made from it.
//!
//! A longer campaign is `cargo run --release -p aiseki --example fuzz -- --for 10m`.

use std::fs;
use std::path::{Path, PathBuf};

use aiseki::fuzz::{TARGETS, Target};

/// Some seconds for all targets together.
const INPUTS: u32 = 20_000;
const SEED: u64 = 1;

fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target.name);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let read = |path: PathBuf| (path.clone(), fs::read(path).expect("an input"));
    files.into_iter().map(read).collect()
}

#[test]
fn every_input_that_is_kept_is_taken_well() {
    for target in &TARGETS {
        let corpus = corpus(target);
        assert!(!corpus.is_empty(), "{} has no corpus", target.name);
        for (path, input) in corpus {
            if let Err(found) = target.try_input(&input) {
                panic!("{}: {}", path.display(), found.message);
            }
        }
    }
}

#[test]
fn inputs_made_from_them_are_taken_well() {
    for target in &TARGETS {
        let corpus: Vec<Vec<u8>> = corpus(target).into_iter().map(|(_, input)| input).collect();
        if let Err(found) = target.run(&corpus, SEED, INPUTS) {
            let input = String::from_utf8_lossy(&found.input);
            panic!("{} with seed {SEED}: {} on {input:?}", target.name, found.message);
        }
    }
}

#[test]
fn a_target_that_panics_is_found() {
    let target = Target { name: "wrong", check: |input| assert!(!input.contains(&b';')) };
    let found = target.run(&[b"a=b".to_vec()], 1, INPUTS).unwrap_err();
    assert!(found.input.contains(&b';'));
}
