//! `proctor agents`: which agents can run on this machine, and what the others need.

use anyhow::Context;
use proctor_core::suite::{Agent, Environment, load_agent, load_agent_file};
use proctor_record::problem::Problems;
use proctor_record::redact::{Redactor, secrets_of};
use proctor_run::external::{AgentKey, Survey, check_programs, survey, survey_known};
use serde_json::{Value, json};

use super::{drawn, environment};
use crate::args::{AgentsArgs, OutputFormat};
use crate::exit::Exit;
use crate::output;
use crate::threads;

mod table;

pub(crate) fn run(args: &AgentsArgs) -> anyhow::Result<Exit> {
    let env = environment();
    let mut problems = Problems::default();
    let agents = named(args, &mut problems);
    output::message(&drawn(&problems))?;
    if problems.has_errors() {
        return Ok(Exit::Usage);
    }
    let mut surveys = match &agents[..] {
        [] => survey_known(&env),
        agents => agents.iter().map(|agent| survey(agent, &env)).collect(),
    };
    if !args.no_versions {
        let guard = std::env::current_exe()
            .context("can't determine the path of the proctor executable")?;
        let runtime = threads::many_workers(2)?;
        runtime.block_on(check_programs(&mut surveys, &env, &args.pass_env, &guard))?;
    }
    hide_secrets(&mut surveys, &agents, &env);
    match args.output.output {
        OutputFormat::Json => output::json(&document(&surveys))?,
        OutputFormat::Text => output::result(&table::render(&surveys))?,
    }
    let is_asked = !args.agents.is_empty();
    if is_asked && !surveys.iter().all(Survey::is_usable) {
        return Ok(Exit::Failed);
    }
    Ok(Exit::Ok)
}

/// Redacts secrets in what programs printed: agents from files have keys.
fn hide_secrets(surveys: &mut [Survey], agents: &[Agent], env: &Environment) {
    let own = agents
        .iter()
        .flat_map(|agent| secrets_of(&agent.env.filled(env)));
    let redactor = Redactor::new(secrets_of(env).into_iter().chain(own));
    for survey in surveys {
        let version = survey
            .program
            .as_mut()
            .and_then(|program| program.version.as_mut());
        for text in survey.broken.iter_mut().chain(version) {
            *text = redactor.text(text).into_owned();
        }
    }
}

/// The agents that the command line names.
fn named(args: &AgentsArgs, problems: &mut Problems) -> Vec<Agent> {
    let mut agents = Vec::new();
    for file in &args.files {
        agents.extend(load_agent_file(file, problems));
    }
    for text in &args.agents {
        agents.extend(load_agent(text, None, problems));
    }
    agents
}

fn document(surveys: &[Survey]) -> Value {
    let agents = surveys.iter().map(|survey| {
        let program = survey.program.as_ref().map(|program| {
            json!({
                "name": program.name,
                "path": program.path,
                "version": program.version,
                "install": program.install,
            })
        });
        let (found, wanted) = match &survey.key {
            AgentKey::Found(variable) => (Some(variable), &[][..]),
            AgentKey::Wanted(variables) => (None, &variables[..]),
            AgentKey::NotNeeded | AgentKey::Own => (None, &[][..]),
        };
        json!({
            "name": survey.name,
            "usable": survey.is_usable(),
            "checked": survey.is_checked,
            "dryRuns": survey.runs_scripts(),
            "modelTap": survey.can_be_told,
            "program": program,
            "key": {"found": found, "wanted": wanted},
            "problem": survey.problem.as_ref().or(survey.broken.as_ref()),
        })
    });
    json!({"agents": agents.collect::<Vec<_>>()})
}
