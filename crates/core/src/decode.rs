//! Decodes a tree into typed values, and reports every problem.
//!
//! Its main trait is [`Decode`]. One declaration, `record!`, gives a file format's struct, its
//! decoder and its JSON Schema, so that what an editor accepts is what the loader accepts.
//! Independent of any particular file format.

use std::cell::{Cell, RefCell};

use proctor_record::hint::{listed, nearest, nearest_hint};
use proctor_record::problem::{Code, Problem, Problems, Severity, SourceText, Span};
use serde_json::{Map, Value, json};

use crate::document::{Node, NodeValue};

mod values;

pub use values::{
    KeySpans, LooseText, NonEmpty, OptionalNonEmpty, PositiveInteger, RequiredKey, StrictKeys,
    Table,
};

/// The text that is being decoded, and the problems found in it.
pub struct Context<'a> {
    pub source: SourceText,
    problems: &'a RefCell<Problems>,
    /// Whether the value that is being decoded decides a verdict.
    deciding: Cell<bool>,
    deciding_keys: &'static [&'static [&'static str]],
}

impl<'a> Context<'a> {
    /// A context that adds the problems of `source` to `problems`.
    pub fn new(source: SourceText, problems: &'a RefCell<Problems>) -> Self {
        Self {
            source,
            problems,
            deciding: Cell::new(false),
            deciding_keys: &[],
        }
    }

    /// A context for another text, with the same problems and rules.
    #[must_use]
    pub fn beside(&self, source: SourceText) -> Self {
        Self {
            source,
            problems: self.problems,
            deciding: Cell::new(self.deciding.get()),
            deciding_keys: self.deciding_keys,
        }
    }

    /// The number of problems that make a load fail, so far.
    pub fn fatal(&self) -> usize {
        self.problems.borrow().fatal()
    }

    /// Adds the keys that decide a verdict somewhere in this format. Where one of them is unknown,
    /// it is misplaced, and ignoring it would drop a check.
    #[must_use]
    pub fn with_deciding_keys(mut self, keys: &'static [&'static [&'static str]]) -> Self {
        self.deciding_keys = keys;
        self
    }

    /// Decodes a value that decides a verdict: unknown keys inside are errors.
    pub fn deciding<T>(&self, decode: impl FnOnce() -> T) -> T {
        let outer = self.deciding.replace(true);
        let decoded = decode();
        self.deciding.set(outer);
        decoded
    }

    /// Reports a problem at a place of this text.
    pub fn report(&self, span: Span, problem: Problem) {
        self.problems
            .borrow_mut()
            .push(problem.at(&self.source, span));
    }

    /// Reports a problem that has no place in this text.
    pub fn report_elsewhere(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    /// Adds the problems of another text.
    pub fn append(&self, found: Problems) {
        self.problems.borrow_mut().append(found);
    }

    /// Reports a value of the wrong type.
    pub fn wrong_type(&self, node: &Node, expected: &str) {
        let message = format!("expected {expected}, found {}", node.describe());
        self.report(node.span, Problem::error(Code::Type, message));
    }

    /// Reports that a key of a map is absent.
    pub fn missing(&self, owner: &Node, key: &str) {
        let message = format!("`{key}` is missing");
        self.report(owner.span, Problem::error(Code::Missing, message));
    }

    /// Reports the keys of a map that its format does not have: as errors where ignoring one could
    /// change a verdict, as warnings elsewhere. Each known key comes with whether it decides.
    pub fn report_unknown_keys(&self, node: &Node, known: &[(&str, bool)]) {
        let NodeValue::Mapping(entries) = &node.data else {
            return;
        };
        let is_known = |key: &str| known.iter().any(|(name, _)| *name == key);
        for entry in entries.iter().filter(|e| !is_known(&e.key)) {
            let problem = self.unknown_key(&entry.key, known);
            self.report(entry.key_span, problem);
        }
    }

    fn unknown_key(&self, key: &str, known: &[(&str, bool)]) -> Problem {
        let message = format!("unknown key `{key}`");
        let names = || known.iter().map(|(name, _)| *name);
        let near = nearest(key, names());
        let is_near_check = known
            .iter()
            .any(|(name, decides)| *decides && near == Some(name));
        let is_misplaced = self.deciding_keys.iter().any(|keys| keys.contains(&key));
        let mut problem = Problem::warning(Code::UnknownKey, message);
        if self.deciding.get() || is_near_check || is_misplaced {
            problem.severity = Severity::Error;
        }
        if self.problems.borrow().is_full() {
            return problem;
        }
        let hint = match near {
            None if is_misplaced && !self.deciding.get() => Some(format!(
                "`{key}` has no effect here and would check nothing"
            )),
            _ => nearest_hint(key, names()),
        };
        problem.maybe_hint(hint)
    }

    /// Checks that at least one of some keys has a value, and returns those that do.
    pub fn require_any<'k>(&self, node: &Node, keys: &[&'k str]) -> Vec<&'k str> {
        let has_value = |key: &&str| node.get(key).is_some_and(|value| !value.is_null());
        let given: Vec<&str> = keys.iter().copied().filter(has_value).collect();
        if given.is_empty() {
            let message = format!("one of {} is missing", listed(keys.iter().copied()));
            self.report(node.span, Problem::error(Code::Missing, message));
        }
        given
    }

    /// Checks that exactly one of some keys has a value.
    pub fn require_exactly_one(&self, node: &Node, keys: &[&str]) {
        let given = self.require_any(node, keys);
        match given[..] {
            [] | [_] => {}
            [_, second, ..] => self.report(
                key_span(node, second),
                Problem::error(
                    Code::Conflict,
                    format!("only one of {} is allowed", listed(given.iter().copied())),
                ),
            ),
        }
    }
}

/// The place of a key of a map.
pub fn key_span(node: &Node, key: &str) -> Span {
    match &node.data {
        NodeValue::Mapping(entries) => entries
            .iter()
            .find(|e| e.key == key)
            .map_or(node.span, |e| e.key_span),
        _ => node.span,
    }
}

/// The named parts of a JSON Schema.
pub type Definitions = Map<String, Value>;

/// A type that a file can hold.
pub trait Decode: Sized {
    /// Whether values of this type decide a verdict.
    const DECIDES: bool = false;

    /// The keys of a record.
    const KEYS: &'static [&'static str] = &[];

    /// Decodes the value and reports its problems. `None` means that there is no usable value.
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self>;

    /// The value of an absent key; `None` if the key is required.
    fn absent() -> Option<Self> {
        None
    }

    /// Whether a record must have the key.
    fn is_required() -> bool {
        Self::absent().is_none()
    }

    /// The placeholder for a required key that is absent or has an invalid value.
    fn hole() -> Option<Self> {
        Self::absent()
    }

    /// The JSON Schema of what [`Decode::decode`] accepts.
    fn schema(definitions: &mut Definitions) -> Value;
}

/// Decodes the value of a record's key. Fields of the same type share this code.
#[inline(never)]
pub fn decode_field<T: Decode>(node: &Node, key: &str, cx: &Context<'_>) -> Option<T> {
    match node.get(key) {
        Some(value) => T::decode(value, cx).or_else(T::hole),
        None => T::absent().or_else(|| {
            cx.missing(node, key);
            T::hole()
        }),
    }
}

/// Decodes one of several known words.
pub fn decode_word<T: Copy>(node: &Node, cx: &Context<'_>, words: &[(&str, T)]) -> Option<T> {
    let Some(text) = node.as_str() else {
        let expected = listed(words.iter().map(|(word, _)| *word));
        cx.wrong_type(node, &format!("one of {expected}"));
        return None;
    };
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Some(*value);
    }
    let known = || words.iter().map(|(word, _)| *word);
    let hint = match nearest(text, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}", listed(known())),
    };
    let message = format!("invalid value `{text}`");
    cx.report(node.span, Problem::error(Code::Value, message).hint(hint));
    None
}

/// A struct that a file's map is decoded into, declared once.
///
/// Each field names its key and a type that is [`Decode`]; its doc comment becomes the
/// description in the JSON Schema. `one_of [..]` lists keys of which just one must have a value,
/// `any_of [..]` keys of which at least one must.
macro_rules! record {
    (
        $(#[doc = $doc:literal])*
        $vis:vis struct $name:ident $(one_of $one_of:tt)* $(any_of $any_of:tt)* {
            $( $(#[doc = $field_doc:literal])* $key:literal => $field:ident: $ty:ty, )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone)]
        $vis struct $name {
            $( $(#[doc = $field_doc])* $vis $field: $ty, )*
        }

        impl $crate::decode::Decode for $name {
            const KEYS: &'static [&'static str] = &[$($key),*];

            fn decode(
                node: &$crate::document::Node,
                cx: &$crate::decode::Context<'_>,
            ) -> Option<Self> {
                if !matches!(node.data, $crate::document::NodeValue::Mapping(_)) {
                    cx.wrong_type(node, "a map");
                    return None;
                }
                cx.report_unknown_keys(
                    node,
                    &[$(($key, <$ty as $crate::decode::Decode>::DECIDES)),*],
                );
                $( cx.require_exactly_one(node, &$one_of); )*
                $( cx.require_any(node, &$any_of); )*
                // All fields are read before any of them ends the record.
                $( let $field = $crate::decode::decode_field::<$ty>(node, $key, cx); )*
                Some(Self { $( $field: $field?, )* })
            }

            fn schema(definitions: &mut $crate::decode::Definitions) -> serde_json::Value {
                $crate::decode::record_schema(
                    definitions,
                    stringify!($name),
                    concat!($($doc, "\n",)* ""),
                    &[
                        $(("oneOf", &$one_of as &[&str]),)*
                        $(("anyOf", &$any_of as &[&str]),)*
                    ],
                    &[$($crate::decode::FieldSchema {
                        key: $key,
                        doc: concat!($($field_doc, "\n",)* ""),
                        schema: <$ty as $crate::decode::Decode>::schema,
                        is_required: <$ty as $crate::decode::Decode>::is_required,
                    }),*],
                )
            }
        }
    };
}
pub(crate) use record;

/// An enum whose members a file writes as words, declared once.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident { $( $(#[doc = $doc:literal])* $word:literal => $variant:ident, )* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
        $vis enum $name {
            $( #[doc = concat!("Written `", $word, "`.")] $(#[doc = $doc])* #[serde(rename = $word)] $variant, )*
        }

        impl $name {
            /// The word that files use.
            pub fn word(self) -> &'static str {
                match self { $( Self::$variant => $word, )* }
            }
        }

        impl $crate::decode::Decode for $name {
            fn decode(
                node: &$crate::document::Node,
                cx: &$crate::decode::Context<'_>,
            ) -> Option<Self> {
                $crate::decode::decode_word(node, cx, &[$(($word, Self::$variant)),*])
            }

            fn schema(_: &mut $crate::decode::Definitions) -> serde_json::Value {
                serde_json::json!({"enum": [$($word),*]})
            }
        }
    };
}
pub(crate) use words;

/// A key of a record, for its JSON Schema.
pub struct FieldSchema {
    pub key: &'static str,
    pub doc: &'static str,
    pub schema: fn(&mut Definitions) -> Value,
    pub is_required: fn() -> bool,
}

/// Adds a record to the definitions, once, and returns the reference to it.
pub fn record_schema(
    definitions: &mut Definitions,
    name: &str,
    doc: &str,
    choices: &[(&str, &[&str])],
    fields: &[FieldSchema],
) -> Value {
    let reference = json!({"$ref": format!("#/$defs/{name}")});
    if definitions.contains_key(name) {
        return reference;
    }
    // Taken before the fields are asked, so that a record that holds itself ends.
    definitions.insert(name.to_owned(), Value::Null);
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        let schema = (field.schema)(definitions);
        properties.insert(field.key.to_owned(), described(schema, field.doc));
        if (field.is_required)() {
            required.push(field.key);
        }
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    if !choices.is_empty() {
        schema["allOf"] = choices
            .iter()
            .map(|(how, keys)| choice(how, keys))
            .collect();
    }
    definitions.insert(name.to_owned(), described(schema, doc));
    reference
}

/// The schema for "exactly one" or "at least one" of the keys. `null` does not count as a value.
fn choice(how: &str, keys: &[&str]) -> Value {
    let given =
        |key: &&str| json!({"required": [key], "properties": {*key: {"not": {"type": "null"}}}});
    json!({how: keys.iter().map(given).collect::<Vec<_>>()})
}

fn described(mut schema: Value, doc: &str) -> Value {
    let doc = doc.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    if let (Value::Object(schema), false) = (&mut schema, doc.trim().is_empty()) {
        schema.insert("description".to_owned(), doc.trim().into());
    }
    schema
}
