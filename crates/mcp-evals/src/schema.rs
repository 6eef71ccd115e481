//! The JSON Schema (draft 2020-12) of evals, for editors and for other languages.
//!
//! It accepts lists in which [`validate`](crate::validate) finds no error, with one exception: a schema can't
//! require unique ids. Evals of unknown types are accepted; unknown keys
//! are accepted outside of `expected`.

use serde_json::{Value, json};

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of an eval file, and of the result of `evals/list`.
pub fn schema() -> Value {
    json!({
        "$schema": DRAFT,
        "title": "MCP evals",
        "description": "A list of evals, or an object that holds one: an eval file, or the result of evals/list.",
        "type": ["object", "array"],
        "items": {"$ref": "#/$defs/eval"},
        "required": ["evals"],
        "properties": {
            "evals": {"type": "array", "items": {"$ref": "#/$defs/eval"}},
            "nextCursor": {"type": "string"},
        },
        "$defs": definitions(),
    })
}

/// The schema of one eval.
pub fn eval_schema() -> Value {
    json!({
        "$schema": DRAFT,
        "title": "MCP eval",
        "$ref": "#/$defs/eval",
        "$defs": definitions(),
    })
}

fn definitions() -> Value {
    json!({
        "eval": eval(),
        "unknownEval": unknown_eval(),
        "knownEval": known_eval(),
        "invocation": {
            "description": "A model gets the messages and the server's tools, and must call the right one.",
            "required": ["messages"],
            "properties": {"messages": {"$ref": "#/$defs/messages"}},
        },
        "execution": {
            "description": "The client calls the tool with exactly these arguments.",
            "required": ["toolName", "arguments"],
            "properties": {"toolName": {"type": "string"}, "arguments": {"type": "object"}},
        },
        "scenario": {
            "description": "A full agent loop starts with the messages.",
            "required": ["messages"],
            "properties": {
                "messages": {"$ref": "#/$defs/messages"},
                "maxTurns": {"type": "integer", "minimum": 1},
            },
        },
        "exactMatch": {
            "additionalProperties": false,
            "properties": {
                "type": true,
                "_meta": true,
                "toolName": {"type": "string", "description": "Invocation: the tool that must be called."},
                "arguments": {"type": "object", "description": "Invocation: arguments the call must have."},
                "content": {"description": "Execution: the expected content of the result."},
            },
        },
        "llmJudge": {
            "required": ["rubric"],
            "additionalProperties": false,
            "properties": {"type": true, "_meta": true, "rubric": {
                "type": "string",
                "pattern": "\\S",
                "description": "The criterion for the judge, in plain words.",
            }},
        },
        "messages": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/message"}},
        "message": message(),
        "content": content(),
    })
}

fn eval() -> Value {
    json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "string", "description": "A stable name, unique in the list."},
        },
        "if": {"$ref": "#/$defs/unknownEval"},
        "else": {"$ref": "#/$defs/knownEval"},
    })
}

/// An eval with an unknown input or grading type.
fn unknown_eval() -> Value {
    let unknown = |names: &[&str]| json!({"type": "string", "not": {"enum": names}});
    json!({
        "anyOf": [
            {
                "required": ["gradingType"],
                "properties": {"gradingType": unknown(&["exact-match", "llm-as-judge"])},
            },
            {
                "required": ["input"],
                "properties": {"input": {
                    "type": "object",
                    "required": ["type"],
                    "properties": {"type": unknown(&["invocation", "execution", "scenario"])},
                }},
            },
        ],
    })
}

fn known_eval() -> Value {
    json!({
        "required": ["name", "gradingType", "input", "expected"],
        "properties": {
            "name": {"type": "string", "description": "A label for people."},
            "description": {"type": "string", "description": "The behaviour that the eval verifies."},
            "gradingType": {"enum": ["exact-match", "llm-as-judge"]},
            "grading": {"type": ["object", "null"], "maxProperties": 0},
            "input": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"enum": ["invocation", "execution", "scenario"]}},
                "allOf": [
                    when("type", "invocation", "invocation"),
                    when("type", "execution", "execution"),
                    when("type", "scenario", "scenario"),
                ],
            },
            "expected": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"enum": ["exact-match", "llm-as-judge"]}},
                "allOf": [
                    when("type", "exact-match", "exactMatch"),
                    when("type", "llm-as-judge", "llmJudge"),
                ],
            },
        },
        "allOf": [
            {"if": graded("exact-match"), "then": expects("exact-match")},
            {"if": graded("llm-as-judge"), "then": expects("llm-as-judge")},
            {
                "description": "An exact match must be able to fail. It can't grade a scenario.",
                "if": expects("exact-match"),
                "then": {"properties": {"input": {"properties": {"type": {"not": {"const": "scenario"}}}}}},
            },
            exact_match_of("invocation", &json!({"anyOf": [
                {"required": ["toolName"]},
                {"required": ["arguments"]},
            ]})),
            exact_match_of("execution", &json!({"required": ["content"]})),
        ],
    })
}

fn when(key: &str, value: &str, definition: &str) -> Value {
    json!({
        "if": {"required": [key], "properties": {key: {"const": value}}},
        "then": {"$ref": format!("#/$defs/{definition}")},
    })
}

fn graded(grading: &str) -> Value {
    json!({"required": ["gradingType"], "properties": {"gradingType": {"const": grading}}})
}

fn expects(kind: &str) -> Value {
    json!({"properties": {"expected": {"properties": {"type": {"const": kind}}}}})
}

fn exact_match_of(level: &str, expected: &Value) -> Value {
    json!({
        "if": {"properties": {
            "input": {"properties": {"type": {"const": level}}},
            "expected": {"properties": {"type": {"const": "exact-match"}}},
        }},
        "then": {"properties": {"expected": expected}},
    })
}

fn message() -> Value {
    json!({
        "type": "object",
        "required": ["role", "content"],
        "properties": {
            "role": {"enum": ["user", "assistant"]},
            "content": {
                "if": {"type": "array"},
                "then": {"items": {"$ref": "#/$defs/content"}},
                "else": {"$ref": "#/$defs/content"},
            },
        },
    })
}

fn content() -> Value {
    let fields = |kind: &str, required: &[&str], properties: Value| {
        json!({
            "if": {"required": ["type"], "properties": {"type": {"const": kind}}},
            "then": {"required": required, "properties": properties},
        })
    };
    let media = json!({"data": {"type": "string"}, "mimeType": {"type": "string"}});
    json!({
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string"}},
        "allOf": [
            fields("text", &["text"], json!({"text": {"type": "string"}})),
            fields("image", &["data", "mimeType"], media.clone()),
            fields("audio", &["data", "mimeType"], media),
            fields("tool_use", &["id", "name", "input"], json!({
                "id": {"type": "string"}, "name": {"type": "string"}, "input": {"type": "object"},
            })),
            fields("tool_result", &["toolUseId", "content"], json!({
                "toolUseId": {"type": "string"},
                "content": {"type": "array"},
                "isError": {"type": "boolean"},
            })),
        ],
    })
}
