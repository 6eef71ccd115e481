//! Resolves agents: references in eval files, and agent files.
//!
//! Its main type is [`Agent`].

use std::path::PathBuf;
use std::sync::Arc;

use proctor_record::hint::{nearest, nearest_hint};
use proctor_record::problem::{Code, Problem, Span, WithSpan};
use serde::Serialize;

use super::agent_environment::OwnEnvironment;
use super::agent_file::{AgentFile, CommandsFile};
use super::eval_file::{AgentRefFile, AgentType};
use super::go_template::{TemplateUse, place};
use super::load::Loader;
use super::step::values::FillError;
use super::template::Template;
use super::trial_values::{TRIAL_DIR, TrialValues};
use crate::builtin_agent::{BuiltinAgent, Protocol};
use crate::decode::{Context, Decode, LooseText};
use crate::provider::Provider;
use crate::script::Script;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Its name in reports.
    pub name: String,
    /// Its agent file, if it has one.
    #[serde(skip)]
    pub path: Option<PathBuf>,
    #[serde(flatten)]
    pub kind: AgentKind,
    /// Whether it reaches its model through the model tap.
    pub model_tap: bool,
    /// The folder and tool with which it loads skills.
    pub skills: Option<SkillMount>,
    /// The environment variables of its agent file.
    pub env: OwnEnvironment,
    /// Whether it connects to a server only when it needs one, so that it may reach none.
    pub connects_on_use: bool,
}

/// The type of an agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum AgentKind {
    #[serde(rename_all = "camelCase")]
    Builtin {
        builtin: BuiltinAgent,
        /// The model, where one is named.
        model: Option<ModelRef>,
        /// The base URL, if it is not the default.
        base_url: Option<String>,
        /// The environment variable that holds the API key, if it is not the default.
        api_key_variable: Option<String>,
    },
    /// Any program that speaks the Agent Client Protocol.
    Acp { cmd: String, args: Vec<String> },
    /// Any program, started with templates of its command line.
    Commands(Commands),
    /// No agent: for evals that only call tools.
    Nobody,
}

/// A model, as `provider:model-id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelRef {
    /// The provider; absent if only the agent knows it.
    pub provider: Option<Provider>,
    /// The model's name at the provider, or the path of a script.
    pub id: String,
    /// The script, if it is one.
    #[serde(skip)]
    pub script: Option<Arc<Script>>,
}

/// Templates of a program's command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Commands {
    /// The command, for a shell.
    pub run_prompt: String,
    pub mcp_server: Option<String>,
    /// The arguments for each allowed tool.
    pub allowed_tools: Option<String>,
    /// The separator between allowed tools.
    pub separator: String,
    /// The value of `{{ .DangerouslySkipPermissions }}`.
    pub skip_permissions: bool,
    /// Whether it runs with its own, empty home folder.
    pub virtual_home: bool,
    /// A command that prints the agent's version.
    pub version: Option<String>,
    /// The folder of the agent file.
    pub folder: PathBuf,
}

/// The folder and tool with which an agent loads skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillMount {
    /// The folder, inside the agent's working folder.
    pub mount_path: Option<String>,
    /// The agent's tool that loads a skill.
    pub tool_name: Option<String>,
}

impl Loader<'_> {
    /// Resolves a reference to an agent.
    pub(super) fn agent(&self, file: &WithSpan<AgentRefFile>, cx: &Context<'_>) -> Option<Agent> {
        let kind = file.kind.get()?;
        match kind.value {
            AgentType::File => {
                let Some(path) = &file.path else {
                    let problem = Problem::error(Code::Missing, "`path` is missing");
                    cx.report(kind.span, problem.hint("set `path` to the agent file"));
                    return None;
                };
                let mut agent = self.agent_file(path, cx)?;
                if file.model.is_some() {
                    // The file says what its agent runs on; the reference may say otherwise.
                    let model = self.model(file.model.as_ref(), false, cx);
                    if let AgentKind::Builtin { model: own, .. } = &mut agent.kind {
                        *own = model;
                    } else if let Some(written) = &file.model {
                        let message = "`model` has no effect for an agent with its own command";
                        cx.report(written.span, Problem::warning(Code::Conflict, message));
                    }
                }
                agent.model_tap |= file.model_tap.unwrap_or(false);
                Some(agent)
            }
            AgentType::Builtin(builtin) => {
                if let Some(path) = &file.path {
                    let message = "`path` has no effect for a built-in agent";
                    cx.report(path.span, Problem::warning(Code::Conflict, message));
                }
                let model = self.builtin_model(builtin, file.model.as_ref(), kind.span, cx)?;
                Some(Agent {
                    name: match &file.model {
                        Some(written) => format!("{builtin} ({})", written.value),
                        None => builtin.to_string(),
                    },
                    path: None,
                    kind: AgentKind::Builtin {
                        builtin,
                        model,
                        base_url: None,
                        api_key_variable: None,
                    },
                    model_tap: file.model_tap.unwrap_or(false),
                    skills: None,
                    env: OwnEnvironment::default(),
                    connects_on_use: false,
                })
            }
        }
    }

    /// Loads and resolves an agent file.
    pub(super) fn agent_file(&self, path: &WithSpan<String>, cx: &Context<'_>) -> Option<Agent> {
        let loaded = self.open(path, "Agent", cx)?;
        let context = Context::new(loaded.source.clone(), self.problems);
        let file = AgentFile::decode(&loaded.root, &context)?;
        self.resolve_agent(&file, &context)
    }

    /// Resolves an agent file.
    pub(super) fn resolve_agent(&self, file: &AgentFile, cx: &Context<'_>) -> Option<Agent> {
        let kind = if let Some(acp) = &file.acp {
            check_arguments(&acp.args, cx);
            AgentKind::Acp {
                cmd: acp.cmd.clone(),
                args: acp.args.iter().map(|arg| arg.value.0.clone()).collect(),
            }
        } else if let Some(builtin) = &file.builtin {
            AgentKind::Builtin {
                builtin: builtin.kind,
                model: self.builtin_model(
                    builtin.kind,
                    builtin.model.as_ref(),
                    builtin.span,
                    cx,
                )?,
                base_url: builtin.base_url.as_ref().map(|url| url.value.clone()),
                api_key_variable: builtin.api_key.clone(),
            }
        } else if let Some(commands) = &file.commands {
            AgentKind::Commands(resolve_commands(commands, cx))
        } else {
            // Reported when the file was decoded.
            return None;
        };
        if let (Some(commands), false) = (&file.commands, matches!(kind, AgentKind::Commands(_))) {
            let message = "`commands` has no effect together with `acp` or `builtin`";
            cx.report(commands.span, Problem::warning(Code::Conflict, message));
        }
        if matches!(kind, AgentKind::Builtin { .. }) {
            refuse_for_builtin(file, cx);
        }
        Some(Agent {
            name: file.metadata.get()?.name.get()?.value.0.clone(),
            path: Some(cx.source.path().to_path_buf()),
            kind,
            env: OwnEnvironment::resolve(&file.env, cx),
            connects_on_use: file.connects.is_some(),
            model_tap: file.model_tap.unwrap_or(false),
            skills: file.skills.as_ref().map(|skills| SkillMount {
                mount_path: skills.mount_path.clone(),
                tool_name: skills.tool_name.clone(),
            }),
        })
    }

    /// The model of a built-in agent. The outer `None` means that it is required and absent or wrong.
    #[expect(
        clippy::option_option,
        reason = "an agent may have no model, and a model may be wrong"
    )]
    fn builtin_model(
        &self,
        builtin: BuiltinAgent,
        written: Option<&WithSpan<String>>,
        span: Span,
        cx: &Context<'_>,
    ) -> Option<Option<ModelRef>> {
        if written.is_none() && builtin.needs_model() {
            let problem = Problem::error(Code::Missing, "`model` is missing");
            cx.report(
                span,
                problem.hint(format!(
                    "`{}` needs one, such as `openai:gpt-5`",
                    builtin.type_name()
                )),
            );
            return None;
        }
        if written.is_none() {
            return Some(None);
        }
        // Agents of their own take whatever names their vendors give.
        let bare = !builtin.needs_model() || builtin.default_provider().is_some();
        let mut model = self.model(written, bare, cx)?;
        model.provider = model.provider.or(builtin.default_provider());
        Some(Some(model))
    }

    /// The model, with its script if it is one.
    fn model(
        &self,
        written: Option<&WithSpan<String>>,
        bare: bool,
        cx: &Context<'_>,
    ) -> Option<ModelRef> {
        let mut model = split_model(written?, bare, cx)?;
        if model.provider == Some(Provider::Scripted) {
            let path = WithSpan {
                value: model.id.clone(),
                span: written?.span,
            };
            let opened = self.open(&path, "Script", cx)?;
            model.script = Some(Arc::new(self.script(&opened)?));
        }
        Some(model)
    }
}

/// Parses a model, and reports its problems.
pub(super) fn split_model(
    written: &WithSpan<String>,
    bare: bool,
    cx: &Context<'_>,
) -> Option<ModelRef> {
    let parsed = if bare {
        ModelRef::parse_bare(&written.value)
    } else {
        ModelRef::parse(&written.value)
    };
    parsed
        .map_err(|wrong| {
            let problem = Problem::error(Code::Value, wrong.message);
            cx.report(written.span, problem.maybe_hint(wrong.hint));
        })
        .ok()
}

/// Why a text is not a model reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", hint.as_ref().map_or(String::new(), |hint| format!("; {hint}")))]
pub struct ModelRefError {
    message: String,
    hint: Option<String>,
}

impl ModelRef {
    /// Reads `provider:model-id`. The script of a scripted model is not loaded.
    pub fn parse(text: &str) -> Result<Self, ModelRefError> {
        let known = Provider::all_words;
        let wrong = |message: String, hint: Option<String>| Err(ModelRefError { message, hint });
        let Some((word, id)) = text.split_once(':') else {
            let hint = format!(
                "write `provider:model-id`; providers: {}",
                proctor_record::hint::listed(known())
            );
            return wrong(format!("missing provider in `{text}`"), Some(hint));
        };
        match Provider::parse(word) {
            Some(_) if id.is_empty() => wrong(format!("missing model in `{text}`"), None),
            Some(provider) => Ok(Self {
                provider: Some(provider),
                id: id.to_owned(),
                script: None,
            }),
            None => {
                let hint = nearest_hint(word, known());
                wrong(format!("unknown model provider `{word}`"), hint)
            }
        }
    }

    /// As [`ModelRef::parse`], but also accepts a name without a provider.
    fn parse_bare(text: &str) -> Result<Self, ModelRefError> {
        let known = Provider::all_words;
        let is_bare = match text.split_once(':') {
            None => true,
            // Model names of some vendors contain colons.
            Some((word, _)) => {
                known().all(|known| known != word) && nearest(word, known()).is_none()
            }
        };
        if !is_bare {
            return Self::parse(text);
        }
        Ok(Self {
            provider: None,
            id: text.to_owned(),
            script: None,
        })
    }
}

impl std::fmt::Display for ModelRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.provider {
            Some(provider) => write!(f, "{provider}:{}", self.id),
            None => f.write_str(&self.id),
        }
    }
}

impl Agent {
    /// The model, if this is an agent in Proctor's own loop.
    pub fn model_in_loop(&self) -> Option<&ModelRef> {
        match &self.kind {
            AgentKind::Builtin { builtin, model, .. } => match builtin.protocol() {
                Protocol::InProcess => model.as_ref(),
                Protocol::Cli | Protocol::Acp => None,
            },
            AgentKind::Acp { .. } | AgentKind::Commands(_) | AgentKind::Nobody => None,
        }
    }

    /// The agent in a trial, with its templates filled in.
    pub fn in_trial(&self, trial: &TrialValues) -> Result<Self, FillError> {
        let mut agent = self.clone();
        if let AgentKind::Acp { args, .. } = &mut agent.kind {
            for arg in args {
                *arg = trial.fill(arg)?;
            }
        }
        agent.env = self.env.in_trial(trial)?;
        Ok(agent)
    }

    /// No agent, for runs that need no model.
    pub fn nobody() -> Self {
        Self {
            name: "no agent".to_owned(),
            path: None,
            kind: AgentKind::Nobody,
            model_tap: false,
            skills: None,
            env: OwnEnvironment::default(),
            connects_on_use: false,
        }
    }

    /// A model in Proctor's own loop.
    pub fn on_model(model: ModelRef) -> Self {
        Self {
            name: format!("{} ({model})", BuiltinAgent::LlmAgent),
            path: None,
            kind: AgentKind::Builtin {
                builtin: BuiltinAgent::LlmAgent,
                model: Some(model),
                base_url: None,
                api_key_variable: None,
            },
            model_tap: false,
            skills: None,
            env: OwnEnvironment::default(),
            connects_on_use: false,
        }
    }
}

/// Reports keys that only work with `acp` or `commands`, not with built-in agents.
fn refuse_for_builtin(file: &AgentFile, cx: &Context<'_>) {
    let env = file.env.iter().next().map(|(name, _)| ("env", name.span));
    let connects = file.connects.as_ref().map(|word| ("connects", word.span));
    for (key, span) in env.into_iter().chain(connects) {
        let message = format!("`{key}` works only with `acp` or `commands`");
        cx.report(span, Problem::error(Code::Conflict, message));
    }
}

/// Reports templates that the arguments of an agent can't have: the agent would get them as they are written.
fn check_arguments(args: &[WithSpan<LooseText>], cx: &Context<'_>) {
    for arg in args {
        match Template::parse(&arg.value.0) {
            Ok(template) => {
                for reference in template.references().filter(|one| !one.is_of_trial()) {
                    let message =
                        format!("`{reference}` is not expanded in the `args` of an agent");
                    cx.report(arg.span, Problem::warning(Code::Reference, message));
                }
            }
            Err(errors) => {
                for error in errors {
                    let problem = Problem::error(Code::Reference, error.message);
                    cx.report(arg.span, problem.maybe_hint(error.hint));
                }
            }
        }
    }
}

fn resolve_commands(file: &CommandsFile, cx: &Context<'_>) -> Commands {
    let run = &file.run_prompt;
    let template = place::template(&run.value, run.span, TemplateUse::RunPrompt, cx);
    if template.is_some_and(|template| !template.uses("Prompt")) {
        let problem = Problem::warning(Code::Value, "the command does not use `{{ .Prompt }}`");
        cx.report(
            run.span,
            problem.hint("add it, or the agent never sees the prompt"),
        );
    }
    if run.value.contains("{trial.") {
        let message = "a command expands no templates of a trial";
        let problem = Problem::error(Code::Reference, message);
        cx.report(
            run.span,
            problem.hint(format!(
                "write `\"${TRIAL_DIR}\"`, or set a variable in `env`"
            )),
        );
    }
    for (written, usage) in [
        (&file.mcp_server, TemplateUse::McpServer),
        (&file.allowed_tools, TemplateUse::AllowedTools),
    ] {
        if let Some(written) = written {
            place::template(&written.value.0, written.span, usage, cx);
        }
    }
    Commands {
        run_prompt: run.value.clone(),
        mcp_server: file.mcp_server.as_ref().map(|t| t.value.0.clone()),
        allowed_tools: file.allowed_tools.as_ref().map(|t| t.value.0.clone()),
        separator: file
            .separator
            .as_ref()
            .map_or_else(|| " ".to_owned(), |s| s.0.clone()),
        skip_permissions: file.skip_permissions.unwrap_or(false),
        virtual_home: file.virtual_home.unwrap_or(false),
        version: file.version.clone(),
        folder: cx.source.folder().to_path_buf(),
    }
}
