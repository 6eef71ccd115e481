//! Rules on the schemas of tools and on their arguments.

use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind;
use proctor_record::excerpt::excerpt;
use regex::Regex;
use serde_json::{Map, Value};

use super::{Findings, LintRule, LintedTool, texts};

/// Keywords that providers refuse at the top of a schema.
const NOT_AT_TOP: [&str; 5] = ["anyOf", "oneOf", "allOf", "enum", "not"];

/// Keywords of which one gives an argument a type.
const TYPED_BY: [&str; 9] = [
    "type",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "$ref",
    "properties",
    "items",
];

/// The maximum depth of schemas that are searched.
const DEPTH: usize = 24;

pub(super) fn tool(tool: &LintedTool<'_>, found: &mut Findings) {
    for (key, name) in [
        ("inputSchema", "input schema"),
        ("outputSchema", "output schema"),
    ] {
        let place = format!("{}/{key}", tool.place());
        match tool.value.get(key) {
            None if key == "inputSchema" => {
                let message = "the tool has no input schema";
                found.add(LintRule::InvalidSchema, tool.server, &place, message);
            }
            None => {}
            Some(schema) => compiled(tool, schema, name, &place, found),
        }
    }
    let Some(Value::Object(schema)) = tool.value.get("inputSchema") else {
        return;
    };
    refused(tool, schema, found);
    arguments(tool, schema, found);
}

fn compiled(tool: &LintedTool<'_>, schema: &Value, name: &str, place: &str, found: &mut Findings) {
    if !schema.is_object() {
        let message = format!("the {name} is not a map");
        found.add(LintRule::InvalidSchema, tool.server, place, message);
        return;
    }
    let Err(error) = jsonschema::options().offline().build(schema) else {
        return;
    };
    let text = error.to_string();
    let (rule, message) = match error.kind() {
        ValidationErrorKind::Referencing(_) => (
            LintRule::UnresolvableRef,
            format!(
                "the {name} has a `$ref` that can't be resolved: {}",
                excerpt(&text)
            ),
        ),
        _ => (
            LintRule::InvalidSchema,
            format!("the {name} is not valid JSON Schema: {}", excerpt(&text)),
        ),
    };
    found.add(rule, tool.server, place, message);
}

fn refused(tool: &LintedTool<'_>, schema: &Map<String, Value>, found: &mut Findings) {
    let place = format!("{}/inputSchema", tool.place());
    let mut add = |place: &str, message: String| {
        found.add(LintRule::RefusedSchema, tool.server, place, message);
    };
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        add(&place, "the type at the top is not `object`".to_owned());
    }
    for key in NOT_AT_TOP.iter().filter(|key| schema.contains_key(**key)) {
        add(&place, format!("`{key}` at the top"));
    }
    let mut walk = Vec::new();
    parts(schema, &mut Vec::new(), DEPTH, &mut walk);
    for (path, part) in &walk {
        let place = format!("{}/arguments/{}", tool.place(), path.join("/"));
        let is_list = part.get("type").and_then(Value::as_str) == Some("array");
        if is_list && !part.contains_key("items") && !part.contains_key("prefixItems") {
            add(&place, "an array without `items`".to_owned());
        }
        let properties = part.get("properties").and_then(Value::as_object);
        for name in properties.into_iter().flat_map(Map::keys) {
            let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
            if name.is_empty() || name.len() > 64 || !name.chars().all(is_legal) {
                add(&place, format!("the argument name `{name}`"));
            }
        }
    }
    for (path, part) in walk {
        let place = format!("{}/arguments/{}", tool.place(), path.join("/"));
        listed_values(tool, &place, part, found);
    }
}

/// All schemas inside a schema, each with the path of its argument.
fn parts<'a>(
    schema: &'a Map<String, Value>,
    path: &mut Vec<String>,
    depth: usize,
    found: &mut Vec<(Vec<String>, &'a Map<String, Value>)>,
) {
    if depth == 0 {
        return;
    }
    found.push((path.clone(), schema));
    for key in ["properties", "$defs", "definitions"] {
        for (name, part) in schema
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if let Value::Object(part) = part {
                path.push(name.clone());
                parts(part, path, depth - 1, found);
                path.pop();
            }
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(Value::Object(part)) = schema.get(key) {
            path.push("[]".to_owned());
            parts(part, path, depth - 1, found);
            path.pop();
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for part in schema
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if let Value::Object(part) = part {
                parts(part, path, depth - 1, found);
            }
        }
    }
}

/// The rules on the arguments that a tool names itself.
fn arguments(tool: &LintedTool<'_>, schema: &Map<String, Value>, found: &mut Findings) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, argument) in properties.into_iter().flatten() {
        let Value::Object(argument) = argument else {
            continue;
        };
        let place = format!("{}/arguments/{name}", tool.place());
        if !TYPED_BY.iter().any(|key| argument.contains_key(*key)) {
            let message = "the argument has no type";
            found.add(LintRule::UntypedArgument, tool.server, &place, message);
        }
        let described = argument.get("description").and_then(Value::as_str);
        let described = described.unwrap_or_default().trim();
        let is_mentioned = texts::mentions(tool.description(), name);
        if described.is_empty() && !is_described_inside(argument, DEPTH) && !is_mentioned {
            let message = "the argument has no description";
            found.add(LintRule::UndescribedArgument, tool.server, &place, message);
        }
    }
}

/// An argument, or a part of it, whose description lists its values.
fn listed_values(
    tool: &LintedTool<'_>,
    place: &str,
    part: &Map<String, Value>,
    found: &mut Findings,
) {
    let described = part.get("description").and_then(Value::as_str);
    if part.get("type").and_then(Value::as_str) == Some("string")
        && !part.contains_key("enum")
        && let Some(values) = described.and_then(values_in_prose)
    {
        let message = format!("the description lists the values ({values}); use `enum`");
        found.add(LintRule::EnumInProse, tool.server, place, message);
    }
}

/// Whether a part of an argument has a description, or a definition that may have one.
fn is_described_inside(argument: &Map<String, Value>, depth: usize) -> bool {
    let below = |part: &Value| match part {
        Value::Object(part) => depth > 0 && is_described_inside(part, depth - 1),
        Value::Array(list) => list.iter().any(|part| {
            let part = part.as_object();
            depth > 0 && part.is_some_and(|part| is_described_inside(part, depth - 1))
        }),
        _ => false,
    };
    argument.contains_key("$ref")
        || argument.get("description").is_some_and(Value::is_string)
        || argument.values().any(below)
}

static QUOTED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"\(\s*(['"`]\w+['"`])\s*\)"#).ok());

static LISTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let word = r#"(?:"[\w .-]+"|'[\w .-]+'|`[\w .-]+`)"#;
    let join = r"(?:\s*(?:,\s*(?:or\s+|and\s+)?|\s+or\s+|\s+and\s+|\|)\s*)";
    let lead = r"(?:one of|either|must be|valid (?:values|options)|possible values|allowed values|options|values|accepts|supported)(?:\s+(?:are|include))?\s*(?:one of)?\s*[:(]?\s*\[?";
    Regex::new(&format!("(?i){lead}({word}(?:{join}{word})+)")).ok()
});

/// The values that a description lists after words such as `one of`, or explains one by one: `local branches ('local')`.
fn values_in_prose(description: &str) -> Option<String> {
    let quoted = QUOTED.as_ref()?.captures_iter(description);
    let quoted: Vec<String> = quoted.map(|quoted| quoted[1].to_owned()).collect();
    if quoted.len() > 1 {
        return Some(quoted.join(", "));
    }
    let found = LISTED.as_ref()?.captures(description)?;
    let whole = found.get(0)?;
    let end = description[whole.end()..].trim_start();
    // In brackets, `either` explains another word of the sentence.
    if description[..whole.start()].ends_with('(') && whole.as_str().starts_with("either") {
        return None;
    }
    // An open list has other values too.
    let is_open = ["etc", ", etc", "..", "…", ", …"]
        .iter()
        .any(|more| end.starts_with(more));
    (!is_open).then(|| found[1].to_owned())
}
