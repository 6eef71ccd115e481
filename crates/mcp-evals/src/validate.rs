//! Validates a list of evals, and reports all problems at once.
//!
//! Its main type is [`ValidationReport`]. An eval with an error must not be run; one of an unknown type is
//! skipped, because it may come from a newer version of the proposal.

mod rules;
mod secrets;
mod tools;

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use crate::list::ListedEval;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The eval is invalid.
    Error,
    /// The eval can run, but its author should review it.
    Warning,
    /// The eval has an unknown type or key, so clients skip it.
    Skip,
}

/// The rule that a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingRule {
    /// A field is missing, or has a value of the wrong type.
    Shape,
    /// Several evals have the same id.
    DuplicateId,
    /// The id is empty.
    EmptyId,
    /// `expected.type` is not `gradingType`.
    TypeMismatch,
    /// A scenario is graded by exact match.
    ScenarioExactMatch,
    /// The eval can't fail.
    CannotFail,
    /// There are no messages to start from.
    NoMessages,
    /// A message or a rubric still contains a TODO note.
    Unfinished,
    /// `maxTurns` is not a whole number of at least 1.
    MaxTurns,
    /// A field has no effect here.
    NoEffect,
    /// The input, the grading, or a message is of an unknown type.
    UnknownType,
    /// An unknown key inside `expected` or `grading`, which may change what is tested.
    UnknownKey,
    /// A value looks like a secret.
    Secret,
    /// An execution eval calls a tool that may destroy something.
    DestructiveTool,
    /// An execution eval calls a tool without annotations, which may be destructive.
    UnannotatedTool,
    /// The server has no such tool.
    UnknownTool,
}

/// A problem of one eval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalFinding {
    /// The index of the eval in the list.
    pub index: usize,
    /// The eval's id, if it has one.
    pub id: Option<String>,
    /// The place in the eval, as a JSON pointer. Empty for the eval itself.
    pub path: String,
    /// Whether the eval is invalid, suspicious or skipped.
    pub severity: Severity,
    /// The rule that the eval breaks.
    pub rule: FindingRule,
    /// The message, which continues a sentence that starts with the place.
    pub text: String,
}

impl fmt::Display for EvalFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => write!(f, "eval `{id}`")?,
            None => write!(f, "eval number {}", self.index + 1)?,
        }
        if !self.path.is_empty() {
            write!(f, ", `{}`", self.path)?;
        }
        write!(f, ": {}", self.text)
    }
}

/// What a client does with an eval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EvalStatus {
    /// The client can run it.
    Valid,
    /// The client must not run it, and reports it.
    Invalid,
    /// The client skips it with a notice; this is not a failure.
    Skipped,
}

/// All findings in a list of evals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValidationReport {
    /// The findings, in the order of the evals.
    pub findings: Vec<EvalFinding>,
}

impl ValidationReport {
    /// What a client does with the eval at `index`.
    ///
    /// A skip takes precedence over an error, because the rules of an unknown type are unknown.
    pub fn status(&self, index: usize) -> EvalStatus {
        let has = |severity| self.of(index).any(|finding| finding.severity == severity);
        if has(Severity::Skip) {
            EvalStatus::Skipped
        } else if has(Severity::Error) {
            EvalStatus::Invalid
        } else {
            EvalStatus::Valid
        }
    }

    /// The findings about the eval at `index`.
    pub fn of(&self, index: usize) -> impl Iterator<Item = &EvalFinding> {
        self.findings
            .iter()
            .filter(move |finding| finding.index == index)
    }

    /// The findings of one severity.
    pub fn with_severity(&self, severity: Severity) -> impl Iterator<Item = &EvalFinding> {
        self.findings
            .iter()
            .filter(move |finding| finding.severity == severity)
    }

    /// Whether no eval is invalid.
    pub fn is_valid(&self) -> bool {
        self.with_severity(Severity::Error).next().is_none()
    }
}

impl fmt::Display for ValidationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.findings.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{finding}")?;
        }
        Ok(())
    }
}

/// Validates a list of evals.
pub fn validate(items: &[ListedEval]) -> ValidationReport {
    examine(items, None)
}

/// Validates a list of evals and the tools that they name.
///
/// `tools` are the objects from all pages of `tools/list`.
pub fn validate_with_tools(items: &[ListedEval], tools: &[Value]) -> ValidationReport {
    examine(items, Some(tools))
}

fn examine(items: &[ListedEval], tools: Option<&[Value]>) -> ValidationReport {
    let mut times: HashMap<&str, usize> = HashMap::new();
    for id in items.iter().filter_map(ListedEval::id) {
        *times.entry(id).or_default() += 1;
    }
    let tools = tools.map(tools::by_name);
    let mut findings = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let mut about = EvalFindings {
            index,
            id: item.id(),
            findings: &mut findings,
        };
        if let Some(count) = item.id().and_then(|id| times.get(id)).filter(|n| **n > 1) {
            let text = format!("{count} evals have this id");
            about.error("/id", FindingRule::DuplicateId, text);
        }
        rules::check(item, &mut about);
        if let Some(eval) = item.eval() {
            secrets::check(eval, &mut about);
            if let Some(tools) = &tools {
                tools::check(eval, tools, &mut about);
            }
        }
    }
    ValidationReport { findings }
}

/// Collects the findings about one eval.
struct EvalFindings<'a> {
    index: usize,
    id: Option<&'a str>,
    findings: &'a mut Vec<EvalFinding>,
}

impl EvalFindings<'_> {
    fn error(&mut self, path: &str, rule: FindingRule, text: impl Into<String>) {
        self.add(path, Severity::Error, rule, text);
    }

    fn warn(&mut self, path: &str, rule: FindingRule, text: impl Into<String>) {
        self.add(path, Severity::Warning, rule, text);
    }

    fn add(&mut self, path: &str, severity: Severity, rule: FindingRule, text: impl Into<String>) {
        self.findings.push(EvalFinding {
            index: self.index,
            id: self.id.map(str::to_owned),
            path: path.to_owned(),
            severity,
            rule,
            text: text.into(),
        });
    }
}
