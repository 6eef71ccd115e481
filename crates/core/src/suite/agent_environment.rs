//! The environment variables that an agent file sets for its agent.
//!
//! Its main type is [`OwnEnvironment`]. Its templates are `{env.NAME}` and the values of a trial.

use std::collections::{BTreeMap, BTreeSet};

use proctor_record::problem::{Code, Problem, WithSpan};
use serde::Serialize;

use super::step::values::FillError;
use super::template::{Reference, Template, TemplatePart};
use super::trial_values::TrialValues;
use super::variables::Environment;
use crate::decode::{Context, LooseText, Table};

/// The variables of an agent file. Their templates are filled in when the agent starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct OwnEnvironment(BTreeMap<String, Template>);

impl OwnEnvironment {
    /// Parses the variables, and reports their problems.
    pub(super) fn resolve(file: &Table<WithSpan<LooseText>>, cx: &Context<'_>) -> Self {
        let mut all = BTreeMap::new();
        for (name, text) in file.iter() {
            if name.value.is_empty() || name.value.contains(['=', '\0']) {
                let message = format!("invalid variable name `{}`", name.value);
                cx.report(name.span, Problem::error(Code::Value, message));
            }
            if text.value.0.contains('\0') {
                let message = format!("the value of `{}` contains a NUL character", name.value);
                cx.report(text.span, Problem::error(Code::Value, message));
            }
            if let Some(variable) = shell_variable(&text.value.0) {
                let message = format!("`${{{variable}}}` is not expanded here");
                let hint = format!("write `{{env.{variable}}}`");
                cx.report(text.span, Problem::warning(Code::Value, message).hint(hint));
            }
            match Template::parse(&text.value.0) {
                Ok(template) => {
                    let is_known =
                        |one: &Reference| matches!(one, Reference::Env(_)) || one.is_of_trial();
                    if !template.references().all(is_known) {
                        let message = "only `{env.NAME}`, `{trial.dir}`, `{trial.id}`, `{random.id}` and \
                             `{random.port}` work in the `env` of an agent";
                        cx.report(text.span, Problem::error(Code::Reference, message));
                    }
                    all.insert(name.value.clone(), template);
                }
                Err(errors) => {
                    for error in errors {
                        let problem = Problem::error(Code::Reference, error.message);
                        cx.report(text.span, problem.maybe_hint(error.hint));
                    }
                }
            }
        }
        Self(all)
    }

    /// The required variables of the user's environment that are not set, each once.
    pub fn unset<'a>(&'a self, env: &Environment) -> BTreeSet<&'a str> {
        let references = self.0.values().flat_map(Template::references);
        references
            .filter_map(|reference| match reference {
                Reference::Env(name) if !env.contains_key(name) => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }

    /// The variables in a trial.
    pub(super) fn in_trial(&self, trial: &TrialValues) -> Result<Self, FillError> {
        let part = |part: &TemplatePart| match part {
            TemplatePart::Reference(reference) if reference.is_of_trial() => {
                Ok(TemplatePart::Text(trial.fill(&reference.to_string())?))
            }
            other => Ok(other.clone()),
        };
        let all = self.0.iter().map(|(name, template)| {
            let parts = template.parts.iter().map(part).collect::<Result<_, _>>()?;
            Ok((name.clone(), Template { parts }))
        });
        Ok(Self(all.collect::<Result<_, _>>()?))
    }

    /// The variables with their values. An unset variable is empty. The values of a trial stay as written.
    pub fn filled(&self, env: &Environment) -> Environment {
        let value = |template: &Template| {
            let mut value = String::new();
            for part in &template.parts {
                match part {
                    TemplatePart::Text(text) => value.push_str(text),
                    TemplatePart::Reference(Reference::Env(name)) => {
                        value.push_str(env.get(name).map_or("", String::as_str));
                    }
                    // The values of a trial; others were reported when the file was loaded.
                    TemplatePart::Reference(other) => value.push_str(&other.to_string()),
                }
            }
            value
        };
        let all = self.0.iter();
        all.map(|(name, template)| (name.clone(), value(template)))
            .collect()
    }
}

/// The name in `${NAME}`: MCP configs expand it, agent files don't.
fn shell_variable(text: &str) -> Option<&str> {
    let (_, inside) = text.split_once("${")?;
    let (name, _) = inside.split_once('}')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_plain)).then_some(name)
}
