//! The `aiseki` program.

use std::process::ExitCode;

use aiseki::config::Environment;

fn main() -> ExitCode {
    aiseki::commands::main(std::env::args_os(), &Environment::of_process())
}
