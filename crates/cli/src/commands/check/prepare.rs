//! Everything that can be known before anything is started: the suite, its plan, its models, and
//! what is missing.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use proctor_core::event::{
    PlannedAgent, PlannedCase, PlannedEval, PlannedLimits, PlannedOptions, PlannedWarning,
    RunPlanned,
};
use proctor_core::hint::listed;
use proctor_core::plan::{Plan, PlanOptions};
use proctor_core::problem::{Code, Problems};
use proctor_core::redact::{Redactor, secrets_of};
use proctor_core::suite::agent::{AgentKind, ModelRef};
use proctor_core::suite::server::Transport;
use proctor_core::suite::{
    Agent, Case, Environment, Inputs, Isolation, Judge, JudgeModel, Limits, Server, Suite,
    agent_settings, digest, load, load_agent, load_script, server_settings, surroundings,
};
use proctor_report::evals::NotRun;
use proctor_run::context::RunContext;
use proctor_run::runner::TrialSpec;

use super::config;
use super::context::context;
use super::folder::plan_of;
use super::{say, shipped};
use crate::args::CheckArgs;
use crate::commands::list::nothing_selected;
use crate::commands::{drawn, environment, secrets, tally};
use crate::exit::Exit;
use crate::output;

/// What a run is made of.
pub(in crate::commands) struct Prepared {
    pub(in crate::commands) context: RunContext,
    pub(in crate::commands) planned: RunPlanned,
    /// Every trial of the plan, in order.
    pub(in crate::commands) trials: Vec<TrialSpec>,
    /// Of servers' own evals: those that are listed and not run.
    pub(in crate::commands) not_run: Vec<NotRun>,
}

/// Prepares a run; gives the exit code, if what is wrong was said already.
pub(super) fn prepare(args: &CheckArgs) -> anyhow::Result<Result<Prepared, Exit>> {
    let env = environment();
    let replayed = args.replay.as_deref().map(plan_of).transpose()?;
    let (file, earlier) = match (
        &args.file,
        args.resume.as_ref().or(args.retry_errors.as_ref()),
    ) {
        (_, Some(folder)) => {
            let planned = plan_of(folder)?;
            (PathBuf::from(&planned.suite), Some(planned))
        }
        (Some(file), None) => (file.clone(), None),
        (None, None) => match &replayed {
            Some(planned) => (PathBuf::from(&planned.suite), None),
            None => bail!("which suite? name an eval file"),
        },
    };
    let asked = match &earlier {
        Some(earlier) => asked_again(args, &earlier.asked)?,
        None => asked_for(args, replayed.as_ref().map(|planned| &planned.asked))?,
    };
    let mcp_config = mcp_config(args, earlier.as_ref().or(replayed.as_ref()));
    let (mut suite, warnings) = match load_suite(args, &file, mcp_config.as_deref(), &asked, &env)?
    {
        Ok(loaded) => loaded,
        Err(exit) => return Ok(Err(exit)),
    };
    if let Err(exit) = stand_in(&asked, &mut suite)? {
        return Ok(Err(exit));
    }
    refuse_what_can_t_be_run(&suite)?;
    let not_run = match shipped::fill(args, &mut suite)? {
        Ok(not_run) => not_run,
        Err(exit) => return Ok(Err(exit)),
    };
    refuse_programs_for_models_work(&suite)?;
    let (mut planned, trials) = match earlier {
        Some(earlier) => plan_again(&suite, earlier)?,
        None => match plan(
            &suite,
            &args.plan.options(),
            Named::new(&file, mcp_config.as_deref())?,
            &asked,
            replayed.as_ref().filter(|_| args.plan.runs.is_none()),
            args.run.jobs.unwrap_or(args.run.parallel),
        )? {
            Some(plan) => plan,
            None => return nothing_selected(&suite, args.run.output.output).map(Err),
        },
    };
    planned.warnings = warnings;
    let context = match context(&args.run, &asked, suite, &trials, env)? {
        Ok(context) => context,
        Err(exit) => return Ok(Err(exit)),
    };
    Ok(Ok(Prepared {
        context,
        planned,
        trials,
        not_run,
    }))
}

/// What the command line asks for. A run that is replayed has the agents that it had, unless others
/// are given.
fn asked_for(
    args: &CheckArgs,
    replayed: Option<&PlannedOptions>,
) -> anyhow::Result<PlannedOptions> {
    let mut asked = PlannedOptions {
        agents: args.agents.clone(),
        model_tap: args.model_tap,
        model: args.model.clone(),
        judge: args.judge.clone(),
        strict: args.run.strict,
        pass_env: args.pass_env.clone(),
        replay: None,
        replay_strict: args.replay_strict,
    };
    let Some(then) = replayed else {
        return Ok(asked);
    };
    if asked.agents.is_empty() && asked.model.is_none() {
        asked.agents.clone_from(&then.agents);
        asked.model.clone_from(&then.model);
    }
    asked.judge = asked.judge.or_else(|| then.judge.clone());
    asked.model_tap |= then.model_tap;
    asked.pass_env.extend(then.pass_env.iter().cloned());
    let folder = args.replay.as_deref().unwrap_or(Path::new("."));
    let folder = std::path::absolute(folder).context("can't tell where the run is")?;
    asked.replay = Some(folder.display().to_string());
    Ok(asked)
}

/// What the command line asked for when a run started, and asks for now.
fn asked_again(args: &CheckArgs, earlier: &PlannedOptions) -> anyhow::Result<PlannedOptions> {
    let flags = &args.plan;
    let replans = flags.label_selector.is_some()
        || flags.run.is_some()
        || flags.runs.is_some()
        || flags.task_timeout.is_some()
        || flags.default_task_timeout.is_some()
        || flags.cleanup_timeout.is_some()
        || flags.default_cleanup_timeout.is_some();
    if replans {
        bail!(
            "a run that is gone on with keeps its plan: cases, runs and limits can't be given anew"
        );
    }
    let mut pass_env = earlier.pass_env.clone();
    pass_env.extend(args.pass_env.iter().cloned());
    Ok(PlannedOptions {
        replay: earlier.replay.clone(),
        replay_strict: earlier.replay_strict,
        agents: match &args.agents[..] {
            [] => earlier.agents.clone(),
            given => given.to_vec(),
        },
        model_tap: args.model_tap || earlier.model_tap,
        model: args.model.clone().or_else(|| earlier.model.clone()),
        judge: args.judge.clone().or_else(|| earlier.judge.clone()),
        strict: args.run.strict || earlier.strict,
        pass_env,
    })
}

/// The MCP config that stands in for the suite's own. A run that is gone on with keeps its servers.
fn mcp_config(args: &CheckArgs, earlier: Option<&RunPlanned>) -> Option<PathBuf> {
    let of_run = || earlier?.mcp_config.as_ref().map(PathBuf::from);
    args.loading.mcp_config_file.clone().or_else(of_run)
}

fn load_suite(
    args: &CheckArgs,
    file: &Path,
    mcp_config: Option<&Path>,
    asked: &PlannedOptions,
    env: &Environment,
) -> anyhow::Result<Result<(Suite, Vec<PlannedWarning>), Exit>> {
    let roots = args.loading.source_roots();
    let inputs = Inputs {
        env,
        source_roots: &roots,
        runs: args.plan.runs,
        mcp_config,
        judge_given: asked.judge.is_some(),
    };
    let mut problems = Problems::default();
    let loaded = load(file, &inputs, &mut problems);
    problems.promote(Code::UnsetVariable);
    // Such a task ends in an error of its own, and the others are run.
    problems.demote(Code::UnmetRequirement);
    if asked.strict {
        problems.promote(Code::UnknownKey);
    }
    output::message(&drawn(&problems))?;
    match loaded {
        Some(suite) if !problems.has_errors() => Ok(Ok((
            suite,
            problems.iter().map(PlannedWarning::from).collect(),
        ))),
        _ => {
            say(&format!("{}: {}", file.display(), tally(&problems)))?;
            Ok(Err(Exit::Usage))
        }
    }
}

/// Puts the models of the command line where the suite's own agents and judge are.
pub(in crate::commands) fn stand_in(
    asked: &PlannedOptions,
    suite: &mut Suite,
) -> anyhow::Result<Result<(), Exit>> {
    let mut problems = Problems::default();
    let mut open = |text: &String| -> anyhow::Result<Option<Agent>> {
        let mut model = ModelRef::parse(text)?;
        if model.provider == Some("scripted") {
            let Some(script) = load_script(Path::new(&model.id), &mut problems) else {
                return Ok(None);
            };
            model.script = Some(Arc::new(script));
        }
        Ok(Some(Agent::on_model(model)))
    };
    let agent = match &asked.model {
        Some(model) if asked.agents.is_empty() => open(model)?,
        _ => None,
    };
    let judge = asked.judge.as_ref().map(&mut open).transpose()?;
    let mut agents: Vec<Agent> = Vec::from_iter(agent);
    for text in &asked.agents {
        let agent = load_agent(text, asked.model.as_deref(), &mut problems);
        agents.extend(agent);
    }
    output::message(&drawn(&problems))?;
    if problems.has_errors() {
        return Ok(Err(Exit::Usage));
    }
    for (at, agent) in agents.iter().enumerate() {
        if agents[..at].iter().any(|known| known.name == agent.name) {
            bail!("two agents are called `{}`", agent.name);
        }
    }
    if !agents.is_empty() {
        suite.agents = agents;
    }
    for agent in suite.agents.iter_mut().filter(|_| asked.model_tap) {
        agent.model_tap = true;
    }
    if let Some(Some(agent)) = judge {
        suite.judge = Some(Judge {
            model: JudgeModel::Agent(Box::new(agent)),
            votes: suite.judge.as_ref().map_or(1, |judge| judge.votes),
        });
    }
    Ok(Ok(()))
}

/// What a suite may ask for and this version can't do is said before anything is started.
fn refuse_what_can_t_be_run(suite: &Suite) -> anyhow::Result<()> {
    if !suite.unfetched.is_empty() {
        let names = listed(suite.unfetched.iter().map(|source| source.name.as_str()));
        bail!("the checkout of {names} is needed: give it with `--source NAME=DIR`");
    }
    let shares = suite.isolation == Isolation::Run;
    let on_stdio = |server: &Server| matches!(server.transport, Transport::Stdio { .. });
    if let (true, Some(agent), Some(server)) = (
        shares,
        suite.agents.iter().find(|agent| is_external(agent)),
        suite.servers.iter().find(|server| on_stdio(server)),
    ) {
        bail!(
            "`isolation: run` can't be kept: the agent `{}` is a program of its own, which starts \
             the server `{}` itself",
            agent.name,
            server.name
        );
    }
    Ok(())
}

/// Evals that servers ship are for models; those that only call a tool are for nobody.
fn refuse_programs_for_models_work(suite: &Suite) -> anyhow::Result<()> {
    let is_for_model = |case: &&Case| {
        let shipped = case.shipped.as_ref();
        shipped.is_some_and(|shipped| shipped.eval.input.kind() != "execution")
    };
    let program = suite.agents.iter().find(|agent| is_external(agent));
    if let (Some(agent), Some(case)) = (program, suite.cases.iter().find(is_for_model)) {
        bail!(
            "the agent `{}` is a program of its own, and `{}`, which a server ships, is for a model: \
             give one with `--model MODEL`",
            agent.name,
            case.name
        );
    }
    Ok(())
}

/// Whether an agent is a program of its own.
fn is_external(agent: &Agent) -> bool {
    model_of(agent).is_none() && agent.kind != AgentKind::Nobody
}

/// The model of an agent that is Proctor's own loop.
pub(super) fn model_of(agent: &Agent) -> Option<&ModelRef> {
    match &agent.kind {
        AgentKind::Builtin {
            builtin: "llm-agent" | "openai-agent" | "openai-acp",
            model,
            ..
        } => model.as_ref(),
        _ => None,
    }
}

/// The plan of a new run; `None` if nothing is selected. `named` says where its suite is. Cases that
/// another run has are run as often as there, if one is given.
pub(in crate::commands) fn plan(
    suite: &Suite,
    options: &PlanOptions,
    named: Named,
    asked: &PlannedOptions,
    as_often_as: Option<&RunPlanned>,
    workers: u32,
) -> anyhow::Result<Option<(RunPlanned, Vec<TrialSpec>)>> {
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
    let mut trials = Vec::new();
    let places = places(suite);
    for planned in &plan.cases {
        let at = places.get(planned.case.id.0.as_str());
        let at = *at.context("a case is not in its suite")?;
        cases.push(planned_case(planned.case, planned.runs, &planned.limits)?);
        trials.extend(specs(suite, at, planned.runs, planned.limits));
    }
    let redactor = redactor_of(suite);
    let planned = RunPlanned {
        suite: named.suite,
        mcp_config: named.mcp_config,
        cases,
        agents: suite.agents.iter().map(planned_agent).collect(),
        judge: suite.judge.as_ref().map(judge_name),
        shared_servers: suite.isolation == Isolation::Run,
        surroundings: Some(surroundings(suite)),
        server_settings: server_settings(suite, &redactor)?,
        agent_settings: agent_settings(suite, &redactor)?,
        asked: asked.clone(),
        config: Some(Box::new(config::config(suite, options, workers))),
        warnings: Vec::new(),
    };
    Ok(Some((planned, trials)))
}

/// Where a run's suite is, to be found again.
pub(in crate::commands) struct Named {
    pub(in crate::commands) suite: String,
    pub(in crate::commands) mcp_config: Option<String>,
}

impl Named {
    fn new(file: &Path, mcp_config: Option<&Path>) -> anyhow::Result<Self> {
        let absolute = |path: &Path| {
            let path = std::path::absolute(path).context("can't tell where the suite is")?;
            Ok::<_, anyhow::Error>(path.display().to_string())
        };
        Ok(Self {
            suite: absolute(file)?,
            mcp_config: mcp_config.map(absolute).transpose()?,
        })
    }
}

/// The plan of a run that is gone on with: what it was, if the suite still is what it was.
fn plan_again(suite: &Suite, planned: RunPlanned) -> anyhow::Result<(RunPlanned, Vec<TrialSpec>)> {
    let agents: Vec<PlannedAgent> = suite.agents.iter().map(planned_agent).collect();
    if agents != planned.agents {
        bail!("the agents are not those of the run; start a new one");
    }
    if suite.judge.as_ref().map(judge_name) != planned.judge {
        bail!("the judge is not that of the run; start a new one");
    }
    if planned
        .surroundings
        .as_ref()
        .is_some_and(|known| *known != surroundings(suite))
    {
        bail!(
            "the servers, the scripts of models, or agent files have changed since the run started; \
             start a new one"
        );
    }
    refuse_other_settings(suite, &planned)?;
    let mut trials = Vec::new();
    let places = places(suite);
    for case in &planned.cases {
        let Some(&at) = places.get(case.id.as_str()) else {
            bail!(
                "the case `{}` is gone since the run started; start a new one",
                case.id
            );
        };
        if digest(&suite.cases[at])? != case.hash {
            bail!(
                "the case `{}` has changed since the run started; start a new one",
                case.id
            );
        }
        let limits = limits_of(&case.limits);
        trials.extend(specs(suite, at, case.runs, limits));
    }
    Ok((planned, trials))
}

/// Records of older versions don't tell what servers and agents were given.
fn refuse_other_settings(suite: &Suite, planned: &RunPlanned) -> anyhow::Result<()> {
    let redactor = redactor_of(suite);
    let changed = |then: &BTreeMap<String, String>, now: &BTreeMap<String, String>| {
        let mut then = then.iter();
        let changed = then.find(|(name, hash)| now.get(*name) != Some(*hash));
        changed.map(|(name, _)| name.clone())
    };
    let servers = server_settings(suite, &redactor)?;
    if let Some(name) = changed(&planned.server_settings, &servers) {
        bail!(
            "the server `{name}` has changed since the run started (its command, arguments, \
             environment, URL or headers); start a new run"
        );
    }
    let agents = agent_settings(suite, &redactor)?;
    if let Some(name) = changed(&planned.agent_settings, &agents) {
        bail!("the agent `{name}` has changed since the run started; start a new run");
    }
    Ok(())
}

/// What takes out the secrets that are known before anything is opened.
fn redactor_of(suite: &Suite) -> Redactor {
    let of_servers = suite.servers.iter().flat_map(secrets::of_server);
    Redactor::new(secrets_of(&environment()).into_iter().chain(of_servers))
}

/// Where each case is in its suite, by id.
fn places(suite: &Suite) -> HashMap<&str, usize> {
    let cases = suite.cases.iter().enumerate();
    cases.map(|(at, case)| (case.id.0.as_str(), at)).collect()
}

fn specs(suite: &Suite, case: usize, runs: u32, limits: Limits) -> Vec<TrialSpec> {
    let parallel = suite.cases[case].parallel;
    let by = |agent: usize| {
        (1..=runs).map(move |repeat| TrialSpec {
            case,
            agent,
            repeat,
            attempt: 1,
            limits,
            parallel,
        })
    };
    (0..suite.agents.len()).flat_map(by).collect()
}

fn planned_case(case: &Case, runs: u32, limits: &Limits) -> anyhow::Result<PlannedCase> {
    let micros = |time: Option<Duration>| {
        time.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    };
    Ok(PlannedCase {
        id: case.id.0.clone(),
        name: case.name.clone(),
        path: case.path.display().to_string(),
        hash: digest(case)?,
        runs,
        pass: case.pass.map(|rule| (rule.passed, rule.of)),
        difficulty: case
            .difficulty
            .map(|difficulty| difficulty.word().to_owned()),
        labels: case.labels.clone(),
        parallel: case.parallel,
        verify_steps: u32::try_from(case.verify.len()).ok(),
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

fn planned_agent(agent: &Agent) -> PlannedAgent {
    let model = match &agent.kind {
        AgentKind::Builtin { model, .. } => model.as_ref(),
        _ => None,
    };
    PlannedAgent {
        name: agent.name.clone(),
        model: model.map(ToString::to_string),
    }
}

pub(super) fn judge_name(judge: &Judge) -> String {
    match &judge.model {
        JudgeModel::Agent(agent) => {
            model_of(agent).map_or_else(|| agent.name.clone(), ToString::to_string)
        }
        JudgeModel::Environment { .. } => "from the environment".to_owned(),
    }
}
