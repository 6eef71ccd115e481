//! The limits of one agent's use of its model.

/// When the agent has to stop. `None` means no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoopLimits {
    pub turns: Option<u32>,
    /// Input and output tokens.
    pub tokens: Option<u64>,
    pub cost_usd: Option<f64>,
}
