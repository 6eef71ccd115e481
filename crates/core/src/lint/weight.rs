//! Rules on the size of tools.

use serde_json::Value;

use super::{Findings, LintRule, LintedTool};
use crate::contract::tool_tokens;

/// The highest weight of one tool, in estimated tokens.
const ONE: u64 = 1_500;

/// The highest weight of all tools.
const ALL: u64 = 12_000;

fn tokens(tool: &LintedTool<'_>) -> u64 {
    let part = |key: &str| tool.value.get(key).unwrap_or(&Value::Null);
    tool_tokens(&tool.name, part("description"), part("inputSchema"))
}

pub(super) fn tool(tool: &LintedTool<'_>, found: &mut Findings) {
    let tokens = tokens(tool);
    if tokens > ONE {
        let message = format!("about {tokens} tokens in each model request");
        found.add(LintRule::HeavyTool, tool.server, &tool.place(), message);
    }
}

pub(super) fn all(tools: &[LintedTool<'_>], found: &mut Findings) {
    let total: u64 = tools.iter().map(tokens).sum();
    if total > ALL {
        let mut servers: Vec<&str> = tools.iter().map(|tool| tool.server).collect();
        servers.dedup();
        let message = format!(
            "{} tools, about {total} tokens in each model request",
            tools.len()
        );
        found.add(
            LintRule::HeavySurface,
            &servers.join(", "),
            "tools",
            message,
        );
    }
}
