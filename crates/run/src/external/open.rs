//! From an agent of a suite to one that can be given work, or to what is missing, before anything is
//! started.
//!
//! Its main type is [`External`].

use std::path::Path;

use proctor_core::hint::listed;
use proctor_core::suite::Environment;
use proctor_core::suite::agent::{Agent, AgentKind, ModelRef};
use tokio::sync::OnceCell;

use super::{Access, Acp, Adapter, Cli, Endpoint};
use crate::model::Format;
use crate::program::{self, ProgramError};

/// An agent that is a program of its own, and is there.
#[derive(Debug)]
pub struct External {
    agent: Agent,
    /// Asked for once.
    pub(super) version: OnceCell<Option<String>>,
}

/// Why an agent can't be given work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExternalError {
    /// Its program is not there.
    #[error("the agent `{agent}` can't be run: {reason}{}", install.map_or(String::new(), |how| format!("; install it with `{how}`")))]
    Missing {
        /// The agent.
        agent: String,
        /// What is missing.
        reason: String,
        /// How it is installed, if that is known.
        install: Option<&'static str>,
    },
    /// Nobody would let it ask its model.
    #[error("the agent `{agent}` needs a key, and its home is empty: set {}", listed(variables.iter().map(String::as_str)))]
    NoKey {
        /// The agent.
        agent: String,
        /// The variables that may hold it.
        variables: Vec<String>,
    },
    /// It has no place for what the suite gives it.
    #[error(
        "the suite has skills, and it is not known where the agent `{0}` looks for them: say so in `skills.mountPath` of its file"
    )]
    NoSkills(String),
    /// Its place for skills is outside its folder.
    #[error("`{path}`, where the agent `{agent}` looks for skills, is not inside its folder")]
    SkillsOutside {
        /// The agent.
        agent: String,
        /// The path.
        path: String,
    },
    /// It can't be told where its model is.
    #[error("the agent `{0}` has its own way to its model, and can't be given another")]
    NoEndpoint(String),
    /// It comes later.
    #[error("the model of the agent `{0}` can't be listened to yet: take `modelTap` out")]
    ModelTap(String),
}

impl External {
    /// Opens an agent; `None` if it is no program of its own. Nothing is started, but everything that can
    /// be known to be missing is said.
    pub fn open(
        agent: &Agent,
        env: &Environment,
        has_skills: bool,
    ) -> Option<Result<Self, ExternalError>> {
        Adapter::of(agent)?;
        let external = Self {
            agent: agent.clone(),
            version: OnceCell::new(),
        };
        Some(external.check(env, has_skills).map(|()| external))
    }

    fn check(&self, env: &Environment, has_skills: bool) -> Result<(), ExternalError> {
        let name = || self.agent.name.clone();
        let Some(adapter) = self.adapter() else {
            return Ok(());
        };
        if self.agent.model_tap {
            return Err(ExternalError::ModelTap(name()));
        }
        let (program, install) = adapter.program();
        let path = env.get("PATH").map(String::as_str);
        let missing = |error: ProgramError| ExternalError::Missing {
            agent: name(),
            reason: error.to_string(),
            install,
        };
        program::resolve(program.as_ref(), Path::new("."), path).map_err(missing)?;
        if has_skills {
            self.skill_folder()?;
        }
        self.access(env).map(drop)
    }

    /// The agent, as the suite has it.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Its script, if a script stands in for its model.
    pub(crate) fn scripted(&self) -> Option<&ModelRef> {
        self.model().filter(|model| model.script.is_some())
    }

    pub(crate) fn adapter(&self) -> Option<Adapter<'_>> {
        Adapter::of(&self.agent)
    }

    fn model(&self) -> Option<&ModelRef> {
        match &self.agent.kind {
            AgentKind::Builtin { model, .. } => model.as_ref(),
            _ => None,
        }
    }

    /// The agent's tool that loads skills, if it is known.
    pub(crate) fn skill_tool(&self) -> Option<&str> {
        let named = self.agent.skills.as_ref();
        let named = named.and_then(|skills| skills.tool_name.as_deref());
        let usual = || Some(self.adapter()?.skills()?.1);
        named.or_else(usual)
    }

    /// Where in its folder the agent looks for skills.
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

    /// How it reaches its model, unless a script stands in for that: what its file says, or what the
    /// user's environment does.
    pub(crate) fn access(&self, env: &Environment) -> Result<Access, ExternalError> {
        let Some(adapter) = self.adapter() else {
            return Ok(Access::default());
        };
        let set = |name: &str| {
            let value = env.get(name).map(|value| value.trim());
            value.filter(|value| !value.is_empty()).map(str::to_owned)
        };
        let mut access = Access {
            model: self.model().map(|model| model.id.clone()),
            provider: self.model().and_then(|model| model.provider),
            endpoint: None,
        };
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
            // A command has a way of its own.
            _ => return Ok(access),
        };
        let is_key = |name: &&&str| name.contains("_KEY") || name.contains("_TOKEN");
        let usual_keys = adapter.variables().iter().filter(is_key);
        let usual_keys = usual_keys.map(|name| (*name).to_owned());
        let keys: Vec<String> = match own_key.clone() {
            Some(name) => vec![name],
            None => usual_keys.collect(),
        };
        let key = keys.iter().find_map(|name| set(name));
        let urls = adapter
            .variables()
            .iter()
            .filter(|name| name.ends_with("_URL"));
        let url = own_url.clone().or_else(|| urls.copied().find_map(set));
        if key.is_none() && url.is_none() {
            return Err(ExternalError::NoKey {
                agent: self.agent.name.clone(),
                variables: keys,
            });
        }
        // Codex reads its own configuration and nothing else; the others know their variables.
        let is_told = own_url.is_some() || own_key.is_some() || key.is_none();
        let is_codex = matches!(
            adapter,
            Adapter::Cli(Cli::Codex) | Adapter::Acp(Acp::Preset("codex-acp"))
        );
        let formats = adapter.formats();
        let own = format_of(access.provider).filter(|own| formats.contains(own));
        let format = own.as_ref().or(formats.first());
        if let (true, Some(format)) = (is_told || is_codex, format) {
            access.endpoint = Some(Endpoint {
                base: url.map_or_else(|| usual(*format).to_owned(), |url| based(&url, *format)),
                // A server of one's own may need none.
                key: key.unwrap_or_else(|| "none".to_owned()),
                format: *format,
            });
        }
        Ok(access)
    }
}

/// What is spoken to the models of a provider.
fn format_of(provider: Option<&str>) -> Option<Format> {
    match provider? {
        "anthropic" => Some(Format::Anthropic),
        "openai" => Some(Format::Chat),
        "openai-responses" => Some(Format::Responses),
        "gemini" => Some(Format::Gemini),
        _ => None,
    }
}

/// Where the models of a vendor are.
fn usual(format: Format) -> &'static str {
    match format {
        Format::Anthropic => "https://api.anthropic.com",
        Format::Chat | Format::Responses => "https://api.openai.com/v1",
        Format::Gemini => "https://generativelanguage.googleapis.com",
    }
}

/// An address as an [`Endpoint`] has it.
fn based(url: &str, format: Format) -> String {
    let url = url.trim_end_matches('/');
    let url = match format {
        Format::Anthropic => url.strip_suffix("/v1").unwrap_or(url),
        Format::Chat | Format::Responses | Format::Gemini => url,
    };
    url.to_owned()
}

#[cfg(test)]
mod tests;
