//! What the `plain` and `streams` engines are made with.

/// When a message of the `plain` or `streams` engine is given up, and how large it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    /// A message whose handler has failed so often is a dead letter.
    pub failures: u32,
    /// A message whose worker was lost so often is a dead letter.
    pub crashes: u32,
    /// The largest payload, in bytes.
    pub payload_limit: usize,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { failures: 10, crashes: 5, payload_limit: 1024 * 1024 }
    }
}
