//! A file of evals, as a server's author keeps it: YAML or JSON, read with its places.
//!
//! Its main type is [`EvalsFile`].

use std::path::Path;

use mcp_evals::{EvalFile, Finding, Listed, Report, Rule, Severity};

use crate::document::{self, Data, Node};
use crate::problem::{Code, Problem, Problems, SourceText, Span};
use crate::suite::files;

/// Evals, and where they stand.
#[derive(Debug)]
pub struct EvalsFile {
    /// The evals, and what should have been some.
    pub evals: Vec<Listed>,
    source: SourceText,
    root: Node,
}

impl EvalsFile {
    /// Reads a file. Without one there is an error among the problems.
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

    /// Reads a text.
    pub fn parse(source: SourceText, problems: &mut Problems) -> Option<Self> {
        let before = problems.errors();
        let document = document::parse(&source, problems)?;
        if let Some(span) = document.second {
            let problem = Problem::error(Code::Syntax, "the file holds more than one document");
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
                let message = "neither a list of evals nor a map with a list `evals`";
                let problem = Problem::error(Code::Type, message);
                problems.push(problem.at(&source, document.root.span));
                None
            }
        }
    }

    /// Adds what was found in the evals to the problems, each at its place.
    pub fn tell(&self, report: &Report, problems: &mut Problems) {
        for finding in &report.findings {
            let message = finding.to_string();
            let code = code_of(finding.rule);
            let problem = match finding.severity {
                Severity::Error => Problem::error(code, message),
                Severity::Warning => Problem::warning(code, message),
                Severity::Skip => {
                    Problem::warning(code, message).hint("clients of today leave it out")
                }
            };
            problems.push(problem.at(&self.source, self.place(finding)));
        }
    }

    /// The place that a finding means, or the nearest around it that is there.
    fn place(&self, finding: &Finding) -> Span {
        let list = self.root.get("evals").unwrap_or(&self.root);
        let Data::Sequence(items) = &list.data else {
            return list.span;
        };
        let Some(mut node) = items.get(finding.index) else {
            return list.span;
        };
        let mut span = node.span;
        for step in finding.path.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let next = match &node.data {
                Data::Mapping(entries) => entries
                    .iter()
                    .find(|entry| entry.key == step)
                    .map(|entry| (entry.key_span, &entry.value)),
                Data::Sequence(items) => {
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

fn code_of(rule: Rule) -> Code {
    match rule {
        Rule::EmptyId | Rule::NoMessages | Rule::Unfinished => Code::Missing,
        Rule::DuplicateId | Rule::TypeMismatch | Rule::ScenarioExactMatch | Rule::NoEffect => {
            Code::Conflict
        }
        Rule::CannotFail => Code::Vacuous,
        Rule::MaxTurns => Code::Value,
        Rule::UnknownType => Code::Skipped,
        Rule::Secret => Code::Secret,
        Rule::DestructiveTool | Rule::UnannotatedTool => Code::Destructive,
        Rule::UnknownTool => Code::Reference,
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
                "9:5 error: eval `a`, `/expected`: has no `content`, so every result would do",
                "8:19 warning: eval `a`, `/input/arguments/password`: `password` looks like a secret: use made-up data",
                "11:5 error: eval `b`, `/name`: is missing",
                "11:5 error: eval `b`, `/input`: is missing",
                "11:5 error: eval `b`, `/expected`: is missing",
            ]
        );
    }

    #[test]
    fn e36_a_file_is_a_list_or_a_map_with_one() {
        let shape = "1:1 error: neither a list of evals nor a map with a list `evals`";
        assert_eq!(told("evals: []"), [""; 0]);
        assert_eq!(told("[]"), [""; 0]);
        assert_eq!(told("{\"evals\": []}"), [""; 0]);
        assert_eq!(told("kind: Eval"), [shape]);
        assert_eq!(told("5"), [shape]);
        assert!(told("evals: [")[0].contains("not valid YAML"));
    }
}
