//! The file format of `assertions`.
//!
//! Its main type is [`AssertionsFile`].

use std::time::Duration;

use proctor_record::problem::{Code, Problem, Span, WithSpan};
use serde_json::{Value, json};

use crate::check::{CallsMode, OrderKind};
use crate::decode::{
    Context, Decode, Definitions, NonEmpty, OptionalNonEmpty, decode_word, record,
};
use crate::document::{Node, NodeValue};
use crate::matcher::{Matcher, PathStep};
use crate::pattern::Pattern;

record! {
    /// The assertions to check after a task.
    pub struct AssertionsFile {
        /// Every listed tool must be called.
        "toolsUsed" => tools_used: OptionalNonEmpty<NonEmpty<ToolFile>>,
        /// At least one of the listed tools must be called.
        "requireAny" => require_any: OptionalNonEmpty<NonEmpty<ToolFile>>,
        /// None of the listed tools may be called.
        "toolsNotUsed" => tools_not_used: OptionalNonEmpty<NonEmpty<ToolFile>>,
        /// The minimum number of tool calls.
        "minToolCalls" => min_tool_calls: OptionalNonEmpty<WithSpan<u64>>,
        /// The maximum number of tool calls.
        "maxToolCalls" => max_tool_calls: OptionalNonEmpty<WithSpan<u64>>,
        /// Every listed resource must be read.
        "resourcesRead" => resources_read: OptionalNonEmpty<NonEmpty<ResourceFile>>,
        /// None of the listed resources may be read.
        "resourcesNotRead" => resources_not_read: OptionalNonEmpty<NonEmpty<ResourceFile>>,
        /// Every listed prompt must be used.
        "promptsUsed" => prompts_used: OptionalNonEmpty<NonEmpty<PromptFile>>,
        /// None of the listed prompts may be used.
        "promptsNotUsed" => prompts_not_used: OptionalNonEmpty<NonEmpty<PromptFile>>,
        /// These calls must occur in this order. Other calls may come between them.
        "callOrder" => call_order: OptionalNonEmpty<NonEmpty<OrderFile>>,
        /// No tool may be called twice with the same arguments.
        "noDuplicateCalls" => no_duplicate_calls: OptionalNonEmpty<bool>,
        /// The expected tool calls. Each must match a call of its own. Only Proctor supports this key.
        "calls" => calls: OptionalNonEmpty<CallsFile>,
        /// Every listed skill must be loaded.
        "skillsLoaded" => skills_loaded: OptionalNonEmpty<NonEmpty<SkillFile>>,
        /// None of the listed skills may be loaded.
        "skillsNotLoaded" => skills_not_loaded: OptionalNonEmpty<NonEmpty<SkillFile>>,
    }
}

record! {
    /// Matches tool calls of a server: by exact name or pattern, or all calls if both are absent.
    pub struct ToolFile {
        /// The server, as the MCP config names it.
        "server" => server: WithSpan<String>,
        /// The exact name of the tool.
        "tool" => tool: OptionalNonEmpty<String>,
        /// A regular expression for the tool's name.
        "toolPattern" => tool_pattern: OptionalNonEmpty<Pattern>,
        /// A matcher for the arguments. Only Proctor supports this key.
        "arguments" => arguments: OptionalNonEmpty<WithSpan<Matcher>>,
        /// A matcher for the result. Only Proctor supports this key.
        "result" => result: OptionalNonEmpty<WithSpan<Matcher>>,
        /// Whether the call must end with an error. Only Proctor supports this key.
        "isError" => is_error: OptionalNonEmpty<bool>,
        /// The maximum duration of the call. Only Proctor supports this key.
        "maxDuration" => max_duration: OptionalNonEmpty<WithSpan<Duration>>,
        /// How many calls must match. Only Proctor supports this key.
        "times" => times: OptionalNonEmpty<WithSpan<TimesFile>>,
    }
}

record! {
    /// How many calls must match. Both bounds are inclusive.
    pub struct TimesFile {
        /// The minimum, 1 by default.
        "min" => min: OptionalNonEmpty<u64>,
        /// The maximum, unlimited by default.
        "max" => max: OptionalNonEmpty<u64>,
    }
}

record! {
    /// Matches resources of a server: by exact URI or pattern, or all if both are absent.
    pub struct ResourceFile {
        /// The server, as the MCP config names it.
        "server" => server: WithSpan<String>,
        /// The exact URI of the resource.
        "uri" => uri: OptionalNonEmpty<String>,
        /// A regular expression for the URI.
        "uriPattern" => uri_pattern: OptionalNonEmpty<Pattern>,
    }
}

record! {
    /// Matches prompts of a server: by exact name or pattern, or all if both are absent.
    pub struct PromptFile {
        /// The server, as the MCP config names it.
        "server" => server: WithSpan<String>,
        /// The exact name of the prompt.
        "prompt" => prompt: OptionalNonEmpty<String>,
        /// A regular expression for the prompt's name.
        "promptPattern" => prompt_pattern: OptionalNonEmpty<Pattern>,
    }
}

record! {
    /// One call in a sequence.
    pub struct OrderFile {
        /// The type of the call: `tool`, `resource` or `prompt`.
        "type" => kind: OrderKind,
        /// The server, as the MCP config names it.
        "server" => server: WithSpan<String>,
        /// The name of the tool or prompt, or the URI of the resource.
        "name" => name: String,
    }
}

record! {
    /// The expected tool calls. Each must match a call of its own.
    pub struct CallsFile {
        /// How the agent's calls must correspond to the list.
        "mode" => mode: CallsMode,
        /// The list of expected calls.
        "list" => list: NonEmpty<ToolFile>,
    }
}

record! {
    /// Matches skills: by exact name or pattern, or all if both are absent.
    pub struct SkillFile {
        /// The exact name of the skill.
        "skill" => skill: OptionalNonEmpty<WithSpan<String>>,
        /// A regular expression for the skill's name.
        "skillPattern" => skill_pattern: OptionalNonEmpty<WithSpan<Pattern>>,
    }
}

const ORDER_KINDS: [(&str, OrderKind); 3] = [
    ("tool", OrderKind::Tool),
    ("resource", OrderKind::Resource),
    ("prompt", OrderKind::Prompt),
];

impl Decode for OrderKind {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        decode_word(node, cx, &ORDER_KINDS)
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"enum": ORDER_KINDS.map(|(word, _)| word)})
    }
}

const CALLS_MODES: [CallsMode; 3] = [CallsMode::Contains, CallsMode::InOrder, CallsMode::Exact];

impl Decode for CallsMode {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        decode_word(node, cx, &CALLS_MODES.map(|mode| (mode.word(), mode)))
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"enum": CALLS_MODES.map(CallsMode::word)})
    }
}

impl Decode for Matcher {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        match Self::compile(&node.to_json()) {
            Ok(matcher) => Some(matcher),
            Err(errors) => {
                for error in errors {
                    let problem = Problem::error(Code::Value, error.message);
                    cx.report(span_of(node, &error.path), problem.maybe_hint(error.hint));
                }
                None
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let matcher = json!({"$ref": "#/$defs/Matcher"});
        let matchers = json!({"type": "array", "items": matcher});
        let words = json!([
            "string", "number", "integer", "boolean", "object", "array", "null"
        ]);
        let operators = json!({
            "$exact": {"description": "equals this value; keys with `$` inside are no operators"},
            "$contains": {"description": "a string contains this string, or an element of a list matches this", "$ref": "#/$defs/Matcher"},
            "$match": {"description": "a string matches this regular expression", "type": "string", "format": "regex"},
            "$oneOf": {"description": "matches one of these", "type": "array", "minItems": 1, "items": matcher},
            "$type": {"description": "has this JSON type, or one of these", "anyOf": [{"enum": words}, {"type": "array", "minItems": 1, "items": {"enum": words}}]},
            "$exists": {"description": "is present (`true`) or absent (`false`)", "type": "boolean"},
            "$approx": {"description": "differs from `value` by at most `tolerance`", "type": "object", "properties": {"value": {"type": "number"}, "tolerance": {"type": "number", "minimum": 0}}, "required": ["value", "tolerance"], "additionalProperties": false},
            "$min": {"description": "is at least this number", "type": "number"},
            "$max": {"description": "is at most this number", "type": "number"},
            "$unordered": {"description": "a list with exactly these elements, in any order", "type": "array", "items": matcher},
            "$schema": {"description": "is valid according to this JSON Schema", "type": ["object", "boolean"]},
            "$not": {"description": "does not match this", "$ref": "#/$defs/Matcher"},
        });
        definitions.insert(
            "Matcher".to_owned(),
            json!({
                "description": "A matcher for a JSON value. A map matches if its keys match; lists and scalars must be equal. Keys that start with `$` are operators.",
                "anyOf": [
                    {"type": ["null", "boolean", "number", "string"]},
                    matchers,
                    {"type": "object", "properties": operators, "minProperties": 1, "additionalProperties": false},
                    {"type": "object", "propertyNames": {"not": {"pattern": r"^\$"}}, "additionalProperties": matcher},
                ],
            }),
        );
        matcher
    }
}

/// The place of a part of a matcher: its key, if it has one.
fn span_of(node: &Node, path: &[PathStep]) -> Span {
    let mut node = node;
    let mut span = node.span;
    for step in path {
        let child = match (&node.data, step) {
            (NodeValue::Mapping(entries), PathStep::Key(key)) => {
                let entry = entries.iter().find(|e| e.key == *key);
                entry.map(|e| (&e.value, e.key_span))
            }
            (NodeValue::Sequence(items), PathStep::Index(at)) => {
                items.get(*at).map(|n| (n, n.span))
            }
            _ => None,
        };
        let Some((next, next_span)) = child else {
            break;
        };
        (node, span) = (next, next_span);
    }
    span
}
