//! The service: seats waiting people together and tells them so.

pub mod app;
pub mod commands;
pub mod config;
pub mod duration;
pub mod rate_limit;
