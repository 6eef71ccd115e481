//! The plan of a run: its trials, as written to the record and read again to resume.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use proctor_core::plan::{Plan, PlanOptions};
use proctor_core::suite::agent::AgentKind;
use proctor_core::suite::{
    Agent, Case, Isolation, JudgeConfig, JudgeModel, Limits, Suite, agent_settings, digest, parts,
    server_settings, surroundings,
};
use proctor_record::event::{
    PlannedAgent, PlannedCase, PlannedEval, PlannedKnownFailure, PlannedLimits, PlannedOptions,
    RunKind, RunPlanned,
};

use super::error::EngineError;
use super::{Engine, config};
use crate::runner::{TrialList, TrialSpec};

/// The plan of a new run; `None` if nothing is selected. `named` is the location of its suite. If
/// another run is given, each case runs as often as there.
pub(super) fn plan(
    engine: &Engine,
    suite: &Suite,
    options: &PlanOptions,
    named: SuiteLocation,
    asked: &PlannedOptions,
    as_often_as: Option<&RunPlanned>,
    workers: u32,
) -> Result<Option<(RunPlanned, TrialList)>, EngineError> {
    let mut plan = Plan::new(suite, options);
    for planned in &mut plan.cases {
        let then = as_often_as.iter().flat_map(|then| &then.cases);
        let then = then.filter(|then| then.id == planned.case.id.0);
        planned.runs = then.map(|then| then.runs).next().unwrap_or(planned.runs);
    }
    if plan.cases.is_empty() {
        return Ok(None);
    }
    let mut cases = Vec::new();
    let mut trials = TrialList::default();
    let places = places(suite);
    for planned in &plan.cases {
        let Some(&at) = places.get(planned.case.id.0.as_str()) else {
            return Err(EngineError::usage(
                "the plan has a case that is not in the suite",
            ));
        };
        cases.push(planned_case(planned.case, planned.runs, &planned.limits)?);
        let known = &asked.known_failures;
        trials.extend(specs(suite, at, planned.runs, planned.limits, known));
    }
    let redactor = engine.redactor(&suite.servers);
    let planned = RunPlanned {
        suite: named.suite,
        mcp_config: named.mcp_config,
        cases,
        agents: suite.agents.iter().map(planned_agent).collect(),
        judge: suite.judge.as_ref().map(judge_name),
        shared_servers: suite.isolation == Isolation::Run,
        surroundings: Some(settings(surroundings(suite))?),
        server_settings: settings(server_settings(suite, &redactor))?,
        agent_settings: settings(agent_settings(suite, &redactor))?,
        config: Some(Box::new(config::config(suite, options, workers))),
        warnings: Vec::new(),
        kind: RunKind::default(),
        not_run: Vec::new(),
        asked: asked.clone(),
    };
    Ok(Some((planned, trials)))
}

/// The paths of a run's suite, with which a later run finds it again.
pub(super) struct SuiteLocation {
    pub(super) suite: String,
    pub(super) mcp_config: Option<String>,
}

impl SuiteLocation {
    pub(super) fn new(file: &Path, mcp_config: Option<&Path>) -> Result<Self, EngineError> {
        let absolute = |path: &Path| {
            let path = std::path::absolute(path).map_err(|error| {
                EngineError::unusable("can't determine the path of the suite", error)
            })?;
            Ok::<_, EngineError>(path.display().to_string())
        };
        Ok(Self {
            suite: absolute(file)?,
            mcp_config: mcp_config.map(absolute).transpose()?,
        })
    }
}

/// The plan of a resumed run; an error if the suite has changed.
pub(super) fn plan_again(
    engine: &Engine,
    suite: &Suite,
    planned: RunPlanned,
) -> Result<(RunPlanned, TrialList), EngineError> {
    let agents: Vec<PlannedAgent> = suite.agents.iter().map(planned_agent).collect();
    if agents != planned.agents {
        return Err(EngineError::usage(
            "the agents changed since the run started; start a new run",
        ));
    }
    if suite.judge.as_ref().map(judge_name) != planned.judge {
        return Err(EngineError::usage(
            "the judge changed since the run started; start a new run",
        ));
    }
    let now = settings(surroundings(suite))?;
    if planned
        .surroundings
        .as_ref()
        .is_some_and(|known| *known != now)
    {
        return Err(EngineError::usage(
            "the servers, model scripts, agent files, `config.setup`, `config.cleanup` or \
             `config.preflight` changed since the run started; start a new run",
        ));
    }
    refuse_other_settings(engine, suite, &planned)?;
    let mut trials = TrialList::default();
    let places = places(suite);
    for case in &planned.cases {
        let Some(&at) = places.get(case.id.as_str()) else {
            return Err(EngineError::usage(format!(
                "the case `{}` no longer exists; start a new run",
                case.id
            )));
        };
        if hash_of(&suite.cases[at])? != case.hash {
            return Err(EngineError::usage(format!(
                "the case `{}` changed since the run started; start a new run",
                case.id
            )));
        }
        let limits = limits_of(&case.limits);
        let known = &planned.asked.known_failures;
        trials.extend(specs(suite, at, case.runs, limits, known));
    }
    Ok((planned, trials))
}

/// Refuses changed settings of servers and agents. Records of older versions don't contain them.
fn refuse_other_settings(
    engine: &Engine,
    suite: &Suite,
    planned: &RunPlanned,
) -> Result<(), EngineError> {
    let redactor = engine.redactor(&suite.servers);
    let changed = |then: &BTreeMap<String, String>, now: &BTreeMap<String, String>| {
        let mut then = then.iter();
        let changed = then.find(|(name, hash)| now.get(*name) != Some(*hash));
        changed.map(|(name, _)| name.clone())
    };
    let servers = settings(server_settings(suite, &redactor))?;
    if let Some(name) = changed(&planned.server_settings, &servers) {
        return Err(EngineError::usage(format!(
            "the server `{name}` changed since the run started (its command, arguments, \
             environment, URL or headers); start a new run"
        )));
    }
    let agents = settings(agent_settings(suite, &redactor))?;
    if let Some(name) = changed(&planned.agent_settings, &agents) {
        return Err(EngineError::usage(format!(
            "the agent `{name}` changed since the run started; start a new run"
        )));
    }
    Ok(())
}

/// The settings of a suite, or an error if they can't be read.
fn settings<T, E>(read: Result<T, E>) -> Result<T, EngineError>
where
    E: std::error::Error + Send + Sync + 'static,
{
    read.map_err(|error| EngineError::Missing(error.into()))
}

/// The index of each case in its suite, by id.
fn places(suite: &Suite) -> HashMap<&str, usize> {
    let cases = suite.cases.iter().enumerate();
    cases.map(|(at, case)| (case.id.0.as_str(), at)).collect()
}

fn specs<'a>(
    suite: &'a Suite,
    case: usize,
    runs: u32,
    limits: Limits,
    known: &'a [PlannedKnownFailure],
) -> impl Iterator<Item = TrialSpec> + use<'a> {
    let Case {
        parallel, name, id, ..
    } = &suite.cases[case];
    let parallel = *parallel;
    let now = jiff::Timestamp::now().to_string();
    let by = move |agent: usize| {
        let known_failure = known.iter().any(|known| {
            known.is_about(name, &id.0)
                && known.is_of(&suite.agents[agent].name)
                && !known.is_expired(&now)
        });
        (1..=runs).map(move |repeat| TrialSpec {
            case,
            agent,
            repeat,
            attempt: 1,
            limits,
            parallel,
            known_failure,
        })
    };
    (0..suite.agents.len()).flat_map(by)
}

pub(super) fn planned_case(
    case: &Case,
    runs: u32,
    limits: &Limits,
) -> Result<PlannedCase, EngineError> {
    let micros = |time: Option<Duration>| {
        time.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    };
    Ok(PlannedCase {
        id: case.id.0.clone(),
        name: case.name.clone(),
        path: case.path.display().to_string(),
        hash: hash_of(case)?,
        runs,
        pass: case.pass.map(|rule| (rule.passed, rule.of)),
        difficulty: case
            .difficulty
            .map(|difficulty| difficulty.word().to_owned()),
        labels: case.labels.clone(),
        parallel: case.parallel,
        verify_steps: u32::try_from(case.verify.len()).ok(),
        parts: Some(parts(case).map_err(|error| unreadable(case, error))?),
        places: case.places.clone(),
        limits: PlannedLimits {
            timeout: micros(limits.timeout),
            cleanup_timeout: micros(limits.cleanup_timeout),
            max_turns: limits.max_turns,
            max_tokens: limits.max_tokens,
            max_cost_usd: limits.max_cost_usd,
        },
        eval: case.shipped.as_ref().map(|shipped| PlannedEval {
            server: shipped.server.clone(),
            id: shipped.eval.id.clone(),
            level: shipped.eval.input.kind().to_owned(),
            judged: shipped.needs_judge(),
        }),
    })
}

fn limits_of(planned: &PlannedLimits) -> Limits {
    Limits {
        timeout: planned.timeout.map(Duration::from_micros),
        cleanup_timeout: planned.cleanup_timeout.map(Duration::from_micros),
        max_turns: planned.max_turns,
        max_tokens: planned.max_tokens,
        max_cost_usd: planned.max_cost_usd,
    }
}

pub(super) fn planned_agent(agent: &Agent) -> PlannedAgent {
    let model = match &agent.kind {
        AgentKind::Builtin { model, .. } => model.as_ref(),
        _ => None,
    };
    PlannedAgent {
        name: agent.name.clone(),
        model: model.map(ToString::to_string),
    }
}

pub(super) fn judge_name(judge: &JudgeConfig) -> String {
    match &judge.model {
        JudgeModel::Agent(agent) => agent
            .model_in_loop()
            .map_or_else(|| agent.name.clone(), ToString::to_string),
        JudgeModel::Environment { .. } => "from the environment".to_owned(),
    }
}

fn hash_of(case: &Case) -> Result<String, EngineError> {
    digest(case).map_err(|error| unreadable(case, error))
}

fn unreadable(case: &Case, error: std::io::Error) -> EngineError {
    EngineError::unusable(format!("the case `{}` can't be read", case.name), error)
}
