//! Whether a text is what a step expects.
//!
//! Its main type is [`Expected`]: a [`Content`] whose templates are filled in. It looks at what was
//! found and says what is not as it should be; to find nothing wrong is its only way to pass.

use serde_json::Value;

use super::values::{FillError, Values};
use super::{Content, Field, PatternTemplate};
use crate::excerpt::excerpt;
use crate::json;
use crate::pattern::Pattern;
use crate::suite::step_file::JsonType;
use crate::suite::template::TemplateValue;

/// What a text must be.
#[derive(Debug)]
pub struct Expected {
    pattern: Option<Pattern>,
    fields: Vec<ExpectedField>,
}

/// What a field must be.
#[derive(Debug)]
struct ExpectedField {
    path: Vec<String>,
    equals: Option<Wanted>,
    kind: Option<JsonType>,
    pattern: Option<Pattern>,
    exists: Option<bool>,
}

/// What a value must equal.
#[derive(Debug)]
enum Wanted {
    Plain(Value),
    /// A string that templates were filled into: all it can be is text, whatever it was before.
    Filled(String),
    Array(Vec<Wanted>),
    Object(Vec<(String, Wanted)>),
}

/// What was found.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    /// What it is called: `the body`.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
    /// What it says as JSON, in the order in which fields are looked up. None, if it is no JSON.
    pub documents: &'a [Value],
}

impl Content {
    /// Fills the templates in.
    pub fn expected(&self, values: &Values) -> Result<Expected, FillError> {
        let pattern = |pattern: &PatternTemplate| values.fill_pattern(pattern);
        let field = |field: &Field| {
            Ok(ExpectedField {
                path: field.path.clone(),
                equals: field
                    .equals
                    .as_ref()
                    .map(|value| Wanted::fill(value, values))
                    .transpose()?,
                kind: field.kind,
                pattern: field.pattern.as_ref().map(pattern).transpose()?,
                exists: field.exists,
            })
        };
        Ok(Expected {
            pattern: self.pattern.as_ref().map(pattern).transpose()?,
            fields: self.fields.iter().map(field).collect::<Result<_, _>>()?,
        })
    }
}

impl Expected {
    /// Everything that is not as it should be.
    pub fn failures(&self, found: Found<'_>) -> Vec<String> {
        let mut failures = Vec::new();
        if let Some(pattern) = &self.pattern
            && !pattern.is_match(found.text)
        {
            let text = shown(found.text);
            failures.push(format!(
                "{} does not match `{}`: {text}",
                found.name,
                pattern.as_str()
            ));
        }
        if found.documents.is_empty() && !self.fields.is_empty() {
            let text = shown(found.text);
            failures.push(format!(
                "{} has no fields, since it is no JSON: {text}",
                found.name
            ));
            return failures;
        }
        for field in &self.fields {
            failures.extend(field.failures(found.documents));
        }
        failures
    }
}

fn shown(text: &str) -> String {
    if text.trim().is_empty() {
        return "it is empty".to_owned();
    }
    format!("`{}`", excerpt(text))
}

impl ExpectedField {
    fn failures(&self, documents: &[Value]) -> Vec<String> {
        let name = self.path.join(".");
        let found = documents
            .iter()
            .find_map(|document| look_up(document, &self.path));
        let Some(value) = found else {
            let is_wanted = self.exists == Some(true)
                || self.equals.is_some()
                || self.kind.is_some()
                || self.pattern.is_some();
            let missing = || {
                format!(
                    "`{name}` is not there{}",
                    surroundings(documents, &self.path)
                )
            };
            return is_wanted.then(missing).into_iter().collect();
        };
        let mut failures = Vec::new();
        if self.exists == Some(false) {
            let value = json::brief(value);
            failures.push(format!("`{name}` should not be there, and is {value}"));
        }
        if let Some(kind) = self.kind
            && !is_of(value, kind)
        {
            let (is, value) = (type_of(value), json::brief(value));
            let kind = kind.word();
            failures.push(format!(
                "`{name}` should be of type {kind}, and is {is}: {value}"
            ));
        }
        if let Some(wanted) = &self.equals
            && !wanted.is(value)
        {
            let (wanted, value) = json::brief_pair(&wanted.value(), value);
            failures.push(format!("`{name}` should be {wanted}, and is {value}"));
        }
        failures.extend(
            self.pattern
                .iter()
                .filter_map(|p| mismatch(p, &name, value)),
        );
        failures
    }
}

fn mismatch(pattern: &Pattern, name: &str, value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            let is = type_of(value);
            let pattern = pattern.as_str();
            return Some(format!("`{name}` should match `{pattern}`, and is {is}"));
        }
    };
    (!pattern.is_match(&text)).then(|| {
        let value = json::brief(value);
        let pattern = pattern.as_str();
        format!("`{name}` should match `{pattern}`, and is {value}")
    })
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

/// How far a path leads in the first document, and what there is instead.
fn surroundings(documents: &[Value], path: &[String]) -> String {
    const NAMED: usize = 8;
    let Some(mut value) = documents.first() else {
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
        other => format!("is {}", json::brief(other)),
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

impl Wanted {
    fn fill(value: &TemplateValue, values: &Values) -> Result<Self, FillError> {
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
                let wanted = serde_json::from_str::<Value>(wanted.trim());
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
