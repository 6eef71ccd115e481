//! The eval file of a server's author, in YAML or JSON, with the place of each value.
//!
//! Its main type is [`EvalsFile`].

use std::path::Path;

use mcp_evals::{
    EVAL_KEYS, EvalFile, EvalFinding, FindingRule, GradingType, Level, ListedEval, Severity,
    ValidationReport, expected_keys, input_keys,
};
use proctor_record::hint::nearest_hint;
use proctor_record::problem::{Code, Problem, Problems, SourceText, Span};

mod arguments;

use crate::document::{self, Node, NodeValue};
use crate::suite::files;

/// The evals of a file and their places.
#[derive(Debug)]
pub struct EvalsFile {
    /// The evals, including malformed ones.
    pub evals: Vec<ListedEval>,
    source: SourceText,
    root: Node,
}

impl EvalsFile {
    /// Loads a file. If it returns `None`, it has reported an error.
    pub fn load(path: &Path, problems: &mut Problems) -> Option<Self> {
        let source = match files::read(path) {
            Ok(source) => source,
            Err(problem) => {
                problems.push(problem);
                return None;
            }
        };
        Self::parse(source, problems)
    }

    pub fn parse(source: SourceText, problems: &mut Problems) -> Option<Self> {
        let before = problems.errors();
        let document = document::parse(&source, problems)?;
        if let Some(span) = document.second {
            let problem = Problem::error(Code::Syntax, "the file contains more than one document");
            problems.push(problem.at(&source, span));
        }
        match EvalFile::from_value(document.root.to_json()) {
            Ok(file) if problems.errors() == before => Some(Self {
                evals: file.evals,
                source,
                root: document.root,
            }),
            Ok(_) => None,
            Err(_) => {
                let message = "expected a list of evals, or a map with a list `evals`";
                let problem = Problem::error(Code::Type, message);
                problems.push(problem.at(&source, document.root.span));
                None
            }
        }
    }

    /// Adds the findings to the problems, each at its place.
    pub fn tell(&self, report: &ValidationReport, problems: &mut Problems) {
        for finding in &report.findings {
            let message = finding.to_string();
            let code = code_of(finding.rule);
            let problem = match finding.severity {
                Severity::Error => Problem::error(code, message),
                Severity::Warning => Problem::warning(code, message),
                Severity::Skip => Problem::warning(code, message).hint("current clients skip it"),
            };
            problems.push(problem.at(&self.source, self.place(finding)));
        }
    }

    /// Adds the findings for the author of the file. An eval that clients would skip is an error
    /// here, and unknown keys come with a suggestion.
    pub fn tell_author(&self, report: &ValidationReport, problems: &mut Problems) {
        let mut told = ValidationReport::default();
        for finding in &report.findings {
            match finding.severity {
                Severity::Skip => self.refuse(finding, problems),
                _ => told.findings.push(finding.clone()),
            }
        }
        self.tell(&told, problems);
        for (index, _) in self.evals.iter().enumerate() {
            self.warn_of_unknown_keys(index, problems);
            self.refuse_empty_messages(index, problems);
        }
        if self.evals.is_empty() {
            let span = self.root.get("evals").unwrap_or(&self.root).span;
            let problem = Problem::error(Code::Vacuous, "the list of evals is empty");
            problems.push(problem.at(&self.source, span));
        }
    }

    /// Adds the unknown keys that could change what is tested.
    pub fn tell_unknown_keys(&self, report: &ValidationReport, problems: &mut Problems) {
        let unknown = |finding: &&EvalFinding| finding.rule == FindingRule::UnknownKey;
        for finding in report.findings.iter().filter(unknown) {
            self.refuse(finding, problems);
        }
    }

    /// Adds an error for an eval that clients would skip.
    fn refuse(&self, finding: &EvalFinding, problems: &mut Problems) {
        let text = |path: &str| {
            self.value(finding.index)?
                .pointer(path)?
                .as_str()
                .map(str::to_owned)
        };
        let hint = match (finding.rule, finding.path.as_str()) {
            (FindingRule::UnknownKey, path) => {
                let key = path.rsplit('/').next().unwrap_or_default();
                let keys = text("/expected/type").map_or(&[][..], |kind| expected_keys(&kind));
                let keys = if path.starts_with("/expected/") {
                    keys
                } else {
                    &[]
                };
                nearest_hint(key, keys.iter().copied())
            }
            (_, "/gradingType") => text("/gradingType").and_then(|word| {
                let known = [GradingType::ExactMatch, GradingType::LlmJudge];
                nearest_hint(&word, known.iter().map(GradingType::as_str))
            }),
            (_, "/input/type" | "") => text("/input/type")
                .and_then(|word| nearest_hint(&word, Level::ALL.map(Level::as_str))),
            _ => None,
        };
        let code = match finding.rule {
            FindingRule::UnknownType => Code::Value,
            rule => code_of(rule),
        };
        let problem = Problem::error(code, finding.to_string()).maybe_hint(hint);
        problems.push(problem.at(&self.source, self.place(finding)));
    }

    fn value(&self, index: usize) -> Option<serde_json::Value> {
        self.evals.get(index).map(ListedEval::to_value)
    }

    /// Warns of unknown keys without effect.
    fn warn_of_unknown_keys(&self, index: usize, problems: &mut Problems) {
        let Some(eval) = self.node(index) else { return };
        let input = eval.get("input");
        let kind = input.and_then(|input| input.get("type")?.as_str());
        let parts = [
            (Some(eval), EVAL_KEYS),
            (input, kind.map_or(&[][..], input_keys)),
        ];
        for (part, known) in parts {
            let Some(NodeValue::Mapping(entries)) = part.map(|part| &part.data) else {
                continue;
            };
            let is_known = |key: &str| known.is_empty() || known.contains(&key) || key == "grading";
            for entry in entries.iter().filter(|entry| !is_known(&entry.key)) {
                let message = format!("unknown key `{}`", entry.key);
                let problem = Problem::warning(Code::UnknownKey, message)
                    .maybe_hint(nearest_hint(&entry.key, known.iter().copied()));
                problems.push(problem.at(&self.source, entry.key_span));
            }
        }
    }

    /// Refuses messages without content.
    fn refuse_empty_messages(&self, index: usize, problems: &mut Problems) {
        let messages = self
            .node(index)
            .and_then(|eval| eval.get("input")?.get("messages"));
        let Some(NodeValue::Sequence(messages)) = messages.map(|messages| &messages.data) else {
            return;
        };
        for content in messages.iter().filter_map(|message| message.get("content")) {
            if matches!(&content.data, NodeValue::Sequence(blocks) if blocks.is_empty()) {
                let problem = Problem::error(
                    Code::Missing,
                    "the list is empty, so the message has no content",
                );
                problems.push(problem.at(&self.source, content.span));
            }
        }
    }

    fn node(&self, index: usize) -> Option<&Node> {
        let list = self.root.get("evals").unwrap_or(&self.root);
        match &list.data {
            NodeValue::Sequence(items) => items.get(index),
            _ => None,
        }
    }

    /// The place of a finding, or the nearest enclosing place that exists.
    fn place(&self, finding: &EvalFinding) -> Span {
        self.span_of(finding.index, &finding.path)
    }

    fn span_of(&self, index: usize, path: &str) -> Span {
        let Some(mut node) = self.node(index) else {
            return self.root.span;
        };
        let mut span = node.span;
        for step in path.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let next = match &node.data {
                NodeValue::Mapping(entries) => entries
                    .iter()
                    .find(|entry| entry.key == step)
                    .map(|entry| (entry.key_span, &entry.value)),
                NodeValue::Sequence(items) => {
                    let item = step.parse::<usize>().ok().and_then(|at| items.get(at));
                    item.map(|item| (item.span, item))
                }
                _ => None,
            };
            let Some((at, below)) = next else { break };
            (span, node) = (at, below);
        }
        span
    }
}

fn code_of(rule: FindingRule) -> Code {
    match rule {
        FindingRule::EmptyId | FindingRule::NoMessages | FindingRule::Unfinished => Code::Missing,
        FindingRule::DuplicateId
        | FindingRule::TypeMismatch
        | FindingRule::ScenarioExactMatch
        | FindingRule::NoEffect => Code::Conflict,
        FindingRule::CannotFail => Code::Vacuous,
        FindingRule::MaxTurns => Code::Value,
        FindingRule::UnknownType => Code::Skipped,
        FindingRule::UnknownKey => Code::UnknownKey,
        FindingRule::Secret => Code::Secret,
        FindingRule::DestructiveTool | FindingRule::UnannotatedTool => Code::Destructive,
        FindingRule::UnknownTool => Code::Reference,
        // A field is missing, or of another type; and what later versions may find.
        _ => Code::Type,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let mut problems = Problems::default();
        let source = SourceText::new("evals.yaml", text.to_owned());
        if let Some(file) = EvalsFile::parse(source, &mut problems) {
            let report = mcp_evals::validate(&file.evals);
            file.tell(&report, &mut problems);
        }
        let shown = problems.iter().map(|problem| {
            let place = problem
                .place
                .as_ref()
                .map_or((0, 0), |p| (p.line, p.column));
            format!("{}:{} {problem}", place.0, place.1)
        });
        shown.collect()
    }

    #[test]
    fn e36_findings_stand_where_the_file_has_them() {
        let text = "\
evals:
  - id: a
    name: A
    gradingType: exact-match
    input:
      type: execution
      toolName: t
      arguments: {password: 'hunter2!'}
    expected:
      type: exact-match
  - id: b
    gradingType: exact-match
";
        assert_eq!(
            told(text),
            [
                "9:5 error: eval `a`, `/expected`: has no `content`, so any result would pass",
                "8:19 warning: eval `a`, `/input/arguments/password`: `password` looks like a secret: use made-up data",
                "11:5 error: eval `b`, `/name`: is missing",
                "11:5 error: eval `b`, `/input`: is missing",
                "11:5 error: eval `b`, `/expected`: is missing",
            ]
        );
    }

    #[test]
    fn e36_a_file_is_a_list_or_a_map_with_one() {
        let shape = "1:1 error: expected a list of evals, or a map with a list `evals`";
        assert_eq!(told("evals: []"), [""; 0]);
        assert_eq!(told("[]"), [""; 0]);
        assert_eq!(told("{\"evals\": []}"), [""; 0]);
        assert_eq!(told("kind: Eval"), [shape]);
        assert_eq!(told("5"), [shape]);
        assert!(told("evals: [")[0].contains("invalid YAML"));
    }
}
