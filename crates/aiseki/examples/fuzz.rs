//! A longer fuzzing campaign than that of the tests: `--for 10m`, and `--seed N` to repeat one. What it
//! finds is kept in the corpus, so that the tests repeat it from then on.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use aiseki::clock::Stopwatch;
use aiseki::duration::{self, DAY, SECOND};
use aiseki::fuzz::TARGETS;
use clap::Parser;
use std::io::Write as _;

/// Inputs of one target before the next has its turn.
const TURN: u32 = 50_000;

#[derive(Parser)]
struct Campaign {
    /// For how long
    #[arg(long = "for", value_name = "DURATION", default_value = "1m")]
    time: String,

    /// Where to begin
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    let campaign = Campaign::parse();
    let mut out = std::io::stderr().lock();
    let time = match duration::parse(&campaign.time, SECOND..=DAY) {
        Ok(millis) => Duration::from_millis(millis),
        Err(error) => {
            let _ = writeln!(out, "--for: {error}");
            return ExitCode::from(2);
        }
    };
    // A panic is a finding, and is printed as one.
    std::panic::set_hook(Box::new(|_| {}));
    let watch = Stopwatch::start();
    let mut seed = campaign.seed.unwrap_or_else(random_seed);
    let first = seed;
    while watch.elapsed() < time {
        for target in &TARGETS {
            let folder = Path::new("fuzz/corpus").join(target.name);
            let corpus: Vec<Vec<u8>> = match fs::read_dir(&folder) {
                Ok(entries) => entries.flatten().filter_map(|e| fs::read(e.path()).ok()).collect(),
                Err(error) => {
                    let _ = writeln!(out, "{}: {error} (run it at the root)", folder.display());
                    return ExitCode::FAILURE;
                }
            };
            if let Err(found) = target.run(&corpus, seed, TURN) {
                let kept = folder.join(format!("found-{seed}"));
                let written = fs::write(&kept, &found.input);
                let (name, message) = (target.name, found.message);
                let _ = writeln!(
                    out,
                    "{name}, seed {seed}: {message}\n{}: {written:?}",
                    kept.display()
                );
                return ExitCode::FAILURE;
            }
        }
        seed = seed.wrapping_add(1);
    }
    let inputs = (seed - first) * u64::from(TURN);
    let _ = writeln!(
        out,
        "{inputs} inputs for each of {} targets (seeds {first} to {seed})",
        TARGETS.len()
    );
    ExitCode::SUCCESS
}

fn random_seed() -> u64 {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    u32::from_ne_bytes(bytes).into()
}
