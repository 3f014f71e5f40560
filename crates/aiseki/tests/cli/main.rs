//! The real program's command line, as an operator meets it.

mod admin;
mod backup;
mod doctor;
mod health;
mod help;
mod operators;
mod program;
mod queues;
mod running;
mod settings;
mod simulate;
mod transfer;
