//! Whether a suite can run here: its sources, agents, judge and servers.

use proctor_core::suite::agent::AgentKind;
use proctor_core::suite::{Isolation, JudgeModel, Server, Suite};
use proctor_models::{Model, Settings};
use proctor_record::event::Actor;
use proctor_record::hint::counted;
use proctor_wire::client::ConnectOptions;
use proctor_wire::recorder::Recorder;

use super::{Diagnosis, DiagnosisArea, DiagnosisOptions, DiagnosisState, installed};
use crate::engine::Engine;
use crate::engine::opening::needs_judge;
use crate::external::{Adapter, check_programs, survey};
use crate::preflight::{self, PreflightError, PreflightReport};
use crate::trial_folder::TrialFolder;

pub(super) async fn check(
    engine: &Engine,
    suite: &Suite,
    options: &DiagnosisOptions,
) -> Vec<Diagnosis> {
    let mut all = Vec::new();
    let file = suite.path.display();
    all.extend(suite.unfetched().map(|source| {
        let name = format!("source {}", source.name);
        let detail = "not in the cache";
        Diagnosis::new(DiagnosisArea::Suite, name, DiagnosisState::Failed, detail)
            .mended_by(format!("proctor sources fetch '{file}'"))
    }));
    all.extend(agents(engine, suite, options).await);
    all.extend(judge(engine, suite));
    let folder = TrialFolder::new("doctor");
    // A server may need its workspace to start.
    let mut workspaces = suite
        .cases
        .iter()
        .filter_map(|case| case.workspace.as_deref());
    if let Err(error) = folder.prepare(workspaces.next()).await {
        let (area, state) = (DiagnosisArea::Suite, DiagnosisState::Failed);
        all.push(Diagnosis::new(area, "workspace", state, error.to_string()));
        return all;
    }
    for server in &suite.servers {
        all.push(match look(engine, suite, server, &folder, options).await {
            Ok(report) => answered(&report),
            Err(error) => unusable(server, &error, suite),
        });
    }
    all
}

async fn agents(engine: &Engine, suite: &Suite, options: &DiagnosisOptions) -> Vec<Diagnosis> {
    let env = &engine.environment;
    let agents = suite.agents.iter();
    let agents = agents.filter(|agent| agent.kind != AgentKind::Nobody);
    let mut surveys: Vec<_> = agents.map(|agent| survey(agent, env)).collect();
    let checked = check_programs(&mut surveys, env, &options.pass_env, &engine.program).await;
    if let Err(error) = checked {
        let (area, state) = (DiagnosisArea::Suite, DiagnosisState::Failed);
        return vec![Diagnosis::new(area, "agents", state, error.to_string())];
    }
    let surveys = surveys.iter();
    let checked = surveys.map(|survey| {
        let checked = installed::agent(DiagnosisArea::Suite, survey, DiagnosisState::Failed);
        Diagnosis {
            name: format!("agent {}", checked.name),
            ..checked
        }
    });
    checked.collect()
}

fn judge(engine: &Engine, suite: &Suite) -> Option<Diagnosis> {
    let judge = suite.judge.as_ref();
    let judge = judge.filter(|_| suite.cases.iter().any(needs_judge))?;
    // A program that judges is an agent with checks of its own, which need no key of ours.
    if let JudgeModel::Agent(agent) = &judge.model
        && Adapter::of(agent).is_some()
    {
        let survey = survey(agent, &engine.environment);
        let checked = installed::agent(DiagnosisArea::Suite, &survey, DiagnosisState::Failed);
        return Some(Diagnosis {
            name: "judge".to_owned(),
            ..checked
        });
    }
    let opened = Model::open_judge(&judge.model, &Settings::of(&engine.environment));
    let (state, detail) = match opened {
        Ok(_) => (DiagnosisState::Ok, "can be asked".to_owned()),
        Err(error) => (DiagnosisState::Failed, error.to_string()),
    };
    Some(Diagnosis::new(DiagnosisArea::Suite, "judge", state, detail))
}

/// Starts a server as the preflight of a run does.
async fn look(
    engine: &Engine,
    suite: &Suite,
    server: &Server,
    folder: &TrialFolder,
    options: &DiagnosisOptions,
) -> Result<PreflightReport, PreflightError> {
    let recorder = Recorder::nothing().redacting(&engine.redactor(&suite.servers));
    let trial = (suite.isolation != Isolation::Run).then_some(folder.values());
    let declared = suite.declared_replies(server);
    let connect = ConnectOptions {
        answers: crate::replies::answers(&declared, None, trial)
            .map_err(|error| PreflightError::StartFailed(error.to_string()))?,
        trial: trial.cloned(),
        ..engine.connect_options(
            Actor::Preflight,
            recorder,
            &options.pass_env,
            options.timeouts,
            folder,
        )
    };
    let probe = preflight::look(server, &connect).await?;
    probe.client.close().await;
    Ok(probe.report)
}

fn answered(report: &PreflightReport) -> Diagnosis {
    let seen = &report.seen;
    let count =
        |count: u64, word: &str| counted(usize::try_from(count).unwrap_or(usize::MAX), word);
    let version = seen.version.as_deref().unwrap_or_default();
    let who = format!("{} {version}", seen.name.as_deref().unwrap_or("no name"));
    let detail = format!(
        "{}, MCP {}: {}, {}, {}",
        who.trim_end(),
        seen.protocol,
        count(seen.tools, "tool"),
        count(seen.resources, "resource"),
        count(seen.prompts, "prompt")
    );
    let name = format!("server {}", seen.server);
    Diagnosis::new(DiagnosisArea::Suite, name, DiagnosisState::Ok, detail)
}

fn unusable(server: &Server, error: &PreflightError, suite: &Suite) -> Diagnosis {
    let name = format!("server {}", server.name);
    let state = DiagnosisState::Failed;
    let diagnosis = Diagnosis::new(DiagnosisArea::Suite, name, state, error.to_string());
    let mut steps = suite.cases.iter().flat_map(|case| &case.setup);
    diagnosis.mended_by(if !suite.setup.is_empty() || steps.next().is_some() {
        "start it by hand; `proctor doctor` runs no setup steps, which it may need"
    } else {
        "start it by hand: its command is in the MCP config of the suite"
    })
}
