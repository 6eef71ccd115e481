//! Calls each tool twice, on two connections, and keeps answers that are the same.
//!
//! An answer that differs between calls or between starts of the server would make a flaky eval, and one with a path of
//! this machine an eval that fails on every other.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proctor_core::draft::volatile::machine_path;
use proctor_core::suite::Server;
use proctor_record::json;
use proctor_wire::client::{CallError, Client, ListLimits};
use serde_json::Value;
use tokio::time::Instant;

use super::super::servers::Visit;
use super::EvalDraft;
use proctor_run::engine::consent::{ConsentDifference, ConsentGrant};
use proctor_run::engine::offers::{GatherError, offer_of_tools};

/// The time between the two rounds of calls: more than a second, so that timestamps differ.
const APART: Duration = Duration::from_millis(1_100);

/// The maximum size of an answer, in bytes.
const LARGEST: usize = 64 << 10;

/// The maximum nesting depth of an answer in an evals file.
const DEEPEST: usize = 60;

/// The result of the two calls of one tool.
#[derive(Debug, PartialEq)]
pub(super) enum ProbeOutcome {
    /// Both calls returned this content.
    Steady(Value),
    /// The answers don't make an eval, with the reason.
    Unfit(String),
}

/// An error before any tool was called.
#[derive(Debug, thiserror::Error)]
pub(super) enum RoundError {
    /// The server could not be reached.
    #[error(transparent)]
    Gather(#[from] GatherError),
    /// The server changed after the consent.
    #[error(transparent)]
    Changed(#[from] ConsentDifference),
}

/// Calls every tool twice and compares the answers.
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
            without_secrets(answer, visit)
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
        .map_err(|error| GatherError::StartFailed(error.naming(&server.name)))?;
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
    // After a restart, the server may have other tools than those in the consent.
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
        return Err("its answer is too large for an evals file".to_owned());
    }
    let value: Value = json::from_str(result.raw.get()).unwrap_or_default();
    let content = value.get("content").cloned().unwrap_or_default();
    if result.is_error {
        let text = content.pointer("/0/text").and_then(Value::as_str);
        let text = text.unwrap_or("no text").lines().next().unwrap_or_default();
        let text: String = text.chars().take(200).collect();
        return Err(format!("it returned an error: {text}"));
    }
    if !content.is_array() {
        return Err("its answer has no `content` array".to_owned());
    }
    if content.to_string().len() > LARGEST {
        return Err("its answer is too large for an evals file".to_owned());
    }
    if depth(&content) > DEEPEST {
        return Err("its answer is nested too deeply for an evals file".to_owned());
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
        return ProbeOutcome::Unfit("its answer differs between two calls".to_owned());
    }
    let text = first.to_string();
    if dates.iter().any(|date| text.contains(date.as_str())) {
        let why = "its answer contains the current date, so it changes every day";
        return ProbeOutcome::Unfit(why.to_owned());
    }
    if let Some(path) = machine_path(&first) {
        let why = format!("its answer contains a path of this machine, `{path}`");
        return ProbeOutcome::Unfit(why);
    }
    ProbeOutcome::Steady(first)
}

/// The current dates in all time zones, in common formats.
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

/// Rejects answers that contain a secret: the evals file is public.
fn without_secrets(answer: ProbeOutcome, visit: &Visit<'_>) -> ProbeOutcome {
    match &answer {
        ProbeOutcome::Steady(content) => {
            let text = content.to_string();
            if visit.redactor.text(&text) == text {
                answer
            } else {
                ProbeOutcome::Unfit("its answer contains a secret".to_owned())
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
    fn e38_only_stable_answers_become_evals() {
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
        assert!(unfit(text("a"), text("b")).contains("differs between"));
        let today = "at 2026-11-16T05:00";
        assert!(unfit(text(today), text(today)).contains("current date"));
        let path = "Allowed directories:\n/home/me/notes";
        assert!(unfit(text(path), text(path)).contains("of this machine, `/home/me/notes`"));
        assert_eq!(unfit(text("a"), Err("gone".to_owned())), "gone");
        assert_eq!(unfit(Err("gone".to_owned()), text("a")), "gone");
    }
}
