//! How long a model's provider may take.

use std::time::Duration;

/// How long is waited for one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTimeouts {
    /// For a connection.
    pub connect: Duration,
    /// For the start of the answer: the model has thought by then.
    pub first_byte: Duration,
    /// For the next part of an answer that has begun.
    pub idle: Duration,
    /// For all of it.
    pub total: Duration,
}

impl Default for ModelTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_mins(10),
            idle: Duration::from_mins(1),
            total: Duration::from_mins(15),
        }
    }
}
