//! Calls tools twice, each time on a connection of its own, and keeps what is the same.
//!
//! What differs from one call to the next, or from one start of the server to the next, is no eval:
//! it would fail tomorrow.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proctor_core::json;
use proctor_core::suite::Server;
use proctor_wire::client::{CallError, Client, ListLimits};
use serde_json::Value;
use tokio::time::Instant;

use super::super::servers::Visit;
use super::EvalDraft;
use proctor_run::engine::consent::{ConsentDifference, ConsentGrant};
use proctor_run::engine::offers::{GatherError, offer_of_tools};

/// How long after the first calls the second ones are made: clocks that show seconds move on.
const APART: Duration = Duration::from_millis(1_100);

/// How much of an answer is kept, in bytes.
const LARGEST: usize = 64 << 10;

/// How deep an answer may nest, to stand in a file with room above it.
const DEEPEST: usize = 60;

/// What came of the calls of one tool.
#[derive(Debug, PartialEq)]
pub(super) enum ProbeOutcome {
    /// This content, both times.
    Steady(Value),
    /// Nothing that an eval could expect, and why.
    Unfit(String),
}

/// Why tools were not called.
#[derive(Debug, thiserror::Error)]
pub(super) enum RoundError {
    /// The server is not there.
    #[error(transparent)]
    Gather(#[from] GatherError),
    /// It is not what was agreed to.
    #[error(transparent)]
    Changed(#[from] ConsentDifference),
}

/// Calls every tool twice.
pub(super) async fn answers(
    server: &Server,
    visit: &Visit<'_>,
    granted: &ConsentGrant,
    trials: &[EvalDraft],
) -> Result<Vec<ProbeOutcome>, RoundError> {
    let first = round(server, visit, granted, trials).await?;
    let resume = Instant::now() + APART;
    tokio::time::sleep_until(resume).await;
    let second = round(server, visit, granted, trials).await?;
    let dates = dates(Timestamp::now());
    let pairs = first.into_iter().zip(second);
    Ok(pairs
        .map(|(first, second)| {
            let answer = compare(first, second, &dates);
            hide_nothing(answer, visit)
        })
        .collect())
}

async fn round(
    server: &Server,
    visit: &Visit<'_>,
    granted: &ConsentGrant,
    trials: &[EvalDraft],
) -> Result<Vec<Result<Value, String>>, RoundError> {
    let client = Client::connect(server, visit.options)
        .await
        .map_err(|error| GatherError::NotUp(error.naming(&server.name)))?;
    let contents = call_all(server, &client, granted, trials).await;
    client.close().await;
    contents
}

async fn call_all(
    server: &Server,
    client: &Client,
    granted: &ConsentGrant,
    trials: &[EvalDraft],
) -> Result<Vec<Result<Value, String>>, RoundError> {
    // A server that was started again may not be the one that was shown.
    let offer = offer_of_tools(server, client, &ListLimits::default()).await?;
    granted.still_holds(&[offer])?;
    let mut contents = Vec::new();
    for trial in trials {
        contents.push(call(client, trial).await);
    }
    Ok(contents)
}

async fn call(client: &Client, trial: &EvalDraft) -> Result<Value, String> {
    let result = client.call_tool(&trial.tool, trial.arguments.clone()).await;
    let result = result.map_err(|error: CallError| format!("the call failed: {error}"))?;
    if result.raw.get().len() > 4 * LARGEST {
        return Err("its answer is too large to be read in a file".to_owned());
    }
    let value: Value = serde_json::from_str(result.raw.get()).unwrap_or_default();
    let content = value.get("content").cloned().unwrap_or_default();
    if result.is_error {
        let text = content.pointer("/0/text").and_then(Value::as_str);
        let text = text.unwrap_or("no text").lines().next().unwrap_or_default();
        let text: String = text.chars().take(200).collect();
        return Err(format!("it answered with an error: {text}"));
    }
    if !content.is_array() {
        return Err("its answer has no list `content`".to_owned());
    }
    if content.to_string().len() > LARGEST {
        return Err("its answer is too large to be read in a file".to_owned());
    }
    if depth(&content) > DEEPEST {
        return Err("its answer nests too deep to be read in a file".to_owned());
    }
    Ok(content)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn compare(
    first: Result<Value, String>,
    second: Result<Value, String>,
    dates: &[String],
) -> ProbeOutcome {
    let (first, second) = match (first, second) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(why), _) | (_, Err(why)) => return ProbeOutcome::Unfit(why),
    };
    if !json::equal(&first, &second) {
        return ProbeOutcome::Unfit("it answered differently the second time".to_owned());
    }
    let text = first.to_string();
    if dates.iter().any(|date| text.contains(date.as_str())) {
        let why = "its answer holds the date of today, and will differ tomorrow";
        return ProbeOutcome::Unfit(why.to_owned());
    }
    ProbeOutcome::Steady(first)
}

/// The dates that it may be somewhere on earth, in the forms that programs write.
fn dates(now: Timestamp) -> Vec<String> {
    let mut dates: Vec<String> = [-12, 0, 14]
        .into_iter()
        .map(|hours| now + SignedDuration::from_hours(hours))
        .flat_map(|at| {
            ["%Y-%m-%d", "%b %d %Y", "%d %b %Y"].map(|form| at.strftime(form).to_string())
        })
        .collect();
    dates.sort();
    dates.dedup();
    dates
}

/// What holds a secret of the user's is not written to a file for others.
fn hide_nothing(answer: ProbeOutcome, visit: &Visit<'_>) -> ProbeOutcome {
    match &answer {
        ProbeOutcome::Steady(content) => {
            let text = content.to_string();
            if visit.redactor.text(&text) == text {
                answer
            } else {
                ProbeOutcome::Unfit("its answer holds a secret".to_owned())
            }
        }
        ProbeOutcome::Unfit(_) => answer,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn e38_only_what_stays_the_same_is_expected() {
        let now: Timestamp = "2026-11-15T23:00:00Z".parse().unwrap();
        let dates = dates(now);
        let forms = ["15 Nov 2026", "16 Nov 2026", "2026-11-15", "2026-11-16"];
        assert_eq!(
            dates,
            [&forms[..], &["Nov 15 2026", "Nov 16 2026"]].concat()
        );
        let text = |text: &str| Ok(json!([{"type": "text", "text": text}]));
        let unfit = |first, second| match compare(first, second, &dates) {
            ProbeOutcome::Unfit(why) => why,
            ProbeOutcome::Steady(content) => panic!("{content}"),
        };
        let steady = compare(text("3"), text("3"), &dates);
        assert_eq!(
            steady,
            ProbeOutcome::Steady(json!([{"type": "text", "text": "3"}]))
        );
        let numbers = compare(Ok(json!([1])), Ok(json!([1.0])), &dates);
        assert_eq!(numbers, ProbeOutcome::Steady(json!([1])));
        assert!(unfit(text("a"), text("b")).contains("differently"));
        let today = "at 2026-11-16T05:00";
        assert!(unfit(text(today), text(today)).contains("date of today"));
        assert_eq!(unfit(text("a"), Err("gone".to_owned())), "gone");
        assert_eq!(unfit(Err("gone".to_owned()), text("a")), "gone");
    }
}
