//! The texts of an MCP config: variables, which are expanded at load, and templates, which a trial fills in.

use std::collections::BTreeMap;

use proctor_record::problem::{Code, Problem, Span, WithSpan};

use crate::decode::{Context, LooseText, Table};
use crate::suite::Isolation;
use crate::suite::template::{Reference, Template};
use crate::suite::variables::{Environment, expand};

/// Where the texts of an MCP config are resolved.
#[derive(Clone, Copy)]
pub(in crate::suite) struct TextScope<'a> {
    pub(in crate::suite) env: &'a Environment,
    pub(in crate::suite) isolation: Isolation,
    /// Whether trials fill in templates.
    pub(in crate::suite) has_templates: bool,
    pub(in crate::suite) cx: &'a Context<'a>,
}

impl TextScope<'_> {
    /// The scope of a text that is used before there is a trial.
    pub(in crate::suite) fn without_templates(mut self) -> Self {
        self.has_templates = false;
        self
    }

    pub(in crate::suite) fn expand_table(
        &self,
        table: &Table<WithSpan<LooseText>>,
    ) -> BTreeMap<String, String> {
        let all = table.iter();
        all.map(|(key, value)| (key.value.clone(), self.expand(&value.value.0, value.span)))
            .collect()
    }

    /// Expands variables. Templates stay as written until a trial fills them in.
    pub(in crate::suite) fn expand(&self, text: &str, span: Span) -> String {
        self.check_templates(text, span);
        let expanded = expand(text, self.env);
        for name in expanded.unset {
            let message = format!("the environment variable `{name}` is not set");
            self.cx.report(
                span,
                Problem::warning(Code::UnsetVariable, message)
                    .hint(format!("set it, or give a default: `${{{name}:-default}}`")),
            );
        }
        expanded.text
    }

    /// Refuses templates that have no value here. One that is left in place would end up in the
    /// name of a file.
    pub(super) fn check_templates(&self, text: &str, span: Span) {
        let report = |problem: Problem| self.cx.report(span, problem);
        let template = match Template::parse(text) {
            Ok(template) => template,
            Err(errors) => {
                for error in errors {
                    let problem = Problem::error(Code::Reference, error.message);
                    report(problem.maybe_hint(error.hint));
                }
                return;
            }
        };
        for reference in template.references() {
            let is_shared = self.isolation == Isolation::Run;
            match reference {
                of_trial if of_trial.is_of_trial() && self.has_templates && is_shared => {
                    let message = format!(
                        "`{reference}` differs by trial, but with `isolation: run` all trials share the server"
                    );
                    let problem = Problem::error(Code::Conflict, message);
                    report(problem.hint("remove `isolation: run`, or the template"));
                }
                of_trial if of_trial.is_of_trial() && self.has_templates => {}
                Reference::Env(name) => {
                    let problem = Problem::error(Code::Reference, unusable(reference));
                    report(problem.hint(format!("write `${{{name}}}`")));
                }
                _ => report(Problem::error(Code::Reference, unusable(reference))),
            }
        }
        let defaults = text.split("${").skip(1).filter_map(|v| v.split('}').next());
        if defaults.clone().any(|variable| variable.contains(":-{")) {
            let message = "the default of a variable can't contain a template";
            report(Problem::error(Code::Value, message));
        }
    }
}

fn unusable(reference: &Reference) -> String {
    format!(
        "`{reference}` is not expanded: MCP configs support only `{{trial.dir}}`, `{{trial.id}}`, \
         `{{random.id}}` and `{{random.port}}`"
    )
}
