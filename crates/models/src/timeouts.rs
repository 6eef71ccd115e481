//! Timeouts for requests to a model's provider.

use std::time::Duration;

/// The timeouts of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTimeouts {
    pub connect: Duration,
    /// Until the first byte of the response. This includes the model's thinking.
    pub first_byte: Duration,
    /// Between two parts of a response.
    pub idle: Duration,
    /// For the whole response.
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
