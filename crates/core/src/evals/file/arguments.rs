//! Checks the arguments in an eval file against the schemas of a server's tools.

use std::collections::HashMap;

use mcp_evals::{Expected, Input};
use proctor_record::excerpt::excerpt;
use proctor_record::hint::nearest_hint;
use proctor_record::problem::{Code, Problem, Problems, Severity};
use serde_json::{Map, Value};

use super::EvalsFile;

/// The maximum number of reported mistakes per eval.
const TOLD: usize = 10;

/// The arguments in an eval, and their path.
struct EvalArguments<'a> {
    tool: &'a str,
    arguments: &'a Map<String, Value>,
    path: &'static str,
    /// Whether these are all arguments of a call, or only those to compare.
    is_whole: bool,
}

impl EvalsFile {
    /// Adds arguments that the schemas of tools do not allow. An execution may send such arguments on purpose, so
    /// that is a warning; an invocation that expects them is an error.
    pub fn check_arguments(&self, tools: &[Value], problems: &mut Problems) {
        let schemas: HashMap<&str, &Value> = tools
            .iter()
            .filter_map(|tool| Some((tool.get("name")?.as_str()?, tool.get("inputSchema")?)))
            .collect();
        for (index, item) in self.evals.iter().enumerate() {
            let Some(eval) = item.eval() else { continue };
            let Some(named) = named_arguments(&eval.input, &eval.expected) else {
                continue;
            };
            let Some(schema) = schemas.get(named.tool) else {
                continue;
            };
            for (path, message, hint) in misfits(schema, &named) {
                let message = format!("eval `{}`, `{path}`: {message}", eval.id);
                let mut problem = Problem::warning(Code::Value, message).maybe_hint(hint);
                if !named.is_whole {
                    problem.severity = Severity::Error;
                }
                let span = self.span_of(index, &path);
                problems.push(problem.at(&self.source, span));
            }
        }
    }
}

fn named_arguments<'a>(input: &'a Input, expected: &'a Expected) -> Option<EvalArguments<'a>> {
    match (input, expected) {
        (Input::Execution(input), _) => Some(EvalArguments {
            tool: &input.tool_name,
            arguments: &input.arguments,
            path: "/input/arguments",
            is_whole: true,
        }),
        (Input::Invocation(_), Expected::ExactMatch(expected)) => Some(EvalArguments {
            tool: expected.tool_name.as_deref()?,
            arguments: expected.arguments.as_ref()?,
            path: "/expected/arguments",
            is_whole: false,
        }),
        _ => None,
    }
}

/// The path, message and hint for each argument that does not match a schema.
fn misfits(schema: &Value, named: &EvalArguments<'_>) -> Vec<(String, String, Option<String>)> {
    let mut schema = schema.clone();
    if let (false, Some(keywords)) = (named.is_whole, schema.as_object_mut()) {
        // What is not named is not looked at, so nothing is missing.
        keywords.retain(|key, _| {
            ![
                "required",
                "minProperties",
                "allOf",
                "anyOf",
                "oneOf",
                "if",
                "dependentRequired",
            ]
            .contains(&key.as_str())
        });
    }
    let mut found = Vec::new();
    let known = schema.get("properties").and_then(Value::as_object);
    let is_open = ["additionalProperties", "patternProperties"]
        .iter()
        .any(|key| schema.get(*key).is_some());
    if let (Some(known), false) = (known, is_open) {
        let unknown = named
            .arguments
            .keys()
            .filter(|key| !known.contains_key(*key));
        found.extend(unknown.map(|key| {
            let hint = nearest_hint(key, known.keys().map(String::as_str));
            let message = format!("`{}` has no argument `{key}`", named.tool);
            (format!("{}/{key}", named.path), message, hint)
        }));
    }
    // A schema that can't be used says nothing about arguments.
    let Ok(validator) = jsonschema::options().offline().build(&schema) else {
        return found;
    };
    let arguments = Value::Object(named.arguments.clone());
    found.extend(validator.iter_errors(&arguments).map(|error| {
        let path = format!("{}{}", named.path, error.instance_path());
        let message = format!("does not match the schema of `{}`: {error}", named.tool);
        (path, excerpt(&message).into_owned(), None)
    }));
    found.truncate(TOLD);
    found
}
