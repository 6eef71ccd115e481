//! Maps a provider's error response to a [`ModelError`].

use std::time::Duration;

use jiff::Timestamp;
use proctor_record::json;
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, LOCATION, RETRY_AFTER};
use serde_json::Value;

use super::ModelError;
use proctor_wire::network::page_text;

/// The longest accepted `Retry-After`. Proctor gives up long before it.
const LONGEST: Duration = Duration::from_hours(24);

/// Phrases with which providers and compatible servers report a conversation that exceeds the
/// context window.
const OVERFLOW: [&str; 11] = [
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "context limit",
    "exceed_context_size",
    "prompt is too long",
    "input is too long",
    "request_too_large",
    "maximum prompt length",
    "exceeds the maximum number of tokens",
];

/// Classifies a response without a success status. `shown` prepares the provider's text for
/// messages.
pub(super) fn of_status(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    shown: impl Fn(&str) -> String,
) -> ModelError {
    let refusal = RefusalBody::of(body);
    let text = refusal.text(body);
    let mut detail = shown(&text);
    if detail.is_empty() {
        detail = status.to_string();
    } else if !refusal.is_json {
        detail = format!("{status}: {detail}");
    }
    if status.is_redirection() {
        let to = headers.get(LOCATION).and_then(|to| to.to_str().ok());
        let to = shown(to.unwrap_or("nowhere"));
        let detail =
            format!("{status} to `{to}`, which Proctor does not follow; check the base URL");
        return ModelError::Rejected { detail };
    }
    let wait = retry_after(headers).or(refusal.retry_after);
    meaning(status.as_u16(), &refusal, detail, wait)
}

/// Classifies an error that came with a success status.
pub(super) fn in_success(error: &Value, shown: impl Fn(&str) -> String) -> ModelError {
    let refusal = RefusalBody::of(
        Value::from_iter([("error", error.clone())])
            .to_string()
            .as_bytes(),
    );
    let detail = shown(&refusal.text(&[]));
    let status = error.get("code").and_then(Value::as_u64);
    let status = status.and_then(|code| u16::try_from(code).ok());
    meaning(status.unwrap_or(500), &refusal, detail, None)
}

fn meaning(
    status: u16,
    refusal: &RefusalBody,
    detail: String,
    retry_after: Option<Duration>,
) -> ModelError {
    match status {
        401 | 403 => ModelError::Key { detail },
        400 if refusal.has("api_key_invalid") || refusal.has("api key not valid") => {
            ModelError::Key { detail }
        }
        // Waiting does not help.
        429 if refusal.has("insufficient_quota") => ModelError::Key { detail },
        429 => ModelError::RateLimited {
            retry_after,
            detail,
        },
        408 | 409 | 425 | 500..=599 => ModelError::Unavailable {
            retry_after,
            is_overload: status == 529
                || (status == 503 && (retry_after.is_some() || refusal.has("overloaded"))),
            detail,
        },
        413 => ModelError::ContextOverflow { detail },
        _ if OVERFLOW.iter().any(|word| refusal.has(word)) => {
            ModelError::ContextOverflow { detail }
        }
        _ => ModelError::Rejected { detail },
    }
}

/// The body of an error response.
struct RefusalBody {
    message: String,
    /// All fields that can hold an error code, in lower case.
    all: String,
    is_json: bool,
    /// The requested wait, if the body has one.
    retry_after: Option<Duration>,
}

impl RefusalBody {
    fn of(body: &[u8]) -> Self {
        let Ok(value) = json::from_slice::<Value>(body) else {
            let text = String::from_utf8_lossy(&body[..body.len().min(10_000)]);
            return Self {
                message: String::new(),
                all: text.to_lowercase(),
                is_json: false,
                retry_after: None,
            };
        };
        let error = value.get("error").unwrap_or(&value);
        let message = ["message", "detail", "error"]
            .iter()
            .find_map(|key| error.get(key).and_then(Value::as_str));
        let mut message = message.or(error.as_str()).unwrap_or_default().to_owned();
        // The message does not always name the parameter.
        if let Some(parameter) = error.get("param").and_then(Value::as_str)
            && !message.contains(parameter)
        {
            message.push_str(&format!(" (`{parameter}`)"));
        }
        Self {
            message,
            all: value.to_string().to_lowercase(),
            is_json: true,
            retry_after: retry_delay(error),
        }
    }

    fn text(&self, body: &[u8]) -> String {
        if self.message.is_empty() {
            return String::from_utf8_lossy(&page_text(&body[..body.len().min(10_000)]))
                .into_owned();
        }
        self.message.clone()
    }

    fn has(&self, word: &str) -> bool {
        self.all.contains(word)
    }
}

/// Gemini's form of `Retry-After`: `"details": [{"retryDelay": "34s"}]`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|one| one.get("retryDelay")?.as_str())?;
    seconds(delay.strip_suffix('s')?, 1.0)
}

/// The wait that the provider asks for, in any of the known headers.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(wait) = text("retry-after-ms").and_then(|text| seconds(text, 1000.0)) {
        return Some(wait);
    }
    let text = text(RETRY_AFTER.as_str())?;
    seconds(text, 1.0).or_else(|| until(text, headers))
}

fn seconds(text: &str, unit: f64) -> Option<Duration> {
    let number: f64 = text.trim().parse().ok()?;
    if !number.is_finite() || number < 0.0 {
        return None;
    }
    let seconds = (number / unit).min(LONGEST.as_secs_f64());
    Some(Duration::from_secs_f64(seconds))
}

/// The time until a date, by the provider's clock if it sends one, since ours may be wrong.
fn until(text: &str, headers: &HeaderMap) -> Option<Duration> {
    let date = |text: &str| {
        let zoned = jiff::fmt::rfc2822::parse(text.trim()).ok()?;
        Some(zoned.timestamp())
    };
    let then = date(text)?;
    let now = headers
        .get(DATE)
        .and_then(|value| value.to_str().ok())
        .and_then(date)
        .unwrap_or_else(Timestamp::now);
    let left = then.duration_since(now);
    // A date in the past means no wait.
    Some(Duration::try_from(left).unwrap_or_default().min(LONGEST))
}

#[cfg(test)]
mod tests;
