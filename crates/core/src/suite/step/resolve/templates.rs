//! Resolves the templates of a step, and checks their references.

use std::collections::BTreeMap;

use proctor_record::hint::nearest_hint;
use proctor_record::phase::Phase;
use proctor_record::problem::{Code, Problem, Span, WithSpan};

use super::{OneStep, RowNames, StepOwner};
use crate::decode::{LooseText, Table};
use crate::document::{Node, NodeValue};
use crate::pattern::Pattern;
use crate::suite::step::PatternTemplate;
use crate::suite::template::{Reference, Template, TemplateValue};

impl OneStep<'_> {
    pub(super) fn pattern(&self, written: Option<&WithSpan<String>>) -> Option<PatternTemplate> {
        let written = written?;
        let template = self.template(&written.value, written.span)?;
        // With a template in it, the pattern is known only in the trial.
        if let Some(literal) = template.as_literal()
            && let Err(error) = Pattern::compile(literal)
        {
            let message = format!("invalid regular expression `{literal}`: {error}");
            self.report(written.span, Problem::error(Code::Value, message));
            return None;
        }
        Some(PatternTemplate(template))
    }

    pub(super) fn templates(
        &self,
        table: &Table<WithSpan<LooseText>>,
    ) -> BTreeMap<String, Template> {
        table
            .iter()
            .filter_map(|(key, text)| {
                let template = self.template(&text.value.0, text.span)?;
                Some((key.value.clone(), template))
            })
            .collect()
    }

    pub(super) fn template(&self, text: &str, span: Span) -> Option<Template> {
        match Template::parse(text) {
            Ok(template) => {
                for reference in template.references() {
                    self.check_reference(reference, span);
                }
                Some(template)
            }
            Err(errors) => {
                for error in errors {
                    let problem = Problem::error(Code::Reference, error.message);
                    self.report(span, problem.maybe_hint(error.hint));
                }
                None
            }
        }
    }

    /// Parses a value whose strings are templates, and reports each mistake at its place.
    pub(super) fn value(&self, node: &Node) -> Option<TemplateValue> {
        match &node.data {
            NodeValue::String(text) => self.template(text, node.span).map(TemplateValue::String),
            NodeValue::Sequence(items) => items
                .iter()
                .map(|item| self.value(item))
                .collect::<Option<_>>()
                .map(TemplateValue::Array),
            NodeValue::Mapping(entries) => entries
                .iter()
                .map(|entry| Some((entry.key.clone(), self.value(&entry.value)?)))
                .collect::<Option<_>>()
                .map(TemplateValue::Object),
            _ => Some(TemplateValue::Plain(node.to_json())),
        }
    }

    fn check_reference(&self, reference: &Reference, span: Span) {
        match reference {
            Reference::AgentOutput
            | Reference::AgentPrompt
            | Reference::TrialDir
            | Reference::TrialId
            | Reference::RandomId
            | Reference::RandomPort
                if self.scope.owner == StepOwner::Run =>
            {
                let message =
                    "steps of a run have no agent and no trial, so this template has no value";
                self.report(span, Problem::error(Code::Reference, message));
            }
            Reference::AgentOutput if self.phase == Phase::Setup => {
                let message = "`{agent.output}` is not available before the agent runs";
                self.report(span, Problem::error(Code::Reference, message));
            }
            Reference::Env(name) if !self.scope.env.contains_key(name) => {
                let message = format!("the environment variable `{name}` is not set");
                self.report(span, Problem::warning(Code::UnsetVariable, message));
            }
            Reference::Step { step, .. } if !self.known.contains(step) => {
                let message = format!("no earlier step has the id or type `{step}`");
                let known = self.known.iter().map(String::as_str);
                self.report(
                    span,
                    Problem::error(Code::Reference, message).maybe_hint(nearest_hint(step, known)),
                );
            }
            Reference::Row(name) => self.check_row(name, span),
            _ => {}
        }
    }

    fn check_row(&self, name: &str, span: Span) {
        let problem = match self.scope.columns {
            RowNames::Unknown => return,
            RowNames::Known(names) if names.contains(name) => return,
            RowNames::Known(names) => {
                let message = format!("no row has a value `{name}`");
                let known = names.iter().map(String::as_str);
                Problem::error(Code::Reference, message).maybe_hint(nearest_hint(name, known))
            }
            RowNames::NoRows => {
                let message = format!("`{{row.{name}}}` needs rows, and the task has none");
                let problem = Problem::error(Code::Reference, message);
                problem.hint("add `rows` or `rowsFrom` to `spec`")
            }
        };
        self.report(span, problem);
    }
}
