//! The stores: each adapter is a module named after its technology.

pub mod embedded;
pub mod postgres;
pub mod redis;
