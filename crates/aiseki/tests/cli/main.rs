//! The real program's command line, as an operator meets it.

mod help;
mod program;
mod queues;
mod settings;
