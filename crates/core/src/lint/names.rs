//! Rules on the names of tools.

use std::collections::BTreeMap;

use proctor_record::json;
use serde_json::Value;

use super::{Findings, LintRule, LintedTool};

/// The longest name that every provider accepts.
const LONGEST: usize = 64;

/// Verbs of tools that change something.
const WRITES: [&str; 32] = [
    "add",
    "append",
    "commit",
    "create",
    "delete",
    "destroy",
    "drop",
    "edit",
    "erase",
    "exec",
    "execute",
    "insert",
    "install",
    "kill",
    "merge",
    "modify",
    "move",
    "patch",
    "publish",
    "purge",
    "push",
    "put",
    "remove",
    "rename",
    "reset",
    "send",
    "terminate",
    "truncate",
    "uninstall",
    "update",
    "upload",
    "write",
];

/// Verbs of tools that only read. A write-like word after one of them is an object: `get_update_status`.
const READS: [&str; 18] = [
    "check", "compare", "count", "describe", "diff", "explain", "fetch", "find", "get", "is",
    "list", "preview", "query", "read", "search", "show", "validate", "view",
];

pub(super) fn tool(tool: &LintedTool<'_>, found: &mut Findings) {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name = &tool.name;
    let problem = if name.is_empty() {
        Some("the name is empty".to_owned())
    } else if let Some(c) = name.chars().find(|c| !is_legal(*c)) {
        let c = json::brief(&Value::from(c.to_string()));
        Some(format!("some providers refuse {c} in a name"))
    } else if name.len() > LONGEST {
        let length = name.len();
        Some(format!(
            "the name has {length} characters; some providers refuse more than {LONGEST}"
        ))
    } else {
        None
    };
    if let Some(problem) = problem {
        found.add(LintRule::RefusedName, tool.server, &tool.place(), problem);
    }
    let hint = tool.value.pointer("/annotations/readOnlyHint");
    if hint == Some(&Value::Bool(true))
        && let Some(verb) = write_verb(name)
    {
        let message = format!("the name says `{verb}`, and `readOnlyHint` is true");
        found.add(
            LintRule::WriteMarkedReadOnly,
            tool.server,
            &tool.place(),
            message,
        );
    }
}

/// The verb of a tool that changes something.
fn write_verb(name: &str) -> Option<&'static str> {
    for word in words(name) {
        if READS.contains(&word.as_str()) {
            return None;
        }
        if let Some(verb) = WRITES.into_iter().find(|verb| *verb == word) {
            return Some(verb);
        }
    }
    None
}

/// The words of a name: `getHTTPStatus`, `get_http_status` and `get-http-status` have the same.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    let mut is_new = true;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            is_new = true;
            continue;
        }
        if is_new || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
        is_new = false;
    }
    words
}

pub(super) fn all(tools: &[LintedTool<'_>], found: &mut Findings) {
    let mut by_name: BTreeMap<String, Vec<&LintedTool<'_>>> = BTreeMap::new();
    for tool in tools {
        let folded: String = words(&tool.name).concat();
        by_name.entry(folded).or_default().push(tool);
    }
    for same in by_name.values() {
        for (at, tool) in same.iter().enumerate().skip(1) {
            let first = &same[..at];
            if first
                .iter()
                .any(|other| other.server == tool.server && other.name == tool.name)
            {
                let message = "the server lists the name twice";
                found.add(LintRule::DuplicateName, tool.server, &tool.place(), message);
            } else if let Some(other) = first.first() {
                let (name, server) = (&other.name, other.server);
                let message = if server == tool.server {
                    format!("the name differs from `{name}` only in case, `_` and `-`")
                } else {
                    format!("the server `{server}` has the tool `{name}`")
                };
                found.add(
                    LintRule::CollidingNames,
                    tool.server,
                    &tool.place(),
                    message,
                );
            }
        }
    }
}
