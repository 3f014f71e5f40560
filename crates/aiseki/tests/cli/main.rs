//! The real program's command line, as an operator meets it.

mod backup;
mod help;
mod program;
mod server;
mod settings;
mod simulate;
