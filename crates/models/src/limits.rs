//! What one agent may use of its model.

/// When the agent has to stop.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoopLimits {
    /// Turns of the model.
    pub turns: Option<u32>,
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    /// Cost in US dollars.
    pub cost_usd: Option<f64>,
}
