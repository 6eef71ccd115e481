//! Texts about calls for messages: names, numbers, and short lists.

use std::collections::HashMap;

use proctor_record::excerpt::excerpt;

use super::fit::ObservedToolCall;

/// The maximum number of list items in a message.
pub(super) const LISTED: usize = 10;

/// A server and a name.
pub(super) fn label(server: &str, name: &str) -> String {
    format!("`{server}` `{}`", excerpt(name))
}

/// The names of calls, each once, with its count.
pub(super) fn distinct(labels: impl IntoIterator<Item = String>) -> String {
    let mut order = Vec::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for label in labels {
        let count = counts.entry(label.clone()).or_default();
        if *count == 0 {
            order.push(label);
        }
        *count += 1;
    }
    let named = order.into_iter().map(|label| match counts[&label] {
        1 => label,
        count => format!("{label} ×{count}"),
    });
    listed(named.collect(), ", ")
}

/// The names of tool calls, or a note that there are none.
pub(super) fn called(calls: &[ObservedToolCall<'_>]) -> String {
    if calls.is_empty() {
        return "no tool was called".to_owned();
    }
    let labels = calls.iter().map(|tool| label(&tool.call.server, tool.name));
    format!("called: {}", distinct(labels))
}

/// Renders event numbers as `#3, #7`.
pub(super) fn numbers(seqs: &[u64]) -> String {
    listed(seqs.iter().map(|seq| format!("#{seq}")).collect(), ", ")
}

/// The first few of a list, and how many more there are.
pub(super) fn listed(mut members: Vec<String>, separator: &str) -> String {
    let more = members.len().saturating_sub(LISTED);
    if more > 0 {
        members.truncate(LISTED);
        members.push(format!("and {more} more"));
    }
    members.join(separator)
}

/// Renders a number with its noun, as in `3 tool calls`.
pub(super) fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
