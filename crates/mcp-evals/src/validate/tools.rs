//! Compares evals with a server's tools.
//!
//! Annotations are hints of the server: a tool without annotations may do anything.

use std::collections::HashMap;

use serde_json::Value;

use crate::eval::Eval;
use crate::expected::Expected;
use crate::input::Input;

use super::{EvalFindings, FindingRule};

pub(super) fn by_name(tools: &[Value]) -> HashMap<&str, &Value> {
    tools
        .iter()
        .filter_map(|tool| Some((tool.get("name")?.as_str()?, tool)))
        .collect()
}

pub(super) fn check(eval: &Eval, tools: &HashMap<&str, &Value>, about: &mut EvalFindings<'_>) {
    match (&eval.input, &eval.expected) {
        (Input::Execution(input), _) => {
            let path = "/input/toolName";
            let name = input.tool_name.as_str();
            match tools.get(name) {
                None => missing(path, name, about),
                Some(tool) => check_annotations(path, name, tool, about),
            }
        }
        (Input::Invocation(_), Expected::ExactMatch(expected)) => {
            if let Some(name) = &expected.tool_name
                && !tools.contains_key(name.as_str())
            {
                missing("/expected/toolName", name, about);
            }
        }
        _ => {}
    }
}

fn missing(path: &str, name: &str, about: &mut EvalFindings<'_>) {
    let text = format!("the server has no tool `{name}`");
    about.warn(path, FindingRule::UnknownTool, text);
}

fn check_annotations(path: &str, name: &str, tool: &Value, about: &mut EvalFindings<'_>) {
    let hint = |key: &str| tool.get("annotations")?.get(key)?.as_bool();
    match (hint("readOnlyHint"), hint("destructiveHint")) {
        (Some(true), _) | (_, Some(false)) => {}
        (_, Some(true)) => {
            let text =
                format!("`{name}` is marked destructive: describe its effect in `description`");
            about.warn(path, FindingRule::DestructiveTool, text);
        }
        (_, None) => {
            let text = format!("`{name}` is not marked as safe, so it may be destructive");
            about.warn(path, FindingRule::UnannotatedTool, text);
        }
    }
}
