//! Estimates the tokens of the parts of a trial, at four bytes per token. The totals of a model are the
//! provider's counts, if they are known.

use proctor_record::fold::{ClippedText, FoldedTrial};
use proctor_record::transcript::{Call, CallOutcome, CallRequest, Payload};
use serde_json::{Value, json};

/// The number of bytes per token.
const BYTES: u64 = 4;

/// The estimated tokens of the parts of a trial.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    prompt: u64,
    message: u64,
    thinking: u64,
    tools: (u64, u64),
    prompts: (u64, u64),
    resources: (u64, u64),
    schemas: u64,
    /// Whether the record lacks some of the calls.
    is_partial: bool,
}

impl Tokens {
    /// Estimates the tokens of a trial; `schemas` is the estimate for all tool schemas.
    pub(super) fn of(folded: &FoldedTrial, schemas: u64) -> Self {
        let work = &folded.work;
        let mut tokens = Self {
            prompt: work.prompt.as_ref().map_or(0, of_text),
            message: work.answer.as_ref().map_or(0, of_text),
            thinking: work.agent.usage.reasoning.unwrap_or(0),
            schemas,
            ..Self::default()
        };
        for call in &folded.transcript.calls {
            let (input, output) = both(call);
            let sums = match call.request {
                CallRequest::Tool { .. } => &mut tokens.tools,
                CallRequest::Prompt { .. } => &mut tokens.prompts,
                CallRequest::Resource { .. } => &mut tokens.resources,
            };
            sums.0 = sums.0.saturating_add(input);
            sums.1 = sums.1.saturating_add(output);
            tokens.is_partial |= !is_readable(call);
        }
        tokens
    }

    /// The object of the result file. `actual` is the provider's count.
    pub(super) fn estimate(&self, actual: Option<Value>) -> Value {
        let calls = [self.tools, self.prompts, self.resources];
        let input = calls
            .iter()
            .fold(self.prompt, |sum, (_, output)| sum.saturating_add(*output));
        let output = self.message.saturating_add(self.thinking);
        let output = calls
            .iter()
            .fold(output, |sum, (input, _)| sum.saturating_add(*input));
        let mut out = json!({
            "inputTokens": input,
            "outputTokens": output,
            "totalTokens": input.saturating_add(output),
            "promptTokens": self.prompt,
            "messageTokens": self.message,
            "thinkingTokens": self.thinking,
            "toolInputTokens": self.tools.0,
            "toolOutputTokens": self.tools.1,
            "mcpSchemaTokens": self.schemas,
            "promptGetInputTokens": self.prompts.0,
            "promptGetOutputTokens": self.prompts.1,
            "resourceInputTokens": self.resources.0,
            "resourceOutputTokens": self.resources.1,
            "source": "estimated",
        });
        if self.is_partial {
            out["error"] = Value::from("some calls can't be read from the record");
        }
        if let Some(actual) = actual {
            for key in ["inputTokens", "outputTokens", "totalTokens"] {
                out[key] = actual[key].clone();
            }
            out["source"] = Value::from("actual");
            out["actual"] = actual;
        }
        out
    }
}

/// The tokens of one call.
pub(super) fn of_call(call: &Call) -> Value {
    let (input, output) = both(call);
    json!({ "inputTokens": input, "outputTokens": output, "totalTokens": input.saturating_add(output) })
}

/// The tokens of a value, written as JSON.
pub(super) fn of_value(value: &Value) -> u64 {
    of_bytes(value.to_string().len() as u64)
}

fn both(call: &Call) -> (u64, u64) {
    let input = match &call.request {
        CallRequest::Tool { arguments, .. } | CallRequest::Prompt { arguments, .. } => {
            of_payload(arguments)
        }
        CallRequest::Resource { uri } => of_bytes(uri.len() as u64),
    };
    let output = match &call.answer {
        CallOutcome::Result(payload) => of_payload(payload),
        CallOutcome::Error { message, .. } => of_bytes(message.len() as u64),
        CallOutcome::None => 0,
    };
    (input, output)
}

fn is_readable(call: &Call) -> bool {
    let arguments = match &call.request {
        CallRequest::Tool { arguments, .. } | CallRequest::Prompt { arguments, .. } => {
            arguments.read()
        }
        CallRequest::Resource { .. } => Ok(None),
    };
    let result = match &call.answer {
        CallOutcome::Result(payload) => payload.read(),
        CallOutcome::Error { .. } | CallOutcome::None => Ok(None),
    };
    arguments.is_ok() && result.is_ok()
}

fn of_payload(payload: &Payload) -> u64 {
    match payload {
        Payload::Value(value) => of_value(value),
        Payload::Cut { bytes } | Payload::Omitted { bytes } => of_bytes(*bytes),
        Payload::Absent | Payload::Unreadable { .. } => 0,
    }
}

fn of_text(text: &ClippedText) -> u64 {
    let kept = (text.head.len() + text.tail.len()) as u64;
    of_bytes(kept.saturating_add(text.left_out))
}

fn of_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES)
}
