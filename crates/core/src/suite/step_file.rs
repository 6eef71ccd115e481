//! The written form of a step.
//!
//! Its main type is [`StepFile`]: a map with one key, its type, and an optional `id`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::decode::{
    Context, Decode, Definitions, LooseText, NonEmpty, OptionalNonEmpty, Table, record, words,
};
use crate::document::{Node, NodeValue};
use crate::hint::nearest;
use crate::problem::{Code, Problem, WithSpan};

/// The types of step that need no alias.
const PLAIN_TYPES: [&str; 3] = ["script", "http", "llmJudge"];

/// A step as it is written.
#[derive(Debug, Clone)]
pub struct StepFile {
    /// The name that other steps use for it.
    pub id: Option<WithSpan<String>>,
    /// Its type, as written: `script`, `k8s.create`.
    pub kind: WithSpan<String>,
    /// What it does.
    pub body: StepBody,
}

/// What a step does, as it is written.
#[derive(Debug, Clone)]
pub enum StepBody {
    /// Runs a script.
    Script(ScriptStepFile),
    /// Makes an HTTP request.
    Http(Box<HttpFile>),
    /// Asks the judge.
    Judge(JudgeStepFile),
    /// Asks whatever the alias stands for; what its value means depends on that.
    Aliased {
        /// What stands before the first dot of the type.
        alias: String,
        /// What stands behind it.
        operation: String,
        /// The step's value.
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
                "a step has one type, and this has two: `{}` and `{}`",
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
                    let message = format!("`{dotted}` is not a type of step");
                    cx.report(kind.span, Problem::error(Code::Value, message).hint(hint));
                    return None;
                }
            },
        };
        Some(Self { id, kind, body })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let schema = json!({
            "description": "A step: one key, its type, and an optional `id`.",
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
    /// Runs a script; it passes if it exits with 0.
    pub struct ScriptStepFile one_of ["inline", "file"] {
        /// The script. A `#!` line is honoured.
        "inline" => inline: Option<WithSpan<LooseText>>,
        /// The file that holds it; it runs in that file's folder.
        "file" => file: Option<WithSpan<String>>,
        /// Its environment. Templates are expanded here, and only here.
        "env" => env: Table<WithSpan<LooseText>>,
        /// How long it may take, 5m if not given.
        "timeout" => timeout: Option<Duration>,
        /// Whether the trial goes on when it fails.
        "continueOnError" => continue_on_error: Option<WithSpan<bool>>,
    }
}

record! {
    /// Makes an HTTP request and looks at the response.
    pub struct HttpFile {
        /// Where to.
        "url" => url: WithSpan<String>,
        /// `GET` if not given.
        "method" => method: Option<WithSpan<String>>,
        /// Headers to send.
        "headers" => headers: Table<WithSpan<LooseText>>,
        /// What to send.
        "body" => body: Option<HttpBodyFile>,
        /// How long it may take.
        "timeout" => timeout: Option<Duration>,
        /// What the response must be.
        "expect" => expect: OptionalNonEmpty<HttpExpectFile>,
    }
}

record! {
    /// What to send.
    pub struct HttpBodyFile one_of ["raw", "json"] {
        /// A text, as it is.
        "raw" => raw: Option<WithSpan<LooseText>>,
        /// A value, as JSON.
        "json" => json: Option<Node>,
    }
}

record! {
    /// What the response must be.
    pub struct HttpExpectFile any_of ["status", "body"] {
        /// The status code.
        "status" => status: OptionalNonEmpty<WithSpan<u64>>,
        /// The body.
        "body" => body: OptionalNonEmpty<ContentFile>,
    }
}

record! {
    /// What a body or a tool's text must be.
    pub struct ContentFile any_of ["match", "fields"] {
        /// A regular expression that it matches.
        "match" => pattern: OptionalNonEmpty<WithSpan<String>>,
        /// Fields of it, read as JSON.
        "fields" => fields: OptionalNonEmpty<NonEmpty<FieldFile>>,
    }
}

record! {
    /// What a field must be.
    pub struct FieldFile {
        /// Where it is: `a.b[0].c` or `a.b.0.c`.
        "path" => path: WithSpan<String>,
        /// What it equals.
        "equals" => equals: OptionalNonEmpty<Node>,
        /// Of which type it is.
        "type" => kind: OptionalNonEmpty<JsonType>,
        /// A regular expression that it matches.
        "match" => pattern: OptionalNonEmpty<WithSpan<String>>,
        /// Whether it is there.
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
        /// Every fact of this is in the answer; more may be.
        "contains" => contains: Option<WithSpan<LooseText>>,
        /// The answer has the facts of this, no more and no fewer.
        "exact" => exact: Option<WithSpan<LooseText>>,
        /// Why; kept as it is.
        "reason" => reason: Option<LooseText>,
    }
}

record! {
    /// Calls a tool of a server.
    pub struct ServerToolFile {
        /// The arguments.
        "args" => args: Option<WithSpan<Node>>,
        /// What the result must be.
        "expect" => expect: OptionalNonEmpty<ToolExpectFile>,
    }
}

record! {
    /// What a tool's result must be.
    pub struct ToolExpectFile any_of ["isError", "content"] {
        /// Whether the tool says that it failed.
        "isError" => is_error: OptionalNonEmpty<bool>,
        /// Its text.
        "content" => content: OptionalNonEmpty<ContentFile>,
    }
}
