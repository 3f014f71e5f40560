//! Millions of random steps: `cargo run --release -p aiseki-lobby --example campaign -- --steps
//! 5000000 --seed 1`. It goes through all scenarios with one seed after another, stops at the first
//! failure and shows how to see it again. `--only NAME` runs one scenario.

use std::io::{Write, stdout};
use std::process::ExitCode;

use aiseki_lobby::simulation::{Tally, run, scenarios};

/// Steps of one seed. Many short days find more than a few long ones.
const STEPS_OF_A_SEED: u64 = 2_000;

fn main() -> ExitCode {
    match campaign(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Nothing can be done when even this cannot be written.
            let _ = writeln!(std::io::stderr(), "{message}");
            ExitCode::FAILURE
        }
    }
}

fn campaign(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let (mut steps, mut seed, mut only) = (1_000_000, 1, None);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(format!("{name} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|error| format!("{name} {value}: {error}"));
        match name.as_str() {
            "--steps" => steps = number()?,
            "--seed" => seed = number()?,
            "--only" => only = Some(value),
            _ => return Err(format!("{name} is none of --steps, --seed, --only")),
        }
    }
    let mut scenarios = scenarios();
    scenarios.retain(|scenario| only.as_ref().is_none_or(|only| only == scenario.name));
    if scenarios.is_empty() {
        return Err(format!("no scenario is called {only:?}"));
    }
    let mut total = Tally::default();
    while total.steps < steps {
        for scenario in &scenarios {
            let tally = run(scenario, seed, STEPS_OF_A_SEED).map_err(|it| it.to_string())?;
            total.add(&tally);
        }
        seed += 1;
    }
    writeln!(stdout(), "seeds below {seed}: {total:#?}").map_err(|error| error.to_string())
}
