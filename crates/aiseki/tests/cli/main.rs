//! The real program's command line, as an operator meets it.

mod help;
mod operators;
mod program;
mod settings;
