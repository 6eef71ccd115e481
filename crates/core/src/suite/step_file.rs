//! The file format of a step.
//!
//! Its main type is [`StepFile`]: a map with one key, its type, and an optional `id`.

use std::time::Duration;

use proctor_record::hint::nearest;
use proctor_record::problem::{Code, Problem, WithSpan};
use serde_json::{Value, json};

use crate::decode::{
    Context, Decode, Definitions, LooseText, NonEmpty, OptionalNonEmpty, Table, record, words,
};
use crate::document::{Node, NodeValue};

/// The step types that need no alias.
const PLAIN_TYPES: [&str; 3] = ["script", "http", "llmJudge"];

/// A step of a task file.
#[derive(Debug, Clone)]
pub struct StepFile {
    /// The name that other steps use for it.
    pub id: Option<WithSpan<String>>,
    /// Its type, as written: `script`, `k8s.create`.
    pub kind: WithSpan<String>,
    pub body: StepBody,
}

/// The value of a step, by its type.
#[derive(Debug, Clone)]
pub enum StepBody {
    /// Runs a script.
    Script(ScriptStepFile),
    /// Makes an HTTP request.
    Http(Box<HttpFile>),
    /// Asks the judge.
    Judge(JudgeStepFile),
    /// Calls the server or extension that the alias names. The value depends on which of the two it is.
    Aliased {
        /// The part of the type before the first dot.
        alias: String,
        /// The part of the type after the first dot.
        operation: String,
        value: Node,
    },
}

impl Decode for StepFile {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let NodeValue::Mapping(entries) = &node.data else {
            cx.wrong_type(node, "a step, such as `script: {inline: …}`");
            return None;
        };
        let id = match node.get("id") {
            Some(id) => Option::<WithSpan<String>>::decode(id, cx)?,
            None => None,
        };
        let mut types = entries.iter().filter(|e| e.key != "id");
        let Some(entry) = types.next() else {
            let problem = Problem::error(Code::Missing, "the step has no type");
            cx.report(node.span, problem.hint(type_hint()));
            return None;
        };
        if let Some(second) = types.next() {
            let message = format!(
                "a step has exactly one type; found `{}` and `{}`",
                entry.key, second.key
            );
            let problem = Problem::error(Code::Conflict, message);
            cx.report(
                second.key_span,
                problem.hint(format!(
                    "start each step with its own `-`, and indent what belongs to `{}` below it",
                    entry.key
                )),
            );
            return None;
        }
        let kind = WithSpan {
            value: entry.key.clone(),
            span: entry.key_span,
        };
        let body = match entry.key.as_str() {
            "script" => StepBody::Script(ScriptStepFile::decode(&entry.value, cx)?),
            "http" => StepBody::Http(Box::new(HttpFile::decode(&entry.value, cx)?)),
            "llmJudge" => StepBody::Judge(JudgeStepFile::decode(&entry.value, cx)?),
            dotted => match dotted.split_once('.') {
                Some((alias, operation)) if !alias.is_empty() && !operation.is_empty() => {
                    StepBody::Aliased {
                        alias: alias.to_owned(),
                        operation: operation.to_owned(),
                        value: entry.value.clone(),
                    }
                }
                _ => {
                    let hint = match nearest(dotted, PLAIN_TYPES) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => type_hint(),
                    };
                    let message = format!("unknown step type `{dotted}`");
                    cx.report(kind.span, Problem::error(Code::Value, message).hint(hint));
                    return None;
                }
            },
        };
        Some(Self { id, kind, body })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let schema = json!({
            "description": "A step: one key that names its type, and an optional `id`.",
            "type": "object",
            "properties": {
                "id": Option::<String>::schema(definitions),
                "script": ScriptStepFile::schema(definitions),
                "http": HttpFile::schema(definitions),
                "llmJudge": JudgeStepFile::schema(definitions),
            },
            "patternProperties": {r"^[^.]+\..+$": true},
            "additionalProperties": false,
            "oneOf": [
                {"required": ["id"], "minProperties": 2, "maxProperties": 2},
                {"not": {"required": ["id"]}, "minProperties": 1, "maxProperties": 1},
            ],
        });
        definitions.insert("StepFile".to_owned(), schema);
        json!({"$ref": "#/$defs/StepFile"})
    }
}

fn type_hint() -> String {
    "a step's type is `script`, `http`, `llmJudge`, `SERVER.TOOL` or `EXTENSION.OPERATION`"
        .to_owned()
}

record! {
    /// Runs a script. The step passes if the script exits with 0.
    pub struct ScriptStepFile one_of ["inline", "file"] {
        /// The text of the script. A `#!` line selects its interpreter.
        "inline" => inline: Option<WithSpan<LooseText>>,
        /// The path of the script. It runs in its own folder.
        "file" => file: Option<WithSpan<String>>,
        /// Environment variables of the script. Proctor expands templates here, but not in the script.
        "env" => env: Table<WithSpan<LooseText>>,
        /// The timeout of the script, 5m by default.
        "timeout" => timeout: Option<Duration>,
        /// Whether the trial continues if the script fails.
        "continueOnError" => continue_on_error: Option<WithSpan<bool>>,
    }
}

record! {
    /// Sends an HTTP request and checks the response.
    pub struct HttpFile {
        /// The URL of the request.
        "url" => url: WithSpan<String>,
        /// The HTTP method, `GET` by default.
        "method" => method: Option<WithSpan<String>>,
        /// The headers to send.
        "headers" => headers: Table<WithSpan<LooseText>>,
        /// The body to send.
        "body" => body: Option<HttpBodyFile>,
        /// The timeout of the request.
        "timeout" => timeout: Option<Duration>,
        /// The expected response.
        "expect" => expect: OptionalNonEmpty<HttpExpectFile>,
    }
}

record! {
    /// The body to send.
    pub struct HttpBodyFile one_of ["raw", "json"] {
        /// A string, sent unchanged.
        "raw" => raw: Option<WithSpan<LooseText>>,
        /// A value, sent as JSON.
        "json" => json: Option<Node>,
    }
}

record! {
    /// The expected response.
    pub struct HttpExpectFile any_of ["status", "body"] {
        /// The expected status code.
        "status" => status: OptionalNonEmpty<WithSpan<u64>>,
        /// The expected body.
        "body" => body: OptionalNonEmpty<ContentFile>,
    }
}

record! {
    /// The expected content of a response body or a tool result.
    pub struct ContentFile any_of ["match", "fields"] {
        /// A regular expression that must match.
        "match" => pattern: OptionalNonEmpty<WithSpan<String>>,
        /// The expected fields if the content is parsed as JSON.
        "fields" => fields: OptionalNonEmpty<NonEmpty<FieldFile>>,
    }
}

record! {
    /// The expected value of a field.
    pub struct FieldFile {
        /// The path of the field: `a.b[0].c` or `a.b.0.c`.
        "path" => path: WithSpan<String>,
        /// The value that the field must equal.
        "equals" => equals: OptionalNonEmpty<Node>,
        /// The JSON type that the field must have.
        "type" => kind: OptionalNonEmpty<JsonType>,
        /// A regular expression that must match.
        "match" => pattern: OptionalNonEmpty<WithSpan<String>>,
        /// Whether the field must be present or absent.
        "exists" => exists: OptionalNonEmpty<bool>,
    }
}

words! {
    /// A type of JSON value.
    pub enum JsonType {
        "string" => String,
        "number" => Number,
        "integer" => Integer,
        "boolean" => Boolean,
        "bool" => Bool,
        "object" => Object,
        "array" => Array,
        "null" => Null,
    }
}

record! {
    /// Asks the judge about the agent's answer.
    pub struct JudgeStepFile one_of ["contains", "exact"] {
        /// The answer must contain every fact of this text. It may contain more.
        "contains" => contains: Option<WithSpan<LooseText>>,
        /// The answer must contain exactly the facts of this text.
        "exact" => exact: Option<WithSpan<LooseText>>,
        /// The reason for this check. Proctor stores it unchanged.
        "reason" => reason: Option<LooseText>,
    }
}

record! {
    /// Calls a tool of a server.
    pub struct ServerToolFile {
        /// The arguments of the tool call.
        "args" => args: Option<WithSpan<Node>>,
        /// The expected result.
        "expect" => expect: OptionalNonEmpty<ToolExpectFile>,
    }
}

record! {
    /// The expected result of a tool call.
    pub struct ToolExpectFile any_of ["isError", "content"] {
        /// Whether the tool must report an error.
        "isError" => is_error: OptionalNonEmpty<bool>,
        /// The expected text of the result.
        "content" => content: OptionalNonEmpty<ContentFile>,
    }
}
