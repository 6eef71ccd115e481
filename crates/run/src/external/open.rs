//! Opens an agent of a suite, or reports what it lacks, before anything starts.
//!
//! Its main type is [`ExternalAgent`].

use std::path::Path;

use proctor_core::suite::agent::{Agent, AgentKind, ModelRef};
use proctor_core::suite::step::values::FillError;
use proctor_core::suite::{Environment, TrialValues};
use proctor_record::hint::listed;
use tokio::sync::OnceCell;

use super::version::ProgramVersion;
use super::{Adapter, Assignment, ModelAccess, ModelUrl};
use proctor_contain::environment::agent_environment;
use proctor_contain::program::{self, ProgramError};
use proctor_models::tap::TapProvider;
use proctor_models::{ModelOpenError, Settings, WireFormat, format_of, key_variable, provider_of};

/// An external agent whose program was found.
#[derive(Debug)]
pub struct ExternalAgent {
    agent: Agent,
    /// Queried at most once.
    pub(super) version: OnceCell<ProgramVersion>,
}

/// Why an agent can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExternalError {
    /// Its program was not found.
    #[error("the agent `{agent}` can't be run: {reason}{}", install.map_or(String::new(), |how| format!("; install it with `{how}`")))]
    Missing {
        agent: String,
        reason: String,
        /// The command that installs it, if known.
        install: Option<&'static str>,
    },
    /// It has no key for its model.
    #[error("the agent `{agent}` needs an API key, because its home is empty: set {}", listed(variables.iter().map(String::as_str)))]
    NoKey {
        agent: String,
        /// The variables that may hold the key.
        variables: Vec<String>,
    },
    /// Its folder for skills is unknown.
    #[error(
        "the suite has skills, but Proctor does not know where the agent `{0}` looks for them: set `skills.mountPath` in its agent file"
    )]
    NoSkills(String),
    /// Its folder for skills is outside its working folder.
    #[error("`{path}`, where the agent `{agent}` looks for skills, is not inside its folder")]
    SkillsOutside { agent: String, path: String },
    /// It does not support a custom model URL.
    #[error("the agent `{0}` does not support another model provider")]
    NoEndpoint(String),
    /// Its file refers to variables that are not set.
    #[error("the `env` of the agent `{agent}` refers to {}, which is not set", listed(variables.iter().map(String::as_str)))]
    Unset {
        agent: String,
        variables: Vec<String>,
    },
    /// It lacks something specific to it.
    #[error("the agent `{agent}` can't be run: {reason}")]
    Unfit { agent: String, reason: String },
    /// The model tap can't reach its model.
    #[error("the model tap can't be used with the agent `{agent}`: {reason}")]
    ModelTap { agent: String, reason: String },
}

impl ExternalAgent {
    /// Opens an agent; `None` if it is not an external one. It starts nothing and reports
    /// everything that is known to be missing. An agent whose model is replayed (`is_replayed`) needs no
    /// key.
    pub fn open(
        agent: &Agent,
        env: &Environment,
        has_skills: bool,
        is_replayed: bool,
    ) -> Option<Result<Self, ExternalError>> {
        Adapter::of(agent)?;
        let external = Self::unchecked(agent);
        let checked = external.check(env, has_skills, is_replayed);
        Some(checked.map(|()| external))
    }

    /// An agent whose program was not looked up.
    pub(super) fn unchecked(agent: &Agent) -> Self {
        Self {
            agent: agent.clone(),
            version: OnceCell::new(),
        }
    }

    /// The agent in a trial, with its templates filled in. Its version is not known.
    pub(crate) fn in_trial(&self, trial: &TrialValues) -> Result<Self, FillError> {
        Ok(Self::unchecked(&self.agent.in_trial(trial)?))
    }

    fn check(
        &self,
        env: &Environment,
        has_skills: bool,
        is_replayed: bool,
    ) -> Result<(), ExternalError> {
        let name = || self.agent.name.clone();
        let Some(adapter) = self.adapter() else {
            return Ok(());
        };
        let unset = self.agent.env.unset(env);
        if !unset.is_empty() {
            return Err(ExternalError::Unset {
                agent: name(),
                variables: unset.into_iter().map(str::to_owned).collect(),
            });
        }
        let (program, install) = adapter.program();
        let own = self.agent.env.filled(env);
        let path = own.get("PATH").or_else(|| env.get("PATH"));
        let path = path.map(String::as_str);
        let missing = |error: ProgramError| ExternalError::Missing {
            agent: name(),
            reason: error.to_string(),
            install,
        };
        program::resolve(program.as_ref(), Path::new("."), path).map_err(missing)?;
        if has_skills {
            self.skill_folder()?;
        }
        if (is_replayed || self.is_tapped()) && self.format().is_none() {
            return Err(ExternalError::NoEndpoint(name()));
        }
        if is_replayed || self.scripted().is_some() {
            return Ok(());
        }
        if self.agent.model_tap {
            let provider = self.provider(&Settings::of(env));
            return provider.map(drop).map_err(|error| ExternalError::ModelTap {
                agent: name(),
                reason: error.to_string(),
            });
        }
        self.fits(self.access(env)?, env)
    }

    /// Checks whether the configuration of its model suffices.
    fn fits(&self, access: ModelAccess, env: &Environment) -> Result<(), ExternalError> {
        let nowhere = Path::new("/");
        let assignment = Assignment {
            prompt: String::new(),
            servers: Vec::new(),
            access,
            folder: nowhere.to_owned(),
            skills: None,
            home: nowhere.to_owned(),
            environment: self.environment(env, &[], (nowhere, nowhere), false),
            max_turns: None,
        };
        let fits = self.adapter().map_or(Ok(()), |it| it.fits(&assignment));
        fits.map_err(|unfit| ExternalError::Unfit {
            agent: self.agent.name.clone(),
            reason: unfit.to_string(),
        })
    }

    /// Whether it reaches its model through the tap.
    pub fn is_tapped(&self) -> bool {
        self.agent.model_tap || self.scripted().is_some()
    }

    /// Whether it supports a custom model URL, as the tap needs.
    pub fn can_be_tapped(&self) -> bool {
        self.format().is_some()
    }

    /// Whether it stops at `maxTurns` by itself and reports that.
    pub fn stops_at_max_turns(&self) -> bool {
        self.adapter().is_some_and(|it| it.stops_at_max_turns())
    }

    /// The API with which it asks a model at a custom URL; `None` if it does not support one.
    pub(crate) fn format(&self) -> Option<WireFormat> {
        let formats = self.adapter()?.formats();
        let provider = self.model().and_then(|model| model.provider);
        let own = provider
            .and_then(format_of)
            .filter(|own| formats.contains(own));
        own.or_else(|| formats.first().copied())
    }

    /// The API of its model, from its file and the environment.
    pub(crate) fn provider(&self, settings: &Settings<'_>) -> Result<TapProvider, ModelOpenError> {
        let mut settings = *settings;
        if let AgentKind::Builtin {
            base_url,
            api_key_variable,
            ..
        } = &self.agent.kind
        {
            settings.base_url = base_url.as_deref().or(settings.base_url);
            settings.api_key_variable = api_key_variable.as_deref().or(settings.api_key_variable);
        }
        let format = self.format().unwrap_or(WireFormat::Chat);
        TapProvider::open(format, &self.model_name(), &settings)
    }

    /// Its model, as records and prices name it: only `provider:` if the agent chooses the model.
    pub(crate) fn model_name(&self) -> String {
        if let Some(model) = self.scripted() {
            return model.to_string();
        }
        let provider = provider_of(self.format().unwrap_or(WireFormat::Chat));
        let id = self.model().map_or("", |model| model.id.as_str());
        format!("{provider}:{id}")
    }

    /// The configured model as `provider:id`, or the agent's name if the agent chooses it.
    pub(crate) fn asked_model(&self) -> String {
        match self.model() {
            Some(_) => self.model_name(),
            None => self.agent.name.clone(),
        }
    }

    /// The configured model, without a URL.
    pub(crate) fn named_model(&self) -> ModelAccess {
        ModelAccess {
            model: self.model().map(|model| model.id.clone()),
            provider: self.model().and_then(|model| model.provider),
            endpoint: None,
        }
    }

    /// The agent, as the suite defines it.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The script that stands in for its model, if any.
    pub(crate) fn scripted(&self) -> Option<&ModelRef> {
        self.model().filter(|model| model.script.is_some())
    }

    pub(crate) fn adapter(&self) -> Option<Adapter<'_>> {
        Adapter::of(&self.agent)
    }

    fn model(&self) -> Option<&ModelRef> {
        match &self.agent.kind {
            AgentKind::Builtin { model, .. } => model.as_ref(),
            AgentKind::Acp { .. } | AgentKind::Commands(_) | AgentKind::Nobody => None,
        }
    }

    /// The agent's tool that loads skills, if known.
    pub(crate) fn skill_tool(&self) -> Option<&str> {
        let named = self.agent.skills.as_ref();
        let named = named.and_then(|skills| skills.tool_name.as_deref());
        let usual = || Some(self.adapter()?.skills()?.1);
        named.or_else(usual)
    }

    /// The folder in which the agent looks for skills, inside its working folder.
    pub(crate) fn skill_folder(&self) -> Result<&str, ExternalError> {
        let named = self.agent.skills.as_ref();
        let named = named.and_then(|skills| skills.mount_path.as_deref());
        let usual = || Some(self.adapter()?.skills()?.0);
        let path = named.or_else(usual);
        let path = path.ok_or_else(|| ExternalError::NoSkills(self.agent.name.clone()))?;
        let is_inside = Path::new(path).components().all(|part| {
            matches!(
                part,
                std::path::Component::Normal(_) | std::path::Component::CurDir
            )
        });
        if !is_inside {
            return Err(ExternalError::SkillsOutside {
                agent: self.agent.name.clone(),
                path: path.to_owned(),
            });
        }
        Ok(path)
    }

    /// The complete environment of its program. With `has_model`, the agent gets the URL of its
    /// model and none of the user's keys.
    pub(crate) fn environment(
        &self,
        inherited: &Environment,
        pass: &[String],
        (home, temporary): (&Path, &Path),
        has_model: bool,
    ) -> Environment {
        let mut needed: Vec<&str> = Vec::new();
        let adapter = self.adapter();
        if let (Some(adapter), false) = (adapter, has_model) {
            needed.extend(adapter.variables());
        }
        if adapter.is_some_and(|adapter| adapter.is_from_file()) {
            // Only the agent file knows what the agent needs.
            needed.extend(pass.iter().map(String::as_str));
        }
        let is_at_home = adapter.is_some_and(|adapter| adapter.is_at_home());
        let own = inherited.get("HOME").filter(|_| is_at_home).cloned();
        let home = own.unwrap_or_else(|| home.to_string_lossy().into_owned());
        let mut all = agent_environment(inherited, &home, &needed);
        let temporary = temporary.to_string_lossy().into_owned();
        all.insert("TMPDIR".to_owned(), temporary);
        all.extend(self.agent.env.filled(inherited));
        all
    }

    /// The variables of which one must hold its key.
    pub(crate) fn key_variables(&self) -> Vec<String> {
        if let AgentKind::Builtin {
            api_key_variable: Some(name),
            ..
        } = &self.agent.kind
        {
            return vec![name.clone()];
        }
        let variables = self
            .adapter()
            .map_or(&[][..], |adapter| adapter.variables());
        let is_key = |name: &&&str| name.contains("_KEY") || name.contains("_TOKEN");
        let keys = variables.iter().filter(is_key);
        keys.map(|name| (*name).to_owned()).collect()
    }

    /// The variables that may hold the URL of its model.
    pub(crate) fn url_variables(&self) -> impl Iterator<Item = &'static str> {
        let variables = self
            .adapter()
            .map_or(&[][..], |adapter| adapter.variables());
        let variables = variables.iter().copied();
        variables.filter(|name| name.ends_with("_URL"))
    }

    /// How it reaches its model, unless a script stands in for it: from its file or the user's
    /// environment.
    pub(crate) fn access(&self, env: &Environment) -> Result<ModelAccess, ExternalError> {
        let Some(adapter) = self.adapter() else {
            return Ok(ModelAccess::default());
        };
        let set = |name: &str| {
            let value = env.get(name).map(|value| value.trim());
            value.filter(|value| !value.is_empty()).map(str::to_owned)
        };
        let mut access = self.named_model();
        if self.scripted().is_some() {
            return match adapter.formats() {
                [] => Err(ExternalError::NoEndpoint(self.agent.name.clone())),
                _ => Ok(access),
            };
        }
        let (own_url, own_key) = match &self.agent.kind {
            AgentKind::Builtin {
                base_url,
                api_key_variable,
                ..
            } => (base_url.clone(), api_key_variable.clone()),
            // A command reaches its model by itself.
            AgentKind::Acp { .. } | AgentKind::Commands(_) | AgentKind::Nobody => {
                return Ok(access);
            }
        };
        let keys = self.key_variables();
        let key = keys.iter().find_map(|name| set(name));
        let url = own_url
            .clone()
            .or_else(|| self.url_variables().find_map(set));
        if key.is_none() && url.is_none() {
            return Err(ExternalError::NoKey {
                agent: self.agent.name.clone(),
                variables: keys,
            });
        }
        let is_told = own_url.is_some() || own_key.is_some() || key.is_none();
        let is_told = is_told || adapter.reads_only_configuration();
        let formats = adapter.formats();
        let own = access
            .provider
            .and_then(format_of)
            .filter(|own| formats.contains(own));
        let format = own.as_ref().or(formats.first());
        if let (true, Some(format)) = (is_told, format) {
            access.endpoint = Some(ModelUrl {
                base: based(
                    url.as_deref().unwrap_or(provider_of(*format).base_url()),
                    *format,
                ),
                // The user's own server may need no key.
                key: key.unwrap_or_else(|| "none".to_owned()),
                format: *format,
            });
        }
        Ok(access)
    }
}

/// The custom URL in an agent's file, and the variable with the user's default key that is sent
/// there because the file names no other.
pub fn sent_key<'a>(agent: &'a Agent, env: &Environment) -> Option<(&'a str, String)> {
    let AgentKind::Builtin {
        model,
        base_url: Some(url),
        api_key_variable: None,
        ..
    } = &agent.kind
    else {
        return None;
    };
    let settings = Settings {
        base_url: Some(url),
        ..Settings::of(env)
    };
    let sent = |format: WireFormat| key_variable(format, "", &settings).ok().flatten();
    let external = Adapter::of(agent).map(|_| ExternalAgent::unchecked(agent));
    let variable = match external {
        Some(external) if external.scripted().is_some() => None,
        Some(external) if external.agent.model_tap => sent(external.format()?),
        Some(external) => {
            let is_set = |name: &String| env.get(name).is_some_and(|key| !key.trim().is_empty());
            external.key_variables().into_iter().find(is_set)
        }
        None => sent(format_of(model.as_ref()?.provider?)?),
    };
    Some((url, variable?))
}

/// A URL in the form of [`ModelUrl::base`].
fn based(url: &str, format: WireFormat) -> String {
    let url = url.trim_end_matches('/');
    let url = match format {
        WireFormat::Messages => url.strip_suffix("/v1").unwrap_or(url),
        WireFormat::Chat | WireFormat::Responses | WireFormat::Gemini => url,
    };
    url.to_owned()
}

#[cfg(test)]
mod tests;
