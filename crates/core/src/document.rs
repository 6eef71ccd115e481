//! Parses YAML or JSON into a tree that knows the place of each value.
//!
//! Its main type is [`Node`]. Whatever the text, building the tree takes bounded time and memory
//! and never panics: depth, nodes and the growth through aliases are limited, and nothing here
//! recurses on input before its depth was checked. Independent of the file formats.

use saphyr_parser::{Event, Parser, ScanError};
use serde_json::{Map, Number, Value};

use proctor_record::problem::{Code, Problem, Problems, SourceText, Span};

mod build;
mod scalar;
pub mod yaml;

use build::{Builder, too_deep};

/// The maximum size of a file in bytes.
pub const MAX_BYTES: u64 = 8 << 20;
/// The maximum depth of nested lists and maps.
pub const MAX_DEPTH: usize = 100;
/// The maximum number of values in a file, with aliases expanded.
pub const MAX_NODES: usize = 200_000;

/// The maximum number of separators in a file. The parser reads a whole `[…]` or `{…}` before it reports
/// it, so counting values would come too late.
const MAX_SEPARATORS: usize = 2 * MAX_NODES;

/// A value and its place in the text.
#[derive(Debug, Clone)]
pub struct Node {
    pub span: Span,
    pub data: NodeValue,
}

/// The value of a [`Node`].
#[derive(Debug, Clone)]
pub enum NodeValue {
    /// Nothing, `~` or `null`.
    Null,
    Bool(bool),
    /// A number, and the way it was written.
    Number(Number, String),
    String(String),
    Sequence(Vec<Node>),
    /// A map, in the order of its keys in the text.
    Mapping(Vec<MapEntry>),
}

/// A key of a map and its value.
#[derive(Debug, Clone)]
pub struct MapEntry {
    pub key: String,
    /// The place of the key.
    pub key_span: Span,
    pub value: Node,
}

impl Node {
    /// The value of a map's key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.data {
            NodeValue::Mapping(entries) => entries.iter().find(|e| e.key == key).map(|e| &e.value),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.data {
            NodeValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether there is nothing.
    pub fn is_null(&self) -> bool {
        matches!(self.data, NodeValue::Null)
    }

    /// Converts the value to JSON, without places.
    pub fn to_json(&self) -> Value {
        match &self.data {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Number(number, _) => Value::Number(number.clone()),
            NodeValue::String(text) => Value::String(text.clone()),
            NodeValue::Sequence(items) => items.iter().map(Node::to_json).collect(),
            NodeValue::Mapping(entries) => Value::Object(
                entries
                    .iter()
                    .map(|e| (e.key.clone(), e.value.to_json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// Describes the value for messages, such as `the number 5`. Only short values are included.
    pub fn describe(&self) -> String {
        match &self.data {
            NodeValue::Null => "nothing".to_owned(),
            NodeValue::Bool(value) => format!("`{value}`"),
            NodeValue::Number(_, raw) => format!("the number `{raw}`"),
            NodeValue::String(text) if text.chars().count() <= 40 && !text.contains('\n') => {
                format!("the string `{text}`")
            }
            NodeValue::String(_) => "a string".to_owned(),
            NodeValue::Sequence(_) => "a list".to_owned(),
            NodeValue::Mapping(_) => "a map".to_owned(),
        }
    }

    fn nodes(&self) -> usize {
        1 + match &self.data {
            NodeValue::Sequence(items) => items.iter().map(Node::nodes).sum(),
            NodeValue::Mapping(entries) => entries.iter().map(|e| e.value.nodes()).sum(),
            _ => 0,
        }
    }

    fn depth(&self) -> usize {
        match &self.data {
            NodeValue::Sequence(items) => 1 + items.iter().map(Node::depth).max().unwrap_or(0),
            NodeValue::Mapping(entries) => {
                1 + entries.iter().map(|e| e.value.depth()).max().unwrap_or(0)
            }
            _ => 0,
        }
    }
}

/// The first document of a text, and whether there is a second.
#[derive(Debug)]
pub struct Document {
    /// The first document; [`NodeValue::Null`] if the text is empty.
    pub root: Node,
    /// Where a second document starts, if there is one.
    pub second: Option<Span>,
}

/// Builds the tree of a text. If it returns `None`, it has reported at least one error; otherwise
/// it may have reported some too.
pub fn parse(source: &SourceText, problems: &mut Problems) -> Option<Document> {
    let is_separator = |b: &u8| b",:[]{}".contains(b);
    let separators = source.text().bytes().filter(|b| is_separator(b)).count();
    if separators > MAX_SEPARATORS {
        let problem = build::too_many().in_file(source.path());
        problems.push(problem);
        return None;
    }
    let text = scalar::join_surrogates(source.text());
    let mut builder = Builder::new(source, problems);
    let mut documents = 0;
    for event in Parser::new_from_str(&text) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                let problem = syntax_problem(&error, source);
                builder.problems.push(problem);
                return None;
            }
        };
        let span = to_span(span);
        match event {
            Event::DocumentStart(_) => {
                documents += 1;
                if documents == 2 {
                    let root = builder.root?;
                    return Some(Document {
                        root,
                        second: Some(span),
                    });
                }
            }
            event => {
                if let Err(problem) = builder.accept(event, span) {
                    let problem = problem.at(source, span);
                    builder.problems.push(problem);
                    return None;
                }
            }
        }
    }
    let root = builder.root.unwrap_or(Node {
        span: Span {
            line: 1,
            column: 1,
            chars: 1,
        },
        data: NodeValue::Null,
    });
    Some(Document { root, second: None })
}

fn to_span(span: saphyr_parser::Span) -> Span {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let chars = if span.start.line() == span.end.line() {
        span.end.col().saturating_sub(span.start.col()).max(1)
    } else {
        // More than one line: the rest of the first is meant.
        usize::MAX
    };
    Span {
        line: number(span.start.line()),
        column: number(span.start.col() + 1),
        chars: number(chars),
    }
}

fn syntax_problem(error: &ScanError, source: &SourceText) -> Problem {
    let span = Span {
        line: u32::try_from(error.marker().line()).unwrap_or(u32::MAX),
        column: u32::try_from(error.marker().col() + 1).unwrap_or(u32::MAX),
        chars: 1,
    };
    let info = error.info();
    if info.contains("recursion limit") {
        return too_deep().at(source, span);
    }
    let hint = if info.contains("tab") {
        Some("YAML does not allow tabs in indentation; use spaces")
    } else if info.contains("mapping values are not allowed") {
        Some("quote strings that contain `: `")
    } else if info.contains("unknown anchor") {
        Some("declare it before its first use: `&name value`")
    } else {
        None
    };
    Problem::error(Code::Syntax, format!("invalid YAML: {info}"))
        .at(source, span)
        .maybe_hint(hint.map(str::to_owned))
}

#[cfg(test)]
mod tests;
