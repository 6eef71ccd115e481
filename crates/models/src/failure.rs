//! Maps a provider's error response to a [`ModelError`].

use std::time::Duration;

use jiff::Timestamp;
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
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
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
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    /// The headers, and the wait in milliseconds.
    type Row = (&'static [(&'static str, &'static str)], Option<u64>);

    #[test]
    fn every_kind_of_retry_after_is_read() {
        const NOW: (&str, &str) = ("date", "Sun, 15 Nov 2026 08:00:00 GMT");
        let day = 24 * 3600 * 1000;
        let table: [Row; 16] = [
            (&[], None),
            (&[("retry-after", "3")], Some(3_000)),
            (&[("retry-after", " 0.25 ")], Some(250)),
            (&[("retry-after", "0")], Some(0)),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "inf")], None),
            (&[("retry-after", "1e300")], Some(day)),
            (&[("retry-after-ms", "120")], Some(120)),
            (
                &[("retry-after-ms", "120"), ("retry-after", "9")],
                Some(120),
            ),
            (
                &[("retry-after-ms", "x"), ("retry-after", "9")],
                Some(9_000),
            ),
            (
                &[("retry-after", "Sun, 15 Nov 2026 08:00:07 GMT"), NOW],
                Some(7_000),
            ),
            (
                &[("retry-after", "Sun, 15 Nov 2026 07:00:00 GMT"), NOW],
                Some(0),
            ),
            (
                &[("retry-after", "Sun, 15 Nov 2099 08:00:00 GMT"), NOW],
                Some(day),
            ),
        ];
        for (given, expected) in table {
            let read = retry_after(&headers(given));
            assert_eq!(read, expected.map(Duration::from_millis), "{given:?}");
        }
    }

    #[test]
    fn errors_are_classified_by_status_code_and_text() {
        let kind = |status: u16, body: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            let error = of_status(status, &HeaderMap::new(), body.as_bytes(), str::to_owned);
            let name = format!("{error:?}");
            name.split([' ', '{']).next().unwrap().to_owned()
        };
        for (status, body, expected) in [
            (401, r#"{"error":{"message":"no"}}"#, "Key"),
            (403, "", "Key"),
            (429, r#"{"error":{"message":"slow"}}"#, "RateLimited"),
            (429, r#"{"error":{"code":"insufficient_quota"}}"#, "Key"),
            (500, "<html>", "Unavailable"),
            (503, "", "Unavailable"),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
                "Unavailable",
            ),
            (408, "", "Unavailable"),
            (
                400,
                r#"{"error":{"code":"context_length_exceeded"}}"#,
                "ContextOverflow",
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8"}}"#,
                "ContextOverflow",
            ),
            (
                400,
                r#"{"error":{"message":"prompt is too long: 9 > 8"}}"#,
                "ContextOverflow",
            ),
            (413, "", "ContextOverflow"),
            (400, r#"{"error":{"message":"bad"}}"#, "Rejected"),
            (404, r#"{"error":"model not found"}"#, "Rejected"),
            (422, r#"{"detail":"x"}"#, "Rejected"),
            (307, "", "Rejected"),
        ] {
            assert_eq!(kind(status, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn the_text_of_an_error_is_kept() {
        let detail = |body: &str| {
            let error = of_status(
                StatusCode::BAD_REQUEST,
                &HeaderMap::new(),
                body.as_bytes(),
                str::to_owned,
            );
            error.to_string()
        };
        assert!(detail(r#"{"error":{"message":"no such tool"}}"#).ends_with(": no such tool"));
        assert!(detail(r#"{"error":"gone"}"#).ends_with(": gone"));
        let named = r#"{"error":{"message":"not supported","param":"temperature"}}"#;
        assert!(detail(named).ends_with("not supported (`temperature`)"));
        assert!(detail(r#"{"odd":1}"#).ends_with(r#"{"odd":1}"#));
        assert!(detail("<b>").ends_with("400 Bad Request: <b>"));
        assert!(detail("").ends_with("400 Bad Request"));
    }
}
