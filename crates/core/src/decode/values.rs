//! The basic types of files: strings, numbers, lists, maps.

use std::time::Duration;

use proctor_record::duration;
use proctor_record::problem::{Code, Problem, Span, WithSpan};
use serde_json::{Value, json};

use super::{Context, Decode, Definitions};
use crate::document::{Node, NodeValue};
use crate::pattern::Pattern;

// The schemas of generic types, built once for all of them.

fn nullable(schema: &Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn optional_list(items: &Value) -> Value {
    json!({"type": ["array", "null"], "items": items})
}

fn filled_list(items: &Value) -> Value {
    json!({"type": "array", "minItems": 1, "items": items})
}

fn table(values: &Value) -> Value {
    json!({"type": ["object", "null"], "additionalProperties": values})
}

impl<T: Decode> Decode for Option<T> {
    const DECIDES: bool = T::DECIDES;

    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        if node.is_null() {
            return Some(None);
        }
        Some(T::decode(node, cx))
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn schema(definitions: &mut Definitions) -> Value {
        nullable(&T::schema(definitions))
    }
}

/// A value that decides a verdict: an unknown key inside it is an error, at
/// every depth, because a mistyped check would be ignored.
#[derive(Debug, Clone)]
pub struct StrictKeys<T>(pub T);

impl<T> std::ops::Deref for StrictKeys<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Decode> Decode for StrictKeys<T> {
    const DECIDES: bool = true;

    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        cx.deciding(|| T::decode(node, cx)).map(Self)
    }

    fn absent() -> Option<Self> {
        T::absent().map(Self)
    }

    fn hole() -> Option<Self> {
        T::hole().map(Self)
    }

    fn schema(definitions: &mut Definitions) -> Value {
        T::schema(definitions)
    }
}

/// A map with the places of its keys, for reports that point at them.
#[derive(Debug, Clone)]
pub struct KeySpans<T> {
    pub value: T,
    pub spans: Vec<(String, Span)>,
}

impl<T> std::ops::Deref for KeySpans<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Decode> Decode for KeySpans<T> {
    const DECIDES: bool = T::DECIDES;
    const KEYS: &'static [&'static str] = T::KEYS;

    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let value = T::decode(node, cx)?;
        let spans = match &node.data {
            NodeValue::Mapping(entries) => {
                let entries = entries.iter();
                entries.map(|e| (e.key.clone(), e.key_span)).collect()
            }
            _ => Vec::new(),
        };
        Some(Self { value, spans })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        T::schema(definitions)
    }
}

/// A key that may be absent, but not empty: the author of `toolsUsed:` without a value
/// forgot something.
#[derive(Debug, Clone)]
pub struct OptionalNonEmpty<T>(Option<T>);

impl<T> std::ops::Deref for OptionalNonEmpty<T> {
    type Target = Option<T>;

    fn deref(&self) -> &Option<T> {
        &self.0
    }
}

impl<T: Decode> Decode for OptionalNonEmpty<T> {
    const DECIDES: bool = T::DECIDES;

    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        Some(Self(T::decode(node, cx)))
    }

    fn absent() -> Option<Self> {
        Some(Self(None))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        T::schema(definitions)
    }
}

/// A required key. Its absence is reported, and the rest of its map is still decoded.
#[derive(Debug, Clone)]
pub struct RequiredKey<T>(Option<T>);

impl<T> RequiredKey<T> {
    /// The value, unless it was reported as absent or invalid.
    pub fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T: Decode> Decode for RequiredKey<T> {
    const DECIDES: bool = T::DECIDES;

    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        Some(Self(T::decode(node, cx)))
    }

    fn hole() -> Option<Self> {
        Some(Self(None))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        T::schema(definitions)
    }
}

impl<T: Decode> Decode for WithSpan<T> {
    const DECIDES: bool = T::DECIDES;

    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        Some(Self {
            value: T::decode(node, cx)?,
            span: node.span,
        })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        T::schema(definitions)
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        match &node.data {
            NodeValue::Null => Some(Vec::new()),
            NodeValue::Sequence(items) => {
                Some(items.iter().filter_map(|n| T::decode(n, cx)).collect())
            }
            _ => {
                cx.wrong_type(node, "a list");
                None
            }
        }
    }

    fn absent() -> Option<Self> {
        Some(Vec::new())
    }

    fn schema(definitions: &mut Definitions) -> Value {
        optional_list(&T::schema(definitions))
    }
}

/// A list that must not be empty, because an empty list checks nothing.
#[derive(Debug, Clone)]
pub struct NonEmpty<T>(pub Vec<T>);

impl<T: Decode> Decode for NonEmpty<T> {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let NodeValue::Sequence(items) = &node.data else {
            cx.wrong_type(node, "a list");
            return None;
        };
        if items.is_empty() {
            cx.report(
                node.span,
                Problem::error(Code::Vacuous, "the list is empty")
                    .hint("an empty list checks nothing; remove the key or add an entry"),
            );
            return None;
        }
        Some(Self(
            items.iter().filter_map(|n| T::decode(n, cx)).collect(),
        ))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        filled_list(&T::schema(definitions))
    }
}

/// A map whose keys the user chooses, in the order of the text.
#[derive(Debug, Clone)]
pub struct Table<T>(pub Vec<(WithSpan<String>, T)>);

impl<T> Table<T> {
    /// The keys and values.
    pub fn iter(&self) -> impl Iterator<Item = &(WithSpan<String>, T)> {
        self.0.iter()
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Decode> Decode for Table<T> {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        match &node.data {
            NodeValue::Null => Some(Self::default()),
            NodeValue::Mapping(entries) => Some(Self(
                entries
                    .iter()
                    .filter_map(|entry| {
                        let key = WithSpan {
                            value: entry.key.clone(),
                            span: entry.key_span,
                        };
                        Some((key, T::decode(&entry.value, cx)?))
                    })
                    .collect(),
            )),
            _ => {
                cx.wrong_type(node, "a map");
                None
            }
        }
    }

    fn absent() -> Option<Self> {
        Some(Self::default())
    }

    fn schema(definitions: &mut Definitions) -> Value {
        table(&T::schema(definitions))
    }
}

impl Decode for Node {
    fn decode(node: &Node, _: &Context<'_>) -> Option<Self> {
        Some(node.clone())
    }

    fn schema(_: &mut Definitions) -> Value {
        json!(true)
    }
}

impl Decode for String {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        match &node.data {
            NodeValue::String(text) if text.is_empty() => {
                cx.report(
                    node.span,
                    Problem::error(Code::Value, "the string is empty"),
                );
                None
            }
            NodeValue::String(text) => Some(text.clone()),
            NodeValue::Number(..) | NodeValue::Bool(_) => {
                let message = format!("expected a string, found {}", node.describe());
                let problem = Problem::error(Code::Type, message);
                cx.report(node.span, problem.hint("put it in quotes"));
                None
            }
            _ => {
                cx.wrong_type(node, "a string");
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "string", "minLength": 1})
    }
}

/// A string that may be written as a number or a boolean without quotes, as public files do for
/// labels, arguments and versions. It may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LooseText(pub String);

impl Decode for LooseText {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        match &node.data {
            NodeValue::String(text) => Some(Self(text.clone())),
            NodeValue::Number(_, raw) => Some(Self(raw.clone())),
            NodeValue::Bool(value) => Some(Self(value.to_string())),
            _ => {
                cx.wrong_type(node, "a string");
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": ["string", "number", "boolean"]})
    }
}

impl Decode for bool {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        match &node.data {
            NodeValue::Bool(value) => Some(*value),
            NodeValue::String(text)
                if ["yes", "no", "on", "off"].contains(&&*text.to_lowercase()) =>
            {
                let message = format!("expected `true` or `false`, found `{text}`");
                let problem = Problem::error(Code::Type, message);
                cx.report(
                    node.span,
                    problem.hint("in YAML 1.2 this is a string; write `true` or `false`"),
                );
                None
            }
            _ => {
                cx.wrong_type(node, "`true` or `false`");
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "boolean"})
    }
}

impl Decode for u64 {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let whole = whole_number(node);
        if whole.is_none() {
            cx.wrong_type(node, "a whole number, zero or more");
        }
        whole
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "integer", "minimum": 0})
    }
}

/// The whole number that a node holds: `5` and `5.0` are the same one.
fn whole_number(node: &Node) -> Option<u64> {
    let NodeValue::Number(number, _) = &node.data else {
        return None;
    };
    let plain = number.as_str().trim_end_matches('0');
    let plain = plain.strip_suffix('.').unwrap_or(number.as_str());
    plain.parse().ok()
}

/// A whole number of at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PositiveInteger(pub u32);

impl Decode for PositiveInteger {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        match whole_number(node).and_then(|n| u32::try_from(n).ok()) {
            Some(number) if number > 0 => Some(Self(number)),
            _ => {
                cx.wrong_type(node, "a whole number of at least one");
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "integer", "minimum": 1, "maximum": u32::MAX})
    }
}

/// A number greater than zero, such as an amount of money.
impl Decode for f64 {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let number = match &node.data {
            NodeValue::Number(number, _) => number.as_f64(),
            _ => None,
        };
        match number {
            Some(number) if number > 0.0 && number.is_finite() => Some(number),
            _ => {
                cx.wrong_type(node, "a number greater than zero");
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "number", "exclusiveMinimum": 0})
    }
}

impl Decode for Duration {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let text = match &node.data {
            NodeValue::String(text) => text,
            NodeValue::Number(_, raw) => raw,
            _ => {
                cx.wrong_type(node, "a duration such as `30s`");
                return None;
            }
        };
        match duration::parse(text) {
            Ok(duration) if duration.is_zero() => {
                let message = "a duration can't be zero";
                cx.report(node.span, Problem::error(Code::Value, message));
                None
            }
            Ok(duration) => Some(duration),
            Err(error) => {
                let hint = match error {
                    duration::DurationError::NoUnit(_) => format!("write `{text}s` for seconds"),
                    _ => "durations look like `30s`, `5m`, `1h30m`, `250ms`".to_owned(),
                };
                cx.report(
                    node.span,
                    Problem::error(Code::Value, error.to_string()).hint(hint),
                );
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({
            "description": "a duration such as `30s`, `5m`, `1h30m`, `250ms`",
            "type": "string",
            "pattern": r"^\+?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$",
        })
    }
}

impl Decode for Pattern {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let text = String::decode(node, cx)?;
        match Self::compile(&text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let message = format!("invalid regular expression `{text}`: {error}");
                cx.report(node.span, Problem::error(Code::Value, message));
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "string", "minLength": 1, "format": "regex"})
    }
}
