//! Agent-specific signs of how a turn ended: tokens, limits, and errors that look like answers.
//!
//! Main type: [`AgentFailure`].

use proctor_record::model::Usage;
use serde_json::Value;

use super::dialect::Dialect;

/// Why an agent could not do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AgentFailure {
    /// It reached its turn limit.
    OutOfTurns,
    /// Its model could not be asked.
    Model(String),
    Other(String),
}

/// Some agents count cached tokens as part of the input and others separately; the same holds for
/// thinking and output. The total shows which.
pub(super) fn whole_usage(usage: &Value) -> Option<Usage> {
    let number = |key: &str| usage[key].as_u64();
    let (input, output) = (number("inputTokens")?, number("outputTokens")?);
    let (cached, written) = (number("cachedReadTokens"), number("cachedWriteTokens"));
    let reasoning = number("thoughtTokens");
    let cache = cached.unwrap_or(0).saturating_add(written.unwrap_or(0));
    let thought = reasoning.unwrap_or(0);
    let apart = number("totalTokens").map_or(0, |total| {
        total.saturating_sub(input.saturating_add(output))
    });
    let (more_input, more_output) = match apart {
        0 => (0, 0),
        all if all == cache.saturating_add(thought) => (cache, thought),
        all if all == thought => (0, thought),
        _ => (cache, 0),
    };
    Some(Usage {
        input: Some(input.saturating_add(more_input)),
        output: Some(output.saturating_add(more_output)),
        cached,
        cache_written: written,
        reasoning,
    })
}

/// Why the end of an agent's turn is not an answer.
pub(super) fn ended(
    dialect: &Dialect,
    result: &Value,
    answer: Option<&str>,
) -> Option<AgentFailure> {
    let said = |what: &str| {
        let text = answer.map_or(String::new(), |answer| format!(": {answer}"));
        Some(AgentFailure::Other(format!("{what}{text}")))
    };
    match result["stopReason"].as_str() {
        Some("end_turn") => {}
        Some("max_turn_requests") => return Some(AgentFailure::OutOfTurns),
        Some("max_tokens") => return said("its model's answer was cut off"),
        Some("refusal") => return said("its model refused to continue"),
        Some("cancelled") => return said("it reported that it was cancelled"),
        Some(other) => {
            return said(&format!("unknown stop reason `{other}`"));
        }
        None => return said("it gave no stop reason"),
    }
    (dialect.failed_turn)(result, answer)
}

/// Interprets an error that an agent returned instead of an answer; `is_prompted` if it ends the
/// turn.
pub(super) fn failed(
    dialect: &Dialect,
    is_prompted: bool,
    code: i64,
    message: &str,
) -> AgentFailure {
    const AUTHENTICATION: i64 = -32000;
    const OUTAGES: [&str; 4] = [
        "API Error",
        "Cannot connect to API",
        "fetch failed",
        "API key",
    ];
    let message = message.strip_prefix("Internal error: ").unwrap_or(message);
    if dialect
        .turn_limit
        .is_some_and(|limit| message.starts_with(limit))
    {
        return AgentFailure::OutOfTurns;
    }
    let message = match message.trim() {
        "" => format!("it failed with code {code} and no message"),
        message => message.to_owned(),
    };
    let is_outage = OUTAGES.iter().any(|words| message.contains(words));
    let is_ours = [-32700, -32600, -32601, -32602].contains(&code);
    let is_models = is_prompted && !is_ours && dialect.passes_on_provider_errors;
    if code == AUTHENTICATION || is_outage || is_models {
        AgentFailure::Model(message)
    } else {
        AgentFailure::Other(message)
    }
}

/// What an agent reported about its model between its messages. Codex retries an unreachable model
/// forever, and where it gives up, the error is its answer.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// How often it reported that it waits for the network.
    pub(super) waits: u32,
    pub(super) last: Option<String>,
    pub(super) is_fatal: bool,
}

impl Outage {
    /// Why it is pointless to wait any longer.
    pub(super) fn hopeless(&self) -> Option<AgentFailure> {
        /// The second wait follows after five seconds, and the third after ten more.
        const ENOUGH: u32 = 2;
        (self.waits >= ENOUGH).then(|| self.trouble())
    }

    /// Why the answer is an error.
    pub(super) fn fatal(&self) -> Option<AgentFailure> {
        self.is_fatal.then(|| self.trouble())
    }

    fn trouble(&self) -> AgentFailure {
        let last = self.last.as_deref();
        AgentFailure::Model(last.unwrap_or("it reported a failure").to_owned())
    }
}
