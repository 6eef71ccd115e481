//! The check `noDuplicateCalls`: no tool is called twice with the same arguments.

use std::collections::HashMap;

use proctor_record::json::{brief, canonical};
use proctor_record::transcript::Transcript;
use serde_json::{Map, Value};

use super::CheckResult;
use super::fit::{ObservedToolCall, tool_calls};
use super::wording::{label, listed, numbers};

pub(super) fn evaluate(transcript: &Transcript) -> CheckResult {
    let calls = tool_calls(transcript);
    let repeated = repeated(&calls);
    if !repeated.is_empty() {
        let lines = repeated.iter().map(|group| describe(group)).collect();
        let evidence = repeated.iter().flatten().map(|tool| tool.call.seq);
        return CheckResult::fail(listed(lines, "\n"), evidence.collect());
    }
    let doubtful = doubtful(&calls);
    if !doubtful.is_empty() {
        let evidence = doubtful.iter().map(|(seq, _)| *seq).collect();
        let lines = doubtful.into_iter().map(|(_, line)| line).collect();
        return CheckResult::unknown(listed(lines, "\n"), evidence);
    }
    CheckResult::pass(calls.iter().map(|tool| tool.call.seq).collect())
}

/// Groups of calls that are the same, in the order of their first ones.
fn repeated<'a>(calls: &[ObservedToolCall<'a>]) -> Vec<Vec<ObservedToolCall<'a>>> {
    let mut groups: Vec<Vec<ObservedToolCall<'_>>> = Vec::new();
    let mut group_of: HashMap<(&str, &str, String), usize> = HashMap::new();
    for tool in calls {
        let Ok(arguments) = tool.arguments.read() else {
            continue;
        };
        let arguments = arguments.map_or_else(|| "{}".to_owned(), canonical);
        let group = *group_of
            .entry((&tool.call.server, tool.name, arguments))
            .or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(*tool);
    }
    groups.retain(|group| group.len() > 1);
    groups
}

fn describe(group: &[ObservedToolCall<'_>]) -> String {
    let first = group[0];
    let arguments = first.arguments.read().ok().flatten();
    let seqs: Vec<u64> = group.iter().map(|tool| tool.call.seq).collect();
    format!(
        "{} was called {} times with {}: {}",
        label(&first.call.server, first.name),
        group.len(),
        arguments.map_or_else(|| brief(&Value::Object(Map::default())), brief),
        numbers(&seqs)
    )
}

/// Calls whose arguments can't be compared, if there are other calls of the same tool.
fn doubtful(calls: &[ObservedToolCall<'_>]) -> Vec<(u64, String)> {
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    for tool in calls {
        *counts.entry((&tool.call.server, tool.name)).or_default() += 1;
    }
    calls
        .iter()
        .filter(|tool| counts[&(tool.call.server.as_str(), tool.name)] > 1)
        .filter_map(|tool| {
            let why = tool.arguments.read().err()?;
            let seq = tool.call.seq;
            let label = label(&tool.call.server, tool.name);
            Some((
                seq,
                format!("call #{seq} ({label}) may repeat another call, but its arguments {why}"),
            ))
        })
        .collect()
}
