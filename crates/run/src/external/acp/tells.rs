//! What agents tell of their end in ways of their own: tokens, limits, and answers that are none.
//!
//! Main type: [`AgentFailure`].

use proctor_core::model::Usage;
use serde_json::Value;

use super::Dialect;

/// Why an agent could not do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AgentFailure {
    /// It stopped at its limit of turns.
    OutOfTurns,
    /// Its model could not be asked.
    Model(String),
    /// Anything else.
    Other(String),
}

/// The tokens that an agent took, where it tells of all of them. opencode and goose tell of the last
/// question alone, and of others it is not known.
pub(super) fn usage(dialect: Dialect, result: &Value) -> Option<Usage> {
    match dialect {
        Dialect::Claude | Dialect::Codex => whole(&result["usage"]),
        Dialect::Gemini => {
            let count = &result["_meta"]["quota"]["token_count"];
            Some(Usage {
                input: Some(count["input_tokens"].as_u64()?),
                output: Some(count["output_tokens"].as_u64()?),
                ..Usage::default()
            })
        }
        Dialect::Opencode | Dialect::Goose | Dialect::Unknown => None,
    }
}

/// Some count what the cache had to do with apart from the input, and some count it as a part of it; so
/// it is with thinking and the output. The total tells.
fn whole(usage: &Value) -> Option<Usage> {
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

/// Why what an agent gave as the end of its turn is no answer.
pub(super) fn ended(
    dialect: Dialect,
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
            return said(&format!(
                "unknown stop reason `{other}`"
            ));
        }
        None => return said("it gave no stop reason"),
    }
    match dialect {
        Dialect::Goose => goose(result, answer),
        Dialect::Claude
        | Dialect::Codex
        | Dialect::Gemini
        | Dialect::Opencode
        | Dialect::Unknown => None,
    }
}

/// goose gives an outage as its answer. It counts tokens itself where a model does not, so that none at
/// all means that no model answered.
fn goose(result: &Value, answer: Option<&str>) -> Option<AgentFailure> {
    const ERRORS: [&str; 3] = [
        "Ran into this error",
        "Network error: ",
        "The model returned an empty response.",
    ];
    const LIMIT: &str = "I've reached the maximum number of actions";
    let answer = answer.unwrap_or("its model did not answer");
    if answer.starts_with(LIMIT) {
        return Some(AgentFailure::OutOfTurns);
    }
    let took_none = result["usage"]["totalTokens"].as_u64().unwrap_or(0) == 0;
    let is_error = ERRORS.iter().any(|error| answer.starts_with(error));
    (took_none || is_error).then(|| AgentFailure::Model(answer.to_owned()))
}

/// What the error means that an agent gave instead of an answer; `is_prompted` if that is the end of its
/// turn. Gemini and opencode give whatever their provider says there, and their code is its status or
/// says nothing: what goes wrong with a tool is no error of the turn.
pub(super) fn failed(
    dialect: Dialect,
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
    if dialect == Dialect::Claude && message.starts_with("Reached maximum number of turns") {
        return AgentFailure::OutOfTurns;
    }
    let message = match message.trim() {
        "" => format!("it failed with code {code} and no message"),
        message => message.to_owned(),
    };
    let is_outage = OUTAGES.iter().any(|words| message.contains(words));
    let is_ours = [-32700, -32600, -32601, -32602].contains(&code);
    let is_models =
        is_prompted && !is_ours && matches!(dialect, Dialect::Gemini | Dialect::Opencode);
    if code == AUTHENTICATION || is_outage || is_models {
        AgentFailure::Model(message)
    } else {
        AgentFailure::Other(message)
    }
}

/// Takes note of what Codex tells between its messages: it would try to reach its model for ever, and
/// where it gives up, what it says about that is its answer.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// How often it said that it waits for the network.
    waits: u32,
    last: Option<String>,
    is_fatal: bool,
}

impl Outage {
    /// Takes a `session_info_update`.
    pub(super) fn told(&mut self, dialect: Dialect, update: &Value) {
        if dialect != Dialect::Codex {
            return;
        }
        let codex = &update["_meta"]["codex"];
        let error = &codex["error"];
        if let Some(message) = error["message"].as_str() {
            self.waits += u32::from(message.contains("waiting for network"));
            let more = error["additionalDetails"].as_str();
            self.last = Some(match more {
                Some(more) => format!("{message}: {more}"),
                None => message.to_owned(),
            });
        }
        match codex["threadStatus"]["type"].as_str() {
            Some("systemError") => self.is_fatal = true,
            // It got over it.
            Some("active") => self.is_fatal = false,
            _ => {}
        }
    }

    /// Why it makes no sense to wait any longer.
    pub(super) fn hopeless(&self) -> Option<AgentFailure> {
        /// The second comes after five seconds, and the third after ten more.
        const ENOUGH: u32 = 2;
        (self.waits >= ENOUGH).then(|| self.trouble())
    }

    /// Why an answer is none.
    pub(super) fn fatal(&self) -> Option<AgentFailure> {
        self.is_fatal.then(|| self.trouble())
    }

    fn trouble(&self) -> AgentFailure {
        let last = self.last.as_deref();
        AgentFailure::Model(last.unwrap_or("it reported a failure").to_owned())
    }
}
