//! Decides what recorded facts mean for a trial: whether a server failed it, and the blame
//! for a failed check.
//!
//! The main functions are [`server_failure`] and [`blame_for_failure`]. Both are pure, and the same
//! for every agent and transport. They read facts, never the wording of a message, and state blame
//! only if the record proves it.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::Value;

use crate::event::{Blame, FindingKind, Outcome};
use crate::excerpt::excerpt;
use crate::fold::{Conduct, FoldedTrial, NoAnswer, ServerEnd, UnansweredCall};
use crate::hint::listed;
use crate::transcript::{Call, CallOutcome, Payload, Transcript};

/// The JSON-RPC error code of a server that failed.
const INTERNAL_ERROR: i64 = -32603;

/// Why a trial ends, regardless of its checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialFailure {
    /// Failed, or errored if the server could not be evaluated.
    pub outcome: Outcome,
    /// The blame, if the record proves it.
    pub blame: Option<Blame>,
    pub reason: String,
}

/// How a server failed a trial; `None` if the trial's checks decide.
///
/// A call without a JSON-RPC response fails the trial, unless the client cancelled it or repeated
/// it successfully. A server that rejects a call as unauthorized (401, 403) can't be evaluated.
pub fn server_failure(conduct: &Conduct) -> Option<TrialFailure> {
    if let Some(end) = conduct.ended.iter().find(|end| counts(end, conduct)) {
        return Some(of_end(end, conduct));
    }
    let counted = || conduct.unanswered.iter().filter(|u| u.excuse.is_none());
    let rank = |unanswered: &&UnansweredCall| match blame_of(&unanswered.cause) {
        Some(Blame::Server) => 0,
        Some(_) => 1,
        None => 2,
    };
    counted().min_by_key(rank).map(of_call)
}

/// The first protocol violation of a server, which fails the trial in a strict run.
pub fn breach(folded: &FoldedTrial) -> Option<TrialFailure> {
    let finding = folded.breaches.first()?;
    let server = folded.work.server(finding.conn).unwrap_or_default();
    Some(TrialFailure {
        outcome: Outcome::Failed,
        blame: Some(Blame::Server),
        reason: format!(
            "the server `{server}` violates the protocol: {}",
            finding.detail
        ),
    })
}

/// The blame for a failed check.
///
/// The server, if it answered with an internal error or an invalid response, or violated the
/// protocol in a response; the agent, if every call that it made was answered without an error.
/// Otherwise `None`: a tool error such as "database is locked" doesn't prove whose fault it is.
pub fn blame_for_failure(folded: &FoldedTrial) -> Option<Blame> {
    let breaks = |kind: FindingKind| {
        matches!(
            kind,
            FindingKind::Malformed
                | FindingKind::ResultAndError
                | FindingKind::UnknownId
                | FindingKind::DuplicateAnswer
        )
    };
    let is_breach = folded.breaches.iter().any(|finding| breaks(finding.kind));
    if is_breach || folded.transcript.calls.iter().any(is_server_error) {
        return Some(Blame::Server);
    }
    let is_clean = folded.conduct.unanswered.is_empty() && all_clean(&folded.transcript);
    is_clean.then_some(Blame::Agent)
}

/// The calls that ended in an error: a JSON-RPC error, a tool error, or no response.
pub fn calls_in_error(transcript: &Transcript) -> impl Iterator<Item = &Call> {
    transcript.calls.iter().filter(|call| match &call.answer {
        CallOutcome::Error { .. } | CallOutcome::None => true,
        CallOutcome::Result(payload) => is_tool_error(payload) == Some(true),
    })
}

/// Whether every call was answered without an error and the record is complete.
fn all_clean(transcript: &Transcript) -> bool {
    let is_clean = |call: &Call| match &call.answer {
        CallOutcome::Result(payload) => is_tool_error(payload) == Some(false),
        CallOutcome::Error { .. } | CallOutcome::None => false,
    };
    transcript.unread.is_empty() && transcript.calls.iter().all(is_clean)
}

fn is_server_error(call: &Call) -> bool {
    match &call.answer {
        CallOutcome::Error { code, .. } => *code == INTERNAL_ERROR,
        CallOutcome::Result(Payload::Unreadable { .. }) => true,
        CallOutcome::Result(_) | CallOutcome::None => false,
    }
}

/// Whether a result is a tool error; `None` if the record does not hold it.
fn is_tool_error(payload: &Payload) -> Option<bool> {
    match payload.read() {
        Ok(Some(Value::Object(result))) => match result.get("isError") {
            None => Some(false),
            Some(value) => value.as_bool(),
        },
        Ok(_) => Some(false),
        Err(_) => None,
    }
}

/// Whether the end of a server fails the trial. It does not if its calls were repeated
/// successfully, or if the server never sent a message and was started again: some agents probe
/// servers this way.
fn counts(end: &ServerEnd, conduct: &Conduct) -> bool {
    let mut calls = conduct.unanswered.iter().filter(|u| u.conn == end.conn);
    let first = calls.next();
    let all_excused = first.is_some_and(|first| first.excuse.is_some())
        && calls.all(|unanswered| unanswered.excuse.is_some());
    let is_trial_run = !end.has_spoken && end.reopened;
    !all_excused && !is_trial_run
}

fn of_end(end: &ServerEnd, conduct: &Conduct) -> TrialFailure {
    let server = &end.server;
    // Some ends are sentences.
    let how = match end.how.strip_prefix("the server ") {
        Some(how) => format!("it {how}"),
        None if end.how.starts_with("the ") => end.how.clone(),
        None => format!("it {}", end.how),
    };
    let last = last_words(end.stderr.as_deref().unwrap_or_default());
    if !end.has_spoken {
        return TrialFailure {
            outcome: Outcome::Errored,
            blame: Some(Blame::Server),
            reason: format!("the server `{server}` failed to start for the agent: {how}{last}"),
        };
    }
    let open = conduct.unanswered.iter().filter(|u| u.conn == end.conn);
    let open: Vec<Cow<'_, str>> = open.map(|u| excerpt(&u.target)).collect();
    let during = match open.as_slice() {
        [] => String::new(),
        open => format!(" during {}", listed(open.iter().map(AsRef::as_ref))),
    };
    TrialFailure {
        outcome: Outcome::Failed,
        blame: Some(Blame::Server),
        reason: format!("the server `{server}` failed while the agent worked: {how}{during}{last}"),
    }
}

fn of_call(unanswered: &UnansweredCall) -> TrialFailure {
    let server = &unanswered.server;
    let target = excerpt(&unanswered.target);
    let blame = blame_of(&unanswered.cause);
    let waited = crate::duration::brief(unanswered.waited);
    let reason = match &unanswered.cause {
        NoAnswer::Status(status @ (401 | 403)) => {
            let word = if *status == 401 {
                "unauthorized"
            } else {
                "forbidden"
            };
            return TrialFailure {
                outcome: Outcome::Errored,
                blame,
                reason: format!(
                    "the server `{server}` refused `{target}`: HTTP status {status} ({word}); check its \
                     credentials"
                ),
            };
        }
        NoAnswer::NoToken(why) => {
            return TrialFailure {
                outcome: Outcome::Errored,
                blame,
                reason: format!("`{target}` of the server `{server}` has no result: {why}"),
            };
        }
        NoAnswer::ClientLeft => format!(
            "the agent closed its connection to the server `{server}` before `{target}` was answered \
             ({waited})"
        ),
        NoAnswer::TimedOut => failed(
            server,
            &format!("`{target}` got no response within {waited}"),
        ),
        cause @ (NoAnswer::ServerEnded(_)
        | NoAnswer::ServerClosed
        | NoAnswer::Status(_)
        | NoAnswer::NotJsonRpc
        | NoAnswer::Broken(_)) => failed(server, &format!("`{target}` got no answer: {cause}")),
    };
    TrialFailure {
        outcome: Outcome::Failed,
        blame,
        reason,
    }
}

fn failed(server: &str, how: &str) -> String {
    format!("the server `{server}` failed while the agent worked: {how}")
}

/// The blame for a missing response, if that is proven.
fn blame_of(cause: &NoAnswer) -> Option<Blame> {
    match cause {
        NoAnswer::Status(401 | 403) | NoAnswer::NoToken(_) => Some(Blame::Infra),
        NoAnswer::ServerEnded(_)
        | NoAnswer::ServerClosed
        | NoAnswer::Status(_)
        | NoAnswer::NotJsonRpc
        | NoAnswer::Broken(_)
        | NoAnswer::TimedOut => Some(Blame::Server),
        NoAnswer::ClientLeft => None,
    }
}

/// The end of a program's stderr, to append to a reason.
pub fn last_words(stderr: &str) -> String {
    const LINES: usize = 10;
    const BYTES: usize = 2_000;
    let lines: Vec<&str> = stderr.trim().lines().collect();
    let text = lines[lines.len().saturating_sub(LINES)..].join("\n");
    let from = text.ceil_char_boundary(text.len().saturating_sub(BYTES));
    match &text[from..] {
        "" => String::new(),
        text => format!("; the end of its stderr:\n{text}"),
    }
}
