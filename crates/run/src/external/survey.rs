//! Finds which agents are usable, and what the others lack.
//!
//! Its main type is [`Survey`]. It asks no model and shows no key; only [`check_programs`] starts
//! programs, without a task.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proctor_core::builtin_agent::BuiltinAgent;
use proctor_core::provider::Provider;
use proctor_core::suite::Environment;
use proctor_core::suite::agent::{Agent, AgentKind, ModelRef};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Adapter, AgentFolders, ExternalAgent};
use proctor_contain::program;
use proctor_models::{Model, ModelOpenError, Settings, WireFormat, format_of, key_variable};

/// How many programs run at once.
const AT_ONCE: usize = 4;

/// The availability of an agent.
#[derive(Debug)]
pub struct Survey {
    pub name: String,
    /// Its program; `None` for Proctor's own loop.
    pub program: Option<Program>,
    pub key: AgentKey,
    /// Whether it supports a custom model URL, which `scripted:FILE` and the model tap need.
    pub can_be_told: bool,
    /// Why it is not usable, if so.
    pub problem: Option<String>,
    /// Whether its program was started, or it has none.
    pub is_checked: bool,
    /// Whether its program can't be checked, because its file names no version command.
    pub is_silent: bool,
    /// The problem that occurred when its program was started.
    pub broken: Option<String>,
    external: Option<ExternalAgent>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The name to call it by.
    pub name: String,
    /// Its path, if it was found.
    pub path: Option<PathBuf>,
    /// The version that it reports, if it was asked and answered.
    pub version: Option<String>,
    /// The command that installs it, if known.
    pub install: Option<&'static str>,
}

/// How an agent authenticates with its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentKey {
    /// It needs no key: its model is a script.
    NotNeeded,
    /// This variable or this setting of its file holds a key or the URL of the user's own server.
    Found(String),
    /// One of these variables must hold a key.
    Wanted(Vec<String>),
    /// Only the agent knows.
    Own,
}

impl Survey {
    /// Whether it is usable as configured.
    pub fn is_usable(&self) -> bool {
        self.problem.is_none() && self.broken.is_none()
    }

    /// What makes it usable: the command that installs its program, and variables to set.
    pub fn remedies(&self) -> Vec<String> {
        let program = self.program.as_ref();
        let is_lacking = |program: &&Program| program.path.is_none() || self.broken.is_some();
        let install = program.filter(is_lacking).and_then(|it| it.install);
        let mut remedies: Vec<String> = install.map(str::to_owned).into_iter().collect();
        if let AgentKey::Wanted(variables) = &self.key {
            remedies.push(format!("set {}", variables.join(" or ")));
        }
        remedies
    }

    /// Whether it is usable with a scripted model.
    pub fn runs_scripts(&self) -> bool {
        let is_there = |program: &Program| program.path.is_some();
        self.can_be_told && self.broken.is_none() && self.program.as_ref().is_none_or(is_there)
    }
}

/// Surveys every agent that Proctor knows, and every provider for its own loop.
pub fn survey_known(env: &Environment) -> Vec<Survey> {
    let own = Provider::ALL.into_iter().map(|provider| {
        let mut agent = Agent::on_model(ModelRef {
            provider: Some(provider),
            id: String::new(),
            script: None,
        });
        agent.name = format!("{} ({provider})", BuiltinAgent::LlmAgent);
        survey(&agent, env)
    });
    let programs = BuiltinAgent::ALL.into_iter();
    let programs = programs.filter(|builtin| builtin.program().is_some());
    let programs = programs.map(|builtin| {
        let kind = AgentKind::Builtin {
            builtin,
            model: None,
            base_url: None,
            api_key_variable: None,
        };
        let agent = Agent {
            name: builtin.to_string(),
            kind,
            ..Agent::nobody()
        };
        survey(&agent, env)
    });
    own.chain(programs).collect()
}

/// Looks up whether one agent can run here, and what it lacks.
pub fn survey(agent: &Agent, env: &Environment) -> Survey {
    let Some(adapter) = Adapter::of(agent) else {
        return survey_own(agent, env);
    };
    let (name, install) = adapter.program();
    let path = env.get("PATH").map(String::as_str);
    let program = Program {
        name: name.to_owned(),
        path: program::resolve(name.as_ref(), Path::new("."), path).ok(),
        version: None,
        install,
    };
    let opened = ExternalAgent::open(agent, env, false, false);
    let (external, problem) = match opened {
        Some(Ok(external)) => (external, None),
        Some(Err(error)) => (ExternalAgent::unchecked(agent), Some(error.to_string())),
        None => (ExternalAgent::unchecked(agent), None),
    };
    Survey {
        name: agent.name.clone(),
        key: key(&external, env),
        can_be_told: !adapter.formats().is_empty(),
        program: Some(program),
        problem,
        is_checked: false,
        is_silent: !external.can_be_checked(),
        broken: None,
        external: Some(external),
    }
}

/// Surveys Proctor's own loop with a model. A model without a name stands for any of its provider.
fn survey_own(agent: &Agent, env: &Environment) -> Survey {
    let model = match &agent.kind {
        AgentKind::Builtin { model, .. } => model.as_ref(),
        _ => None,
    };
    let is_script = |model: &ModelRef| model.provider == Some(Provider::Scripted);
    let is_any_script = model.is_some_and(|model| is_script(model) && model.id.is_empty());
    let opened = if is_any_script {
        Ok(())
    } else {
        Model::open_agent(agent, &Settings::of(env)).map(drop)
    };
    let format = model.and_then(|model| format_of(model.provider?));
    Survey {
        name: agent.name.clone(),
        program: None,
        key: format.map_or(AgentKey::NotNeeded, |format| found(format, agent, env)),
        can_be_told: true,
        problem: opened.err().map(|error| match error {
            ModelOpenError::MissingKey { .. } => "its models need a key".to_owned(),
            other => other.to_string(),
        }),
        is_checked: true,
        is_silent: false,
        broken: None,
        external: None,
    }
}

/// How a program authenticates with its model.
fn key(external: &ExternalAgent, env: &Environment) -> AgentKey {
    if external.scripted().is_some() {
        return AgentKey::NotNeeded;
    }
    let AgentKind::Builtin { base_url, .. } = &external.agent().kind else {
        return AgentKey::Own;
    };
    if let (true, Some(format)) = (external.is_tapped(), external.format()) {
        return found(format, external.agent(), env);
    }
    let is_set = |name: &&str| env.get(*name).is_some_and(|value| !value.trim().is_empty());
    let keys = external.key_variables();
    if let Some(name) = keys.iter().map(String::as_str).find(is_set) {
        return AgentKey::Found(name.to_owned());
    }
    let url = external.url_variables().find(is_set);
    match (base_url, url) {
        (Some(_), _) => AgentKey::Found("baseUrl".to_owned()),
        (None, Some(name)) => AgentKey::Found(name.to_owned()),
        (None, None) => AgentKey::Wanted(keys),
    }
}

/// How an agent authenticates with a provider that has this API.
fn found(format: WireFormat, agent: &Agent, env: &Environment) -> AgentKey {
    let mut settings = Settings::of(env);
    if let AgentKind::Builtin {
        base_url,
        api_key_variable,
        ..
    } = &agent.kind
    {
        settings.base_url = base_url.as_deref();
        settings.api_key_variable = api_key_variable.as_deref();
    }
    match key_variable(format, &agent.name, &settings) {
        Ok(variable) => AgentKey::Found(variable.unwrap_or_else(|| "its URL".to_owned())),
        Err(ModelOpenError::MissingKey { variables, .. }) => AgentKey::Wanted(variables),
        Err(_) => AgentKey::Own,
    }
}

/// Starts the installed programs without a task, a few at once and each in an empty home, and
/// collects their versions or problems. `pass` names variables that agents from files get; `guard`
/// is the `proctor` binary.
pub async fn check_programs(
    surveys: &mut [Survey],
    env: &Environment,
    pass: &[String],
    guard: &Path,
) -> std::io::Result<()> {
    let mut checking = JoinSet::new();
    let room = Arc::new(Semaphore::new(AT_ONCE));
    for (at, survey) in surveys.iter_mut().enumerate() {
        let is_there = |program: &Program| program.path.is_some();
        let is_there = survey.program.as_ref().is_some_and(is_there);
        let Some(external) = survey.external.take().filter(ExternalAgent::can_be_checked) else {
            continue;
        };
        if !is_there {
            continue;
        }
        let stage = AgentFolders::new()?;
        // Programs that Proctor knows print their version without a key.
        let is_known = external.adapter().is_some_and(|it| !it.is_from_file());
        let env = external.environment(env, pass, stage.homes(), is_known);
        let (guard, room) = (guard.to_owned(), room.clone());
        checking.spawn(async move {
            let _room = room.acquire().await;
            let checked = external.checked(&env, &stage.folder, &guard).await.clone();
            stage.clear().await;
            (at, checked)
        });
    }
    while let Some(checked) = checking.join_next().await {
        let Ok((at, checked)) = checked else { continue };
        let survey = &mut surveys[at];
        survey.is_checked = true;
        match (checked, &mut survey.program) {
            (Ok(version), Some(program)) => program.version = version,
            (Ok(_), None) => {}
            (Err(why), _) => survey.broken = Some(why),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
