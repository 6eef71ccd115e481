//! The check `callOrder`: calls occur in a given order, with any calls between them.

use proctor_record::excerpt::excerpt;
use proctor_record::transcript::{Call, CallRequest, Transcript};

use super::CheckResult;
use super::target::{OrderEntry, OrderKind};
use super::wording::{distinct, numbers};

pub(super) fn evaluate(entries: &[OrderEntry], transcript: &Transcript) -> CheckResult {
    if entries.is_empty() {
        return CheckResult::nothing_to_check();
    }
    // Taking the first fitting call each time leaves the most room for the entries behind it.
    let mut rest = transcript.calls.iter();
    let mut found = Vec::new();
    for entry in entries {
        match rest.find(|call| is(entry, call)) {
            Some(call) => found.push(call.seq),
            None => return missing(entry, entries, found, transcript),
        }
    }
    CheckResult::pass(found)
}

fn missing(
    entry: &OrderEntry,
    entries: &[OrderEntry],
    mut found: Vec<u64>,
    transcript: &Transcript,
) -> CheckResult {
    let place = format!("{} of {} ({entry})", found.len() + 1, entries.len());
    let elsewhere: Vec<u64> = transcript
        .calls
        .iter()
        .filter(|call| is(entry, call))
        .map(|call| call.seq)
        .collect();
    let reason = match (elsewhere.is_empty(), found.last()) {
        (false, Some(last)) => format!(
            "{place} was not called after {} at #{last}, only at {}",
            entries[found.len() - 1],
            numbers(&elsewhere)
        ),
        _ if transcript.calls.is_empty() => {
            format!("{place} was never called; the agent made no calls")
        }
        _ => {
            let labels = transcript.calls.iter().map(|call| named(call).to_string());
            format!("{place} was never called; called: {}", distinct(labels))
        }
    };
    found.extend(elsewhere);
    CheckResult::fail(reason, found)
}

fn is(entry: &OrderEntry, call: &Call) -> bool {
    let (kind, name) = kind_and_name(call);
    entry.kind == kind && entry.server == call.server && entry.name == name
}

fn named(call: &Call) -> OrderEntry {
    let (kind, name) = kind_and_name(call);
    OrderEntry {
        kind,
        server: call.server.clone(),
        name: excerpt(name).into_owned(),
    }
}

fn kind_and_name(call: &Call) -> (OrderKind, &str) {
    match &call.request {
        CallRequest::Tool { name, .. } => (OrderKind::Tool, name),
        CallRequest::Resource { uri } => (OrderKind::Resource, uri),
        CallRequest::Prompt { name, .. } => (OrderKind::Prompt, name),
    }
}
