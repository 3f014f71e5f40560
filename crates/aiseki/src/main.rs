//! The `aiseki` program.

fn main() {}
