//! The written form of `assertions`.
//!
//! Its main type is [`AssertionsFile`].

use std::time::Duration;

use serde_json::{Value, json};

use crate::check::{CallsMode, OrderKind};
use crate::decode::{
    Context, Decode, Definitions, NonEmpty, OptionalNonEmpty, decode_word, record,
};
use crate::document::{Node, NodeValue};
use crate::matcher::{Matcher, PathStep};
use crate::pattern::Pattern;
use crate::problem::{Code, Problem, Span, WithSpan};

record! {
    /// What must hold after a task. Only what is listed is checked.
    pub struct AssertionsFile {
        /// Every listed tool must be called.
        "toolsUsed" => tools_used: OptionalNonEmpty<NonEmpty<ToolFile>>,
        /// At least one of the listed tools must be called.
        "requireAny" => require_any: OptionalNonEmpty<NonEmpty<ToolFile>>,
        /// None of the listed tools may be called.
        "toolsNotUsed" => tools_not_used: OptionalNonEmpty<NonEmpty<ToolFile>>,
        /// At least this many tool calls.
        "minToolCalls" => min_tool_calls: OptionalNonEmpty<WithSpan<u64>>,
        /// At most this many tool calls.
        "maxToolCalls" => max_tool_calls: OptionalNonEmpty<WithSpan<u64>>,
        /// Every listed resource must be read.
        "resourcesRead" => resources_read: OptionalNonEmpty<NonEmpty<ResourceFile>>,
        /// None of the listed resources may be read.
        "resourcesNotRead" => resources_not_read: OptionalNonEmpty<NonEmpty<ResourceFile>>,
        /// Every listed prompt must be used.
        "promptsUsed" => prompts_used: OptionalNonEmpty<NonEmpty<PromptFile>>,
        /// None of the listed prompts may be used.
        "promptsNotUsed" => prompts_not_used: OptionalNonEmpty<NonEmpty<PromptFile>>,
        /// Calls in this order; others may come between.
        "callOrder" => call_order: OptionalNonEmpty<NonEmpty<OrderFile>>,
        /// No tool is called twice with the same arguments.
        "noDuplicateCalls" => no_duplicate_calls: OptionalNonEmpty<bool>,
        /// Expected tool calls, each assigned to one that was made. Proctor's own.
        "calls" => calls: OptionalNonEmpty<CallsFile>,
        /// Every listed skill must be loaded.
        "skillsLoaded" => skills_loaded: OptionalNonEmpty<NonEmpty<SkillFile>>,
        /// None of the listed skills may be loaded.
        "skillsNotLoaded" => skills_not_loaded: OptionalNonEmpty<NonEmpty<SkillFile>>,
    }
}

record! {
    /// Tool calls of a server: by exact name, by pattern (either may match), or any.
    pub struct ToolFile {
        /// The server, as the MCP config names it.
        "server" => server: WithSpan<String>,
        /// The exact name of the tool.
        "tool" => tool: OptionalNonEmpty<String>,
        /// A regular expression on the tool's name.
        "toolPattern" => tool_pattern: OptionalNonEmpty<Pattern>,
        /// What the arguments must match. Proctor's own.
        "arguments" => arguments: OptionalNonEmpty<WithSpan<Matcher>>,
        /// What the result must match. Proctor's own.
        "result" => result: OptionalNonEmpty<WithSpan<Matcher>>,
        /// Whether the tool says that it failed. Proctor's own.
        "isError" => is_error: OptionalNonEmpty<bool>,
        /// How long the call may take. Proctor's own.
        "maxDuration" => max_duration: OptionalNonEmpty<WithSpan<Duration>>,
        /// How many calls must match. Proctor's own.
        "times" => times: OptionalNonEmpty<WithSpan<TimesFile>>,
    }
}

record! {
    /// How many calls must match; both ends are included.
    pub struct TimesFile {
        /// At least, 1 if not given.
        "min" => min: OptionalNonEmpty<u64>,
        /// At most, any number if not given.
        "max" => max: OptionalNonEmpty<u64>,
    }
}

record! {
    /// Resources of a server: by exact URI, by pattern (either may match), or any.
    pub struct ResourceFile {
        /// The server, as the MCP config names it.
        "server" => server: WithSpan<String>,
        /// The exact URI.
        "uri" => uri: OptionalNonEmpty<String>,
        /// A regular expression on the URI.
        "uriPattern" => uri_pattern: OptionalNonEmpty<Pattern>,
    }
}

record! {
    /// Prompts of a server: by exact name, by pattern (either may match), or any.
    pub struct PromptFile {
        /// The server, as the MCP config names it.
        "server" => server: WithSpan<String>,
        /// The exact name of the prompt.
        "prompt" => prompt: OptionalNonEmpty<String>,
        /// A regular expression on the prompt's name.
        "promptPattern" => prompt_pattern: OptionalNonEmpty<Pattern>,
    }
}

record! {
    /// One call in a sequence.
    pub struct OrderFile {
        /// `tool`, `resource` or `prompt`.
        "type" => kind: OrderKind,
        /// The server, as the MCP config names it.
        "server" => server: WithSpan<String>,
        /// The name of the tool or prompt, the URI of the resource.
        "name" => name: String,
    }
}

record! {
    /// Expected tool calls, each assigned to one that was made.
    pub struct CallsFile {
        /// How the calls that were made must line up with the list.
        "mode" => mode: CallsMode,
        /// The expected calls.
        "list" => list: NonEmpty<ToolFile>,
    }
}

record! {
    /// Skills: by exact name, by pattern (either may match), or any.
    pub struct SkillFile {
        /// The exact name of the skill.
        "skill" => skill: OptionalNonEmpty<WithSpan<String>>,
        /// A regular expression on the skill's name.
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
            "$exact": {"description": "equals this, deeply; nothing inside is an operator"},
            "$contains": {"description": "a text contains this text, or some element of a list matches this", "$ref": "#/$defs/Matcher"},
            "$match": {"description": "a text matches this regular expression", "type": "string", "format": "regex"},
            "$oneOf": {"description": "matches one of these", "type": "array", "minItems": 1, "items": matcher},
            "$type": {"description": "is of this JSON type, or of one of these", "anyOf": [{"enum": words}, {"type": "array", "minItems": 1, "items": {"enum": words}}]},
            "$exists": {"description": "is there, or is not", "type": "boolean"},
            "$approx": {"description": "is near a number", "type": "object", "properties": {"value": {"type": "number"}, "tolerance": {"type": "number", "minimum": 0}}, "required": ["value", "tolerance"], "additionalProperties": false},
            "$min": {"description": "is at least this number", "type": "number"},
            "$max": {"description": "is at most this number", "type": "number"},
            "$unordered": {"description": "a list with just these elements, in any order", "type": "array", "items": matcher},
            "$schema": {"description": "is valid by this JSON Schema", "type": ["object", "boolean"]},
            "$not": {"description": "does not match this", "$ref": "#/$defs/Matcher"},
        });
        definitions.insert(
            "Matcher".to_owned(),
            json!({
                "description": "What a JSON value must match: maps partially, lists and scalars exactly, operators start with `$`.",
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

/// Where a part of a written matcher stands: at its key, where it has one.
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
