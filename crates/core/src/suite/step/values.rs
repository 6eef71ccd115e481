//! The values of templates in one trial.
//!
//! Its main type is [`TemplateValues`]. It only holds values; the runner of the trial sets them.

use std::collections::BTreeMap;
use std::sync::Arc;

use proctor_record::hint::nearest_hint;
use serde_json::Value;

use super::PatternTemplate;
use crate::pattern::{Pattern, PatternError};
use crate::suite::template::{Reference, Template, TemplatePart, TemplateValue};
use crate::suite::trial_values::{TRIAL_DIR, TrialValues};

/// The values of templates in one trial, as far as they are known.
#[derive(Debug, Clone, Default)]
pub struct TemplateValues {
    /// The prompt, once it is known: it may contain outputs of setup steps.
    pub agent_prompt: Option<String>,
    /// The agent's final answer, if there is one.
    pub agent_output: Option<String>,
    /// The values that are known before the trial starts.
    pub trial: TrialValues,
    /// The environment of steps, without API keys.
    pub env: Arc<BTreeMap<String, String>>,
    /// The outputs of steps, by id and by type. Both names share one value, since outputs can be large.
    outputs: BTreeMap<String, Arc<BTreeMap<String, String>>>,
}

/// Why a template could not be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// The agent has not answered.
    #[error("`{{agent.output}}` is not available: the agent gave no answer")]
    NoAnswer,
    /// The prompt has not been filled in.
    #[error(
        "`{{agent.prompt}}` is not available before setup ends: the prompt uses outputs of setup steps"
    )]
    NoPrompt,
    /// No port was free.
    #[error("`{{random.port}}` is not available: no port is free")]
    NoPort,
    /// An environment variable that steps do not have.
    #[error(
        "the environment variable `{0}` is not set, or it is a model's API key, which steps do not get"
    )]
    NoVariable(String),
    /// A step that has not run.
    #[error("`{{steps.{step}.{output}}}` is not available: no step `{step}` has run")]
    NoStep {
        /// The step's type or id.
        step: String,
        /// The name of the output.
        output: String,
    },
    /// An output that a step did not give.
    #[error("the step `{step}` has no output `{output}`{}", known_part(.known, .hint.as_deref()))]
    NoOutput {
        /// The step's type or id.
        step: String,
        /// The name of the output.
        output: String,
        known: Vec<String>,
        /// A suggestion for the user.
        hint: Option<String>,
    },
    /// A value of a row in a case without one.
    #[error("`{{row.{0}}}` is not available: the task has no such value")]
    NoRow(String),
    /// A pattern that matches every string after its templates are filled in.
    #[error("the pattern `{0}` matches every string after template expansion")]
    EveryText(String),
    /// A pattern that is invalid after its templates are filled in.
    #[error("invalid regular expression `{pattern}`: {source}")]
    Pattern {
        /// The pattern, filled in.
        pattern: String,
        source: PatternError,
    },
}

fn known_part(known: &[String], hint: Option<&str>) -> String {
    let list = match known {
        [] => "; it has no outputs".to_owned(),
        known => format!("; its outputs are `{}`", known.join("`, `")),
    };
    match hint {
        Some(hint) => format!("{list}; {hint}"),
        None => list,
    }
}

impl TemplateValues {
    /// Adds the outputs of a step under its id and its type. The latest step of a name counts.
    pub fn add_outputs(&mut self, id: &str, kind: &str, outputs: BTreeMap<String, String>) {
        let outputs = Arc::new(outputs);
        self.outputs.insert(kind.to_owned(), outputs.clone());
        self.outputs.insert(id.to_owned(), outputs);
    }

    /// The text of a template.
    pub fn fill(&self, template: &Template) -> Result<String, FillError> {
        self.fill_with(template, &|value| value)
    }

    /// A value with all templates in it filled in.
    pub fn fill_value(&self, value: &TemplateValue) -> Result<Value, FillError> {
        value.fill(&mut |template| self.fill(template))
    }

    /// A pattern with the values of its templates as literal text.
    pub fn fill_pattern(&self, pattern: &PatternTemplate) -> Result<Pattern, FillError> {
        let pattern = self.fill_with(&pattern.0, &|value| Pattern::escape(&value))?;
        match Pattern::compile(&pattern) {
            Ok(compiled) if compiled.matches_every_text() => Err(FillError::EveryText(pattern)),
            Ok(compiled) => Ok(compiled),
            Err(source) => Err(FillError::Pattern { pattern, source }),
        }
    }

    fn fill_with(
        &self,
        template: &Template,
        write: &dyn Fn(String) -> String,
    ) -> Result<String, FillError> {
        let mut out = String::new();
        for part in &template.parts {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Reference(reference) => out.push_str(&write(self.value(reference)?)),
            }
        }
        Ok(out)
    }

    /// The variables of a program: the environment, and the one that names the trial's folder.
    pub fn variables(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::clone(&self.env);
        all.extend(
            self.trial_dir()
                .map(|dir| (TRIAL_DIR.to_owned(), dir.clone())),
        );
        all
    }

    fn trial_dir(&self) -> Option<&String> {
        Some(&self.trial.dir).filter(|dir| !dir.is_empty())
    }

    fn value(&self, reference: &Reference) -> Result<String, FillError> {
        match reference {
            Reference::TrialDir => Ok(self.trial.dir.clone()),
            Reference::TrialId => Ok(self.trial.id.clone()),
            Reference::RandomId => Ok(self.trial.random_id.clone()),
            Reference::RandomPort => self.trial.port(),
            Reference::AgentOutput => self.agent_output.clone().ok_or(FillError::NoAnswer),
            Reference::AgentPrompt => self.agent_prompt.clone().ok_or(FillError::NoPrompt),
            Reference::Env(name) => {
                let own = self.trial_dir().filter(|_| name == TRIAL_DIR);
                let value = own.or_else(|| self.env.get(name)).cloned();
                value.ok_or_else(|| FillError::NoVariable(name.clone()))
            }
            Reference::Step { step, output } => self.output(step, output),
            Reference::Row(name) => Err(FillError::NoRow(name.clone())),
            Reference::RowValue(value) => Ok(value.clone()),
        }
    }

    fn output(&self, step: &str, output: &str) -> Result<String, FillError> {
        let Some(outputs) = self.outputs.get(step) else {
            return Err(FillError::NoStep {
                step: step.to_owned(),
                output: output.to_owned(),
            });
        };
        outputs
            .get(output)
            .cloned()
            .ok_or_else(|| FillError::NoOutput {
                step: step.to_owned(),
                output: output.to_owned(),
                known: outputs.keys().cloned().collect(),
                hint: nearest_hint(output, outputs.keys().map(String::as_str)),
            })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values() -> TemplateValues {
        let mut values = TemplateValues {
            agent_prompt: Some("count".to_owned()),
            agent_output: Some("a+b".to_owned()),
            trial: TrialValues {
                dir: "/t/work".to_owned(),
                id: "one-1".to_owned(),
                random_id: "k3x9q0ab".to_owned(),
                random_port: crate::suite::RandomPort::new(|| Some(4711)),
            },
            env: BTreeMap::from([("HOME".to_owned(), "/home/u".to_owned())]).into(),
            ..TemplateValues::default()
        };
        let outputs = |text: &str| [("stdout".to_owned(), text.to_owned())].into();
        values.add_outputs("first", "script", outputs("1"));
        values.add_outputs("second", "script", outputs("2"));
        values
    }

    fn template(text: &str) -> Template {
        Template::parse(text).unwrap()
    }

    #[test]
    fn templates_are_filled_in() {
        let check = |text: &str, expected: &str| {
            assert_eq!(values().fill(&template(text)).unwrap(), expected, "{text}");
        };
        check("", "");
        check("{ print $1 }", "{ print $1 }");
        check("{agent.prompt}: {agent.output}", "count: a+b");
        check("x-{random.id}:{random.port}", "x-k3x9q0ab:4711");
        check("{trial.dir}/{trial.id}", "/t/work/one-1");
        check("{env.HOME}/notes", "/home/u/notes");
        check("{steps.first.stdout}{steps.second.stdout}", "12");
        // Of one type, the latest counts.
        check("{steps.script.stdout}", "2");
    }

    #[test]
    fn missing_values_are_reported() {
        let check = |text: &str, expected: &str| {
            let empty = TemplateValues {
                agent_output: None,
                trial: TrialValues::default(),
                ..values()
            };
            let error = empty.fill(&template(text)).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check(
            "{agent.output}",
            "`{agent.output}` is not available: the agent gave no answer",
        );
        check(
            "{random.port}",
            "`{random.port}` is not available: no port is free",
        );
        check(
            "{env.TOKEN}",
            "the environment variable `TOKEN` is not set, or it is a model's API key, which steps do not get",
        );
        check(
            "{steps.third.x}",
            "`{steps.third.x}` is not available: no step `third` has run",
        );
        check(
            "{steps.first.stdou}",
            "the step `first` has no output `stdou`; its outputs are `stdout`; did you mean `stdout`?",
        );
    }

    #[test]
    fn values_and_patterns_are_filled_in() {
        let value = TemplateValue::parse(&json!({"a": ["{agent.output}", 1]})).unwrap();
        let filled = values().fill_value(&value).unwrap();
        assert_eq!(filled.to_string(), r#"{"a":["a+b",1]}"#);

        let pattern = PatternTemplate(template("^{agent.output}.?$"));
        let pattern = values().fill_pattern(&pattern).unwrap();
        assert!(pattern.is_match("a+b!"));
        assert!(!pattern.is_match("aab"));

        let empty = TemplateValues {
            agent_output: Some(String::new()),
            ..values()
        };
        let pattern = PatternTemplate(template("{agent.output}"));
        let error = empty.fill_pattern(&pattern).unwrap_err();
        assert!(error.to_string().contains("matches every string"));

        let broken = PatternTemplate(template("({agent.output}"));
        let error = values().fill_pattern(&broken).unwrap_err();
        assert!(error.to_string().contains("invalid regular expression"));
    }
}
