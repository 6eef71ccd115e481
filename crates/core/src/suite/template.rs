//! Templates in step strings: `{agent.output}`, `{steps.X.Y}`, `{trial.dir}`, `{random.id}`,
//! `{env.NAME}`, `{row.NAME}`.
//!
//! Its main type is [`Template`]. Only these six sources are templates; all other braces are
//! text, since public scripts and patterns are full of them.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use proctor_record::hint::nearest_hint;

/// A text with references in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Template {
    /// The parts, in order.
    pub parts: Vec<TemplatePart>,
}

/// A piece of a [`Template`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum TemplatePart {
    Text(String),
    /// A reference, filled in during the trial.
    Reference(Reference),
}

/// A reference in a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reference {
    /// The agent's final answer.
    AgentOutput,
    /// The prompt of the agent.
    AgentPrompt,
    /// The folder of the trial.
    TrialDir,
    /// The name of the trial's record.
    TrialId,
    /// Eight letters and digits, the same throughout a trial.
    RandomId,
    /// A free port, the same throughout a trial.
    RandomPort,
    Env(String),
    /// An output of an earlier step.
    Step {
        /// The step's type or id.
        step: String,
        /// The name of the output.
        output: String,
    },
    /// A value of the row, by its name. A load replaces it with the value.
    Row(String),
    /// The value of a row, as text.
    RowValue(String),
}

/// Why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    pub message: String,
    pub hint: Option<String>,
}

impl Template {
    /// Parses a text, or returns all mistakes in it.
    pub fn parse(text: &str) -> Result<Self, Vec<TemplateError>> {
        let mut parts = Vec::new();
        let mut errors = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            literal.push_str(&rest[..at]);
            let inside = &rest[at + 1..];
            let Some((source, name, after)) = split_reference(inside) else {
                literal.push('{');
                rest = inside;
                continue;
            };
            match reference(source, name) {
                Ok(reference) => {
                    if !literal.is_empty() {
                        parts.push(TemplatePart::Text(std::mem::take(&mut literal)));
                    }
                    parts.push(TemplatePart::Reference(reference));
                }
                Err(error) => errors.push(error),
            }
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(TemplatePart::Text(literal));
        }
        if errors.is_empty() {
            Ok(Self { parts })
        } else {
            Err(errors)
        }
    }

    /// A text without templates.
    pub fn literal(text: impl Into<String>) -> Self {
        Self {
            parts: vec![TemplatePart::Text(text.into())],
        }
    }

    /// The references, in order.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Text(_) => None,
            TemplatePart::Reference(reference) => Some(reference),
        })
    }

    /// The text, if it contains no references.
    pub fn as_literal(&self) -> Option<&str> {
        match &self.parts[..] {
            [] => Some(""),
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }
}

impl Reference {
    /// Whether its value differs by trial and is known before the trial starts.
    pub fn is_of_trial(&self) -> bool {
        matches!(
            self,
            Self::TrialDir | Self::TrialId | Self::RandomId | Self::RandomPort
        )
    }
}

/// As it was written.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            TemplatePart::Text(text) => f.write_str(text),
            TemplatePart::Reference(reference) => reference.fmt(f),
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AgentOutput => f.write_str("{agent.output}"),
            Self::AgentPrompt => f.write_str("{agent.prompt}"),
            Self::TrialDir => f.write_str("{trial.dir}"),
            Self::TrialId => f.write_str("{trial.id}"),
            Self::RandomId => f.write_str("{random.id}"),
            Self::RandomPort => f.write_str("{random.port}"),
            Self::Env(name) => write!(f, "{{env.{name}}}"),
            Self::Step { step, output } => write!(f, "{{steps.{step}.{output}}}"),
            Self::Row(name) => write!(f, "{{row.{name}}}"),
            Self::RowValue(value) => f.write_str(value),
        }
    }
}

/// A JSON value whose strings are templates. Keys are not.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum TemplateValue {
    /// A value without strings in it.
    Plain(Value),
    String(Template),
    Array(Vec<TemplateValue>),
    Object(Vec<(String, TemplateValue)>),
}

impl TemplateValue {
    /// Parses every string of a value, or returns all mistakes.
    pub fn parse(value: &Value) -> Result<Self, Vec<TemplateError>> {
        let mut errors = Vec::new();
        let parsed = Self::collect(value, &mut errors);
        if errors.is_empty() {
            Ok(parsed)
        } else {
            Err(errors)
        }
    }

    fn collect(value: &Value, errors: &mut Vec<TemplateError>) -> Self {
        match value {
            Value::String(text) => match Template::parse(text) {
                Ok(template) => Self::String(template),
                Err(found) => {
                    errors.extend(found);
                    Self::Plain(Value::Null)
                }
            },
            Value::Array(items) => {
                Self::Array(items.iter().map(|v| Self::collect(v, errors)).collect())
            }
            Value::Object(map) => Self::Object(
                map.iter()
                    .map(|(key, v)| (key.clone(), Self::collect(v, errors)))
                    .collect(),
            ),
            plain => Self::Plain(plain.clone()),
        }
    }

    /// The references, in order.
    pub fn references(&self) -> Vec<&Reference> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::String(template) => template.references().collect(),
            Self::Array(items) => items.iter().flat_map(Self::references).collect(),
            Self::Object(entries) => entries.iter().flat_map(|(_, v)| v.references()).collect(),
        }
    }

    /// The value with every template replaced by the result of `expand`.
    pub fn fill<E>(
        &self,
        expand: &mut impl FnMut(&Template) -> Result<String, E>,
    ) -> Result<Value, E> {
        Ok(match self {
            Self::Plain(value) => value.clone(),
            Self::String(template) => Value::String(expand(template)?),
            Self::Array(items) => Value::Array(
                items
                    .iter()
                    .map(|v| v.fill(expand))
                    .collect::<Result<_, _>>()?,
            ),
            Self::Object(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, v)| Ok((key.clone(), v.fill(expand)?)))
                    .collect::<Result<Map<_, _>, _>>()?,
            ),
        })
    }
}

/// Splits `agent.output} rest` into source, name and rest; `None` if these braces are text.
fn split_reference(inside: &str) -> Option<(&str, &str, &str)> {
    let (reference, after) = inside.split_once('}')?;
    let (source, name) = reference.split_once('.')?;
    let known = ["agent", "steps", "trial", "random", "env", "row"].contains(&source);
    let legal = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    (known && name.chars().all(legal)).then_some((source, name, after))
}

fn reference(source: &str, name: &str) -> Result<Reference, TemplateError> {
    let unknown = |known: &[&str]| TemplateError {
        message: format!("unknown template `{{{source}.{name}}}`"),
        hint: nearest_hint(name, known.iter().copied()),
    };
    match (source, name) {
        ("agent", "output") => Ok(Reference::AgentOutput),
        ("agent", "prompt") => Ok(Reference::AgentPrompt),
        ("agent", _) => Err(unknown(&["output", "prompt"])),
        ("trial", "dir") => Ok(Reference::TrialDir),
        ("trial", "id") => Ok(Reference::TrialId),
        ("trial", _) => Err(unknown(&["dir", "id"])),
        ("random", "id") => Ok(Reference::RandomId),
        ("random", "port") => Ok(Reference::RandomPort),
        ("random", _) => Err(unknown(&["id", "port"])),
        ("env", name) if !name.is_empty() => Ok(Reference::Env(name.to_owned())),
        ("row", name) if !name.is_empty() => Ok(Reference::Row(name.to_owned())),
        ("steps", name) => match name.rsplit_once('.') {
            Some((step, output)) if !step.is_empty() && !output.is_empty() => Ok(Reference::Step {
                step: step.to_owned(),
                output: output.to_owned(),
            }),
            _ => Err(TemplateError {
                message: format!("`{{steps.{name}}}` names no output"),
                hint: Some("write `{steps.STEP.OUTPUT}`".to_owned()),
            }),
        },
        _ => Err(unknown(&[])),
    }
}

#[cfg(test)]
mod tests;
