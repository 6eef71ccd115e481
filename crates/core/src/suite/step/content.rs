//! Compares a text with the expectation of a step.
//!
//! Its main type is [`ContentExpectation`]: a [`ContentCheck`] whose templates are filled in. It returns
//! all differences; it passes only if there are none.

use proctor_record::excerpt::excerpt;
use proctor_record::json;
use proctor_record::redact::Redactor;
use serde_json::Value;

use super::values::{FillError, TemplateValues};
use super::{ContentCheck, Field, PatternTemplate};
use crate::pattern::Pattern;
use crate::suite::step_file::JsonType;
use crate::suite::template::TemplateValue;

/// The expected content of a text.
#[derive(Debug)]
pub struct ContentExpectation {
    pattern: Option<Pattern>,
    fields: Vec<ExpectedField>,
}

/// The expected value of a field.
#[derive(Debug)]
struct ExpectedField {
    path: Vec<String>,
    equals: Option<ExpectedValue>,
    kind: Option<JsonType>,
    pattern: Option<Pattern>,
    exists: Option<bool>,
}

/// The value to compare with.
#[derive(Debug)]
enum ExpectedValue {
    Plain(Value),
    /// A string with filled-in templates: it matches any value with the same text.
    Filled(String),
    Array(Vec<ExpectedValue>),
    Object(Vec<(String, ExpectedValue)>),
}

/// The content that was found.
#[derive(Debug, Clone, Copy)]
pub struct ObservedContent<'a> {
    /// The name for messages, such as `the body`.
    pub name: &'a str,
    pub text: &'a str,
    /// Its JSON documents, in the order in which fields are looked up. Empty if it is not JSON.
    pub documents: &'a [Value],
    /// Removes secrets from messages.
    pub redactor: &'a Redactor,
}

impl ObservedContent<'_> {
    /// Its text for a message. It is redacted before it is truncated, so that no part of a secret remains.
    fn excerpt(&self) -> String {
        if self.text.trim().is_empty() {
            return "it is empty".to_owned();
        }
        format!("`{}`", excerpt(&self.redactor.text(self.text)))
    }

    /// A redacted value for a message.
    fn redacted(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::from(self.redactor.text(text)),
            Value::Array(items) => items.iter().map(|item| self.redacted(item)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(key, member)| (self.redactor.text(key).into_owned(), self.redacted(member)))
                .collect(),
            other => other.clone(),
        }
    }

    fn brief(&self, value: &Value) -> String {
        json::brief(&self.redacted(value))
    }
}

impl ContentCheck {
    /// Fills the templates in.
    pub fn expected(&self, values: &TemplateValues) -> Result<ContentExpectation, FillError> {
        let pattern = |pattern: &PatternTemplate| values.fill_pattern(pattern);
        let field = |field: &Field| {
            Ok(ExpectedField {
                path: field.path.clone(),
                equals: field
                    .equals
                    .as_ref()
                    .map(|value| ExpectedValue::fill(value, values))
                    .transpose()?,
                kind: field.kind,
                pattern: field.pattern.as_ref().map(pattern).transpose()?,
                exists: field.exists,
            })
        };
        Ok(ContentExpectation {
            pattern: self.pattern.as_ref().map(pattern).transpose()?,
            fields: self.fields.iter().map(field).collect::<Result<_, _>>()?,
        })
    }
}

impl ContentExpectation {
    /// All differences from the expectation.
    pub fn failures(&self, found: ObservedContent<'_>) -> Vec<String> {
        let mut failures = Vec::new();
        if let Some(pattern) = &self.pattern
            && !pattern.is_match(found.text)
        {
            let text = found.excerpt();
            failures.push(format!(
                "{} does not match `{}`: {text}",
                found.name,
                pattern.as_str()
            ));
        }
        if found.documents.is_empty() && !self.fields.is_empty() {
            let text = found.excerpt();
            failures.push(format!(
                "{} is not JSON, so it has no fields: {text}",
                found.name
            ));
            return failures;
        }
        for field in &self.fields {
            failures.extend(field.failures(found));
        }
        failures
    }
}

impl ExpectedField {
    fn failures(&self, found: ObservedContent<'_>) -> Vec<String> {
        let name = self.path.join(".");
        let documents = found.documents.iter();
        let mut values = documents.filter_map(|document| look_up(document, &self.path));
        let Some(value) = values.next() else {
            let is_wanted = self.exists == Some(true)
                || self.equals.is_some()
                || self.kind.is_some()
                || self.pattern.is_some();
            let missing = || format!("`{name}` is missing{}", surroundings(found, &self.path));
            return is_wanted.then(missing).into_iter().collect();
        };
        let mut failures = Vec::new();
        if self.exists == Some(false) {
            let value = found.brief(value);
            failures.push(format!("`{name}`: expected no value, found {value}"));
        }
        if let Some(kind) = self.kind
            && !is_of(value, kind)
        {
            let (kind, is, value) = (kind.word(), type_of(value), found.brief(value));
            failures.push(format!(
                "`{name}`: expected type {kind}, found {is}: {value}"
            ));
        }
        if let Some(wanted) = &self.equals
            && !wanted.is(value)
        {
            let wanted = found.redacted(&wanted.value());
            let (wanted, value) = json::brief_pair(&wanted, &found.redacted(value));
            failures.push(format!("`{name}`: expected {wanted}, found {value}"));
        }
        if let Some(pattern) = &self.pattern
            && !fits(pattern, value)
        {
            let is = match value {
                Value::Array(_) | Value::Object(_) => type_of(value).to_owned(),
                _ => found.brief(value),
            };
            let pattern = pattern.as_str();
            failures.push(format!(
                "`{name}`: expected a match of `{pattern}`, found {is}"
            ));
        }
        failures
    }
}

/// Whether a pattern matches a string, a number or a boolean.
fn fits(pattern: &Pattern, value: &Value) -> bool {
    match value {
        Value::String(text) => pattern.is_match(text),
        Value::Number(_) | Value::Bool(_) => pattern.is_match(&value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

fn look_up<'a>(document: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter()
        .try_fold(document, |value, part| member(value, part))
}

fn member<'a>(value: &'a Value, part: &str) -> Option<&'a Value> {
    match value {
        Value::Object(members) => members.get(part),
        Value::Array(elements) => elements.get(part.parse::<usize>().ok()?),
        _ => None,
    }
}

/// The existing part of a path in the first document, and what it contains.
fn surroundings(found: ObservedContent<'_>, path: &[String]) -> String {
    const NAMED: usize = 8;
    let Some(mut value) = found.documents.first() else {
        return String::new();
    };
    let mut known = Vec::new();
    for part in path {
        match member(value, part) {
            Some(next) => value = next,
            None => break,
        }
        known.push(part.as_str());
    }
    let place = match &known[..] {
        [] => "the top".to_owned(),
        known => format!("`{}`", known.join(".")),
    };
    let is = match value {
        Value::Object(members) if members.is_empty() => "is an empty object".to_owned(),
        Value::Object(members) => {
            let names: Vec<&str> = members.keys().take(NAMED).map(String::as_str).collect();
            let more = if members.len() > NAMED { ", …" } else { "" };
            format!("has {}{more}", excerpt(&names.join(", ")))
        }
        Value::Array(elements) => format!("is a list of {}", elements.len()),
        other => format!("is {}", found.brief(other)),
    };
    format!(": {place} {is}")
}

fn is_of(value: &Value, kind: JsonType) -> bool {
    match kind {
        JsonType::String => value.is_string(),
        JsonType::Number => value.is_number(),
        JsonType::Integer => matches!(value, Value::Number(number) if json::is_integer(number)),
        JsonType::Boolean | JsonType::Bool => value.is_boolean(),
        JsonType::Object => value.is_object(),
        JsonType::Array => value.is_array(),
        JsonType::Null => value.is_null(),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

impl ExpectedValue {
    fn fill(value: &TemplateValue, values: &TemplateValues) -> Result<Self, FillError> {
        Ok(match value {
            TemplateValue::Plain(value) => Self::Plain(value.clone()),
            TemplateValue::String(template) => match template.as_literal() {
                Some(literal) => Self::Plain(literal.into()),
                None => Self::Filled(values.fill(template)?),
            },
            TemplateValue::Array(items) => {
                let items = items.iter().map(|item| Self::fill(item, values));
                Self::Array(items.collect::<Result<_, _>>()?)
            }
            TemplateValue::Object(entries) => {
                let entries = entries.iter();
                let entries = entries.map(|(key, v)| Ok((key.clone(), Self::fill(v, values)?)));
                Self::Object(entries.collect::<Result<_, _>>()?)
            }
        })
    }

    fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Plain(wanted), value) => json::equal(wanted, value),
            (Self::Filled(wanted), Value::String(text)) => wanted == text,
            (Self::Filled(wanted), Value::Number(_) | Value::Bool(_) | Value::Null) => {
                let wanted = json::from_str::<Value>(wanted.trim());
                wanted.is_ok_and(|wanted| json::equal(&wanted, value))
            }
            (Self::Array(wanted), Value::Array(values)) => {
                wanted.len() == values.len()
                    && wanted
                        .iter()
                        .zip(values)
                        .all(|(wanted, value)| wanted.is(value))
            }
            (Self::Object(wanted), Value::Object(members)) => {
                wanted.len() == members.len()
                    && wanted
                        .iter()
                        .all(|(key, wanted)| members.get(key).is_some_and(|v| wanted.is(v)))
            }
            _ => false,
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Plain(value) => value.clone(),
            Self::Filled(text) => Value::from(text.as_str()),
            Self::Array(items) => items.iter().map(Self::value).collect(),
            Self::Object(entries) => entries
                .iter()
                .map(|(key, wanted)| (key.clone(), wanted.value()))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests;
