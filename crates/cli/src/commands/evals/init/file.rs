//! Renders the evals file, with comments for its author.

use std::collections::BTreeSet;

use proctor_core::document::yaml::push_block;
use proctor_core::printable::printable;
use serde_json::{Value, json};

use super::EvalDraft;
use proctor_run::engine::offers::ServerOffer;

/// The maximum length of a quoted description, in characters.
const DESCRIPTION: usize = 200;

const HEADING: &str = "\
# Evals that this server ships with its tools. `proctor evals validate` checks the file.
# Don't put secrets here: every client of the server can read this file.
evals:";

const SCENARIO: &str = "\
TODO: write a task for an agent that needs several calls, and the rubric that a judge compares its whole conversation with.";

/// The names of the tools, each once.
pub(super) fn names(offer: &ServerOffer) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let names = offer
        .tools
        .iter()
        .filter_map(|tool| tool.get("name")?.as_str());
    names.filter(|name| seen.insert(*name)).collect()
}

pub(super) fn execution_id(tool: &str) -> String {
    format!("{tool}-answers")
}

/// Renders an execution eval for each call, an invocation eval for each tool, and a scenario eval.
pub(super) fn render(offer: &ServerOffer, kept: &[(EvalDraft, Value)]) -> String {
    let mut out = HEADING.to_owned();
    for (EvalDraft { tool, arguments }, content) in kept {
        let comment =
            format!("`{tool}` must return the result that it returned when this file was written.");
        let eval = json!({
            "id": execution_id(tool),
            "name": format!("{tool} returns the recorded result"),
            "gradingType": "exact-match",
            "input": {"type": "execution", "toolName": tool, "arguments": arguments},
            "expected": {"type": "exact-match", "content": content},
        });
        push(&comment, eval, &mut out);
    }
    for tool in names(offer) {
        let comment = format!(
            "TODO: write a user message that needs `{tool}`, and add the expected arguments.{}",
            description(offer, tool)
        );
        let prompt = format!("TODO: ask for something that needs `{tool}`");
        let eval = json!({
            "id": format!("picks-{tool}"),
            "name": format!("A model picks {tool}"),
            "gradingType": "exact-match",
            "input": {"type": "invocation", "messages": [
                {"role": "user", "content": {"type": "text", "text": prompt}},
            ]},
            "expected": {"type": "exact-match", "toolName": tool},
        });
        push(&comment, eval, &mut out);
    }
    push(SCENARIO, scenario(), &mut out);
    out.push('\n');
    out
}

/// An eval of a whole conversation, for the author to complete.
fn scenario() -> Value {
    json!({
        "id": "completes-a-task",
        "name": "An agent completes a task",
        "gradingType": "llm-as-judge",
        "input": {"type": "scenario", "maxTurns": 10, "messages": [
            {"role": "user", "content": {"type": "text", "text": "TODO: ask for something that needs several calls"}},
        ]},
        "expected": {"type": "llm-as-judge", "rubric": "TODO: what the agent must have done, and what it must tell the user"},
    })
}

fn description(offer: &ServerOffer, tool: &str) -> String {
    let text = offer.tool(tool).and_then(|tool| tool.get("description"));
    let Some(text) = text.and_then(Value::as_str) else {
        return String::new();
    };
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(DESCRIPTION) {
        Some((end, _)) => format!(" Its description: {}…", &words[..end]),
        None => format!(" Its description: {words}"),
    }
}

/// Appends an eval with a comment. The comment is escaped, so server text can't end its line.
fn push(comment: &str, eval: Value, out: &mut String) {
    out.push_str(&format!("\n\n  # {}", printable(comment)));
    push_block(out, &Value::Array(vec![eval]), 2);
}

#[cfg(test)]
mod tests {
    use mcp_evals::validate_with_tools;
    use proctor_core::evals::file::EvalsFile;
    use proctor_record::problem::{Problems, SourceText};

    use super::super::super::samples::offer;
    use super::*;

    #[test]
    fn e38_the_file_is_valid_whatever_a_server_answers() {
        let evil = "a\nevals: []\u{1b}[31m\u{202e} # \"x\"";
        let tools = [
            json!({"name": "sum", "description": "Adds\n two numbers."}),
            json!({"name": evil, "description": evil}),
            json!({"name": evil}),
        ];
        let offer = offer(&tools, &[]);
        let content = json!([{"type": "text", "text": evil, "_meta": {evil: [1e300, null]}}]);
        let arguments = json!({evil: [evil, {}], "yes": true});
        let trial = EvalDraft {
            tool: evil.to_owned(),
            arguments: arguments.as_object().unwrap().clone(),
        };
        let text = render(&offer, &[(trial, content.clone())]);
        let mut problems = Problems::default();
        let file = EvalsFile::parse(SourceText::new("x", text.clone()), &mut problems);
        let evals = file.unwrap_or_else(|| panic!("{problems:?}\n{text}")).evals;
        let report = validate_with_tools(&evals, &tools);
        assert!(report.is_valid(), "{report}");
        assert_eq!(evals.len(), 4);
        let first = evals[0].to_value();
        assert!(proctor_record::json::equal(
            &first["expected"]["content"],
            &content
        ));
        assert!(proctor_record::json::equal(
            &first["input"]["arguments"],
            &arguments
        ));
        assert!(
            text.contains("Its description: Adds two numbers.\n"),
            "{text}"
        );
    }
}
