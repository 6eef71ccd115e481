//! Texts of a script that quote the conversation: `{prompt}`, `{user}`, `{result}`,
//! `{result.PATH}`, `{results.N}`, `{results.N.PATH}`, `{match.N}`.
//!
//! Main types: [`TextWithQuotes`], a text, and [`QuotingValue`], a JSON value. Any other text in
//! braces is literal. A quote that can't be filled in is an error, never an empty text.

use proctor_record::hint::nearest;
use serde_json::{Map, Value};

use crate::pattern::Pattern;

/// The words that start a quote in braces.
const HEADS: [&str; 5] = ["prompt", "user", "result", "results", "match"];

/// A text with quotes in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextWithQuotes {
    parts: Vec<QuotePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum QuotePart {
    Text(String),
    Quote(Quote),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quote {
    /// As it was written, without braces.
    pub(super) written: String,
    pub(super) source: QuoteSource,
    /// The path in it, parsed as JSON; empty for the whole text.
    pub(super) path: Vec<String>,
}

/// The source of a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteSource {
    /// The first user message.
    Prompt,
    /// The last user message.
    User,
    /// The latest tool result.
    Latest,
    /// A tool result, counted from one.
    Result(usize),
    /// A group of the rule's pattern, by its number.
    Group(usize),
}

/// A mistake, or a probable mistake, in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QuoteProblem {
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// Whether the text can still be used.
    pub(super) harmless: bool,
}

impl QuoteProblem {
    fn error(message: String, hint: impl Into<String>) -> Self {
        Self {
            message,
            hint: Some(hint.into()),
            harmless: false,
        }
    }
}

impl TextWithQuotes {
    /// Parses a text. `{match.N}` refers to a group of `pattern`.
    pub(super) fn parse(
        text: &str,
        pattern: Option<&Pattern>,
        problems: &mut Vec<QuoteProblem>,
    ) -> Self {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            literal.push_str(&rest[..at]);
            let inside = &rest[at + 1..];
            let Some((written, after)) = reference(inside, problems) else {
                literal.push('{');
                rest = inside;
                continue;
            };
            match quote(written, pattern) {
                Ok(quote) => {
                    if !literal.is_empty() {
                        parts.push(QuotePart::Text(std::mem::take(&mut literal)));
                    }
                    parts.push(QuotePart::Quote(quote));
                }
                Err(problem) => problems.push(problem),
            }
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(QuotePart::Text(literal));
        }
        Self { parts }
    }

    /// The text with every quote filled in. Values that are not strings are written as JSON.
    pub(super) fn fill<E>(
        &self,
        look_up: &mut impl FnMut(&Quote) -> Result<Value, E>,
    ) -> Result<String, E> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                QuotePart::Text(text) => out.push_str(text),
                QuotePart::Quote(quote) => match look_up(quote)? {
                    Value::String(text) => out.push_str(&text),
                    other => out.push_str(&other.to_string()),
                },
            }
        }
        Ok(out)
    }
}

/// A JSON value whose strings can quote. Keys can't.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum QuotingValue {
    Plain(Value),
    String(TextWithQuotes),
    Array(Vec<QuotingValue>),
    Object(Vec<(String, QuotingValue)>),
}

impl QuotingValue {
    pub(super) fn parse(
        value: Value,
        pattern: Option<&Pattern>,
        problems: &mut Vec<QuoteProblem>,
    ) -> Self {
        match value {
            Value::String(text) => Self::String(TextWithQuotes::parse(&text, pattern, problems)),
            Value::Array(items) => Self::Array(
                items
                    .into_iter()
                    .map(|item| Self::parse(item, pattern, problems))
                    .collect(),
            ),
            Value::Object(map) => Self::Object(
                map.into_iter()
                    .map(|(key, item)| (key, Self::parse(item, pattern, problems)))
                    .collect(),
            ),
            plain => Self::Plain(plain),
        }
    }

    /// The value with every quote filled in. A string that is a single quote becomes the quoted value:
    /// a number stays a number.
    pub(super) fn fill<E>(
        &self,
        look_up: &mut impl FnMut(&Quote) -> Result<Value, E>,
    ) -> Result<Value, E> {
        Ok(match self {
            Self::Plain(value) => value.clone(),
            Self::String(text) => match &text.parts[..] {
                [QuotePart::Quote(quote)] => look_up(quote)?,
                _ => Value::String(text.fill(look_up)?),
            },
            Self::Array(items) => Value::Array(
                items
                    .iter()
                    .map(|item| item.fill(look_up))
                    .collect::<Result<_, _>>()?,
            ),
            Self::Object(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, item)| Ok((key.clone(), item.fill(look_up)?)))
                    .collect::<Result<Map<_, _>, _>>()?,
            ),
        })
    }
}

/// Splits `result.id} rest` into the reference and the rest; `None` if these braces are text.
fn reference<'a>(inside: &'a str, problems: &mut Vec<QuoteProblem>) -> Option<(&'a str, &'a str)> {
    let (written, after) = inside.split_once('}')?;
    let legal = |c: char| c.is_alphanumeric() || "_-.[]$/".contains(c);
    if !written.chars().all(legal) {
        return None;
    }
    let head = written.split(['.', '[']).next().unwrap_or(written);
    if HEADS.contains(&head) {
        return Some((written, after));
    }
    if let Some(near) = nearest(head, HEADS) {
        problems.push(QuoteProblem {
            message: format!("unknown quote `{{{written}}}`"),
            hint: Some(format!("it is sent unchanged; did you mean `{{{near}}}`?")),
            harmless: true,
        });
    }
    None
}

fn quote(written: &str, pattern: Option<&Pattern>) -> Result<Quote, QuoteProblem> {
    let unknown = |hint: &str| QuoteProblem::error(format!("invalid quote `{{{written}}}`"), hint);
    // `a[0].b` and `a.0.b` are the same path.
    let path = written.replace('[', ".").replace(']', "");
    let mut steps = path.split('.').map(str::to_owned);
    let head = steps.next().unwrap_or_default();
    let mut path: Vec<String> = steps.collect();
    if path.iter().any(String::is_empty) {
        return Err(unknown("paths look like `{result.a.b[0]}`"));
    }
    let source = match &*head {
        "prompt" if path.is_empty() => QuoteSource::Prompt,
        "user" if path.is_empty() => QuoteSource::User,
        "prompt" | "user" => return Err(unknown("it is a string and has no parts")),
        "result" => QuoteSource::Latest,
        "results" => {
            let hint = "write `{results.N}` (N counts from 1), or `{result}` for the latest";
            let number = (!path.is_empty()).then(|| path.remove(0));
            match number.and_then(|number| number.parse().ok()) {
                Some(number) if number > 0 => QuoteSource::Result(number),
                _ => return Err(unknown(hint)),
            }
        }
        _ => {
            let [group] = &path[..] else {
                return Err(unknown("write `{match.N}`; `{match.0}` is the whole match"));
            };
            let source = QuoteSource::Group(group_number(written, group, pattern)?);
            path.clear();
            source
        }
    };
    Ok(Quote {
        written: written.to_owned(),
        source,
        path,
    })
}

fn group_number(
    written: &str,
    group: &str,
    pattern: Option<&Pattern>,
) -> Result<usize, QuoteProblem> {
    let Some(pattern) = pattern else {
        return Err(QuoteProblem::error(
            format!("no pattern for `{{{written}}}`"),
            "use exactly one pattern under `when`, or exactly one with groups",
        ));
    };
    pattern.group(group).ok_or_else(|| {
        QuoteProblem::error(
            format!("`{}` has no group `{group}`", pattern.as_str()),
            "groups are the parts in parentheses, counted from 1",
        )
    })
}
