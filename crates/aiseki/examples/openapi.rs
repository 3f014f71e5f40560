//! Writes the description of the interface: `cargo run -p aiseki --example openapi > openapi.json`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let text = aiseki::http::openapi().to_pretty_json().map_err(std::io::Error::other)?;
    writeln!(std::io::stdout(), "{text}")
}
