//! The coverage of a run as a JSON document for scripts.

use std::time::Duration;

use proctor_core::coverage::{ArgumentCoverage, CallUse, Coverage, ItemCoverage, ServerCoverage};
use serde_json::{Value, json};

/// The coverage as a JSON document for scripts.
pub fn document(coverage: &Coverage) -> Value {
    json!({
        "version": 1,
        "tokenRule": "estimate: a quarter of the bytes of name, description and inputSchema as JSON",
        "servers": coverage.servers.iter().map(server).collect::<Vec<_>>(),
        "otherCalls": coverage.other_calls,
        "unreadArguments": coverage.unread_arguments,
    })
}

/// The totals of each server, without single tools.
pub(crate) fn totals(coverage: &Coverage) -> Vec<Value> {
    let servers = coverage.servers.iter();
    let totals = servers.map(|server| {
        let count = |used: usize, all: usize| json!({ "used": used, "offered": all });
        let resources = server.resources.len() + server.templates.len();
        let listed = |value: Value| if server.is_listed { value } else { Value::Null };
        json!({
            "server": server.server,
            "listed": server.is_listed,
            "tools": listed(count(server.tools_called(), server.tools.len())),
            "resources": listed(count(server.resources_read(), resources)),
            "prompts": listed(count(server.prompts_used(), server.prompts.len())),
            "schemaTokens": listed(json!(server.schema_tokens())),
        })
    });
    totals.collect()
}

fn server(server: &ServerCoverage) -> Value {
    let item = |item: &ItemCoverage| {
        let mut out = used(&item.used);
        out["name"] = json!(item.name);
        out
    };
    let tools = server.tools.iter().map(|tool| {
        let mut out = used(&tool.used);
        out["name"] = json!(tool.name);
        out["schemaTokens"] = json!(tool.schema_tokens);
        out["arguments"] = arguments(&tool.arguments);
        out
    });
    let prompts = server.prompts.iter().map(|prompt| {
        let mut out = used(&prompt.used);
        out["name"] = json!(prompt.name);
        out["arguments"] = arguments(&prompt.arguments);
        out
    });
    let unlisted = server.unlisted.iter().map(|(kind, unlisted)| {
        let mut out = item(unlisted);
        out["kind"] = json!(kind);
        out
    });
    json!({
        "server": server.server,
        "listed": server.is_listed,
        "schemaTokens": server.is_listed.then(|| server.schema_tokens()),
        "tools": tools.collect::<Vec<_>>(),
        "resources": server.resources.iter().map(item).collect::<Vec<_>>(),
        "resourceTemplates": server.templates.iter().map(item).collect::<Vec<_>>(),
        "prompts": prompts.collect::<Vec<_>>(),
        "unlisted": unlisted.collect::<Vec<_>>(),
    })
}

fn used(used: &CallUse) -> Value {
    json!({
        "calls": used.calls,
        "errors": used.errors,
        "unanswered": used.unanswered,
        "cases": used.cases,
        "totalMs": millis(used.time),
        "meanMs": used.mean().map(millis),
    })
}

fn arguments(all: &[ArgumentCoverage]) -> Value {
    let one = |argument: &ArgumentCoverage| {
        let values = argument.values.iter();
        let values = values.map(|value| json!({ "value": value.value, "given": value.given }));
        json!({
            "name": argument.name,
            "required": argument.is_required,
            "given": argument.given,
            "values": values.collect::<Vec<_>>(),
            "arguments": arguments(&argument.arguments),
        })
    };
    all.iter().map(one).collect()
}

/// Converts to milliseconds, rounded to microseconds.
pub(crate) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1000.0
}
