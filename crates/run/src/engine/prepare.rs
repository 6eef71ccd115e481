//! Prepares a run before anything starts: the suite, its plan, its models, and a report of what is
//! missing.

mod requested;
mod unsupported;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proctor_core::estimate::Estimate;
use proctor_core::provider::Provider;
use proctor_core::suite::agent::ModelRef;
use proctor_core::suite::protocol::{ProtocolPin, UnknownProtocol};
use proctor_core::suite::{
    Agent, Inputs, JudgeConfig, JudgeModel, Suite, load, load_agent, load_script,
};
use proctor_record::event::{PlannedOptions, PlannedWarning, RunPlanned};
use proctor_record::problem::{Code, Problems};

use self::requested::{options_to_resume, requested_options};
use self::unsupported::{refuse_external_agents, refuse_unsupported_features};
use super::error::EngineError;
use super::folder::plan_of;
use super::host::{Host, HostNotice};
use super::opening::context;
use super::options::{CheckOptions, GateOptions, RunOptions, RunSource};
use super::planning::{SuiteLocation, plan, plan_again};
use super::rerun::{self, EarlierRun};
use super::sources::{self, FetchTerms};
use super::{Engine, extensions, gates, runs, sharding, shipped};
use crate::context::RunContext;
use crate::runner::TrialList;

/// A complete run that has not started yet.
pub struct PreparedRun {
    pub(super) context: RunContext,
    pub(super) planned: RunPlanned,
    /// Every trial of the plan, in order.
    pub(super) trials: TrialList,
    pub(super) options: RunOptions,
    /// The folder of the resumed run, and whether its errored trials are retried.
    pub(super) resumed: Option<(PathBuf, bool)>,
    /// What it will cost; `None` if it is not estimated.
    pub(super) estimate: Option<Estimate>,
}

impl PreparedRun {
    /// The folder that the run will have, if it is chosen. A new one is chosen now if it is not.
    pub fn choose_folder(&mut self) -> Result<PathBuf, EngineError> {
        if let Some(folder) = &self.options.folder {
            return Ok(folder.clone());
        }
        let name = self.context.redactor.text(&self.context.suite.name);
        let folder = runs::reserve(&name);
        let folder = folder
            .map_err(|error| EngineError::unusable("can't create the folder of the run", error))?;
        self.options.folder = Some(folder.clone());
        Ok(folder)
    }

    /// What it will cost; `None` for a resumed run and a replay.
    pub fn estimate(&self) -> Option<&Estimate> {
        self.estimate.as_ref()
    }
}

/// A suite that is loaded, before any program is started.
pub(super) struct LoadedSuite {
    file: PathBuf,
    mcp_config: Option<PathBuf>,
    pub(super) suite: Suite,
    asked: PlannedOptions,
    warnings: Vec<PlannedWarning>,
    resumed: Option<(PathBuf, bool)>,
    /// The plan of the resumed run.
    earlier: Option<RunPlanned>,
    /// The plan of the replayed run.
    replayed: Option<RunPlanned>,
    /// The agents of the eval file, which the command line may have replaced.
    own_agents: Vec<String>,
    /// Held until the run ends.
    checkouts: Vec<File>,
}

impl LoadedSuite {
    /// Replaces the gates by those of the options, over those of the suite.
    pub(super) fn set_gates(&mut self, gates: &GateOptions) -> Result<(), EngineError> {
        self.asked.gates = gates::planned(gates, &self.suite.gates)?;
        Ok(())
    }
}

/// Loads and plans a suite, and opens what it needs.
pub(super) async fn prepare(
    engine: &Engine,
    options: &CheckOptions,
    host: &dyn Host,
) -> Result<PreparedRun, EngineError> {
    let loaded = load_run(engine, options, host).await?;
    plan_loaded(engine, options, loaded, host).await
}

/// Loads the suite of a run, with its agents and gates. Starts only git, for sources that are not in the cache.
pub(super) async fn load_run(
    engine: &Engine,
    options: &CheckOptions,
    host: &dyn Host,
) -> Result<LoadedSuite, EngineError> {
    sharding::refuse_conflicts(options)?;
    let (resumed, replayed) = match &options.source {
        RunSource::File(_) => (None, None),
        RunSource::Resume {
            folder,
            retry_errors,
        } => (Some((folder.clone(), *retry_errors)), None),
        RunSource::Replay { folder, .. } => (None, Some(plan_of(folder)?)),
    };
    let earlier = match &resumed {
        Some((folder, _)) => Some(plan_of(folder)?),
        None => None,
    };
    let file = match (&options.source, earlier.as_ref().or(replayed.as_ref())) {
        (
            RunSource::File(file)
            | RunSource::Replay {
                file: Some(file), ..
            },
            _,
        ) => file.clone(),
        (_, Some(planned)) => PathBuf::from(&planned.suite),
        (_, None) => return Err(EngineError::usage("no suite given: name an eval file")),
    };
    let mut asked = match &earlier {
        Some(earlier) => options_to_resume(options, &earlier.asked)?,
        None => requested_options(options, replayed.as_ref().map(|planned| &planned.asked))?,
    };
    let mcp_config = mcp_config(options, earlier.as_ref().or(replayed.as_ref()));
    let reading = load_suite(engine, options, &file, mcp_config.as_deref(), &asked, host);
    let (mut suite, warnings) = reading.await?;
    let checkouts = sources::hold(&suite)?;
    if earlier.is_none() {
        asked.gates = gates::of_suite(&options.run.gates, &suite)?;
    }
    let own_agents: Vec<String> = suite.agents.iter().map(|a| a.name.clone()).collect();
    stand_in(&asked, &mut suite, host)?;
    refuse_unsupported_features(&suite)?;
    Ok(LoadedSuite {
        file,
        mcp_config,
        suite,
        asked,
        warnings,
        resumed,
        earlier,
        replayed,
        own_agents,
        checkouts,
    })
}

/// Plans a loaded suite, and opens what it needs. Starts a server only for shipped evals.
pub(super) async fn plan_loaded(
    engine: &Engine,
    options: &CheckOptions,
    loaded: LoadedSuite,
    host: &dyn Host,
) -> Result<PreparedRun, EngineError> {
    let LoadedSuite {
        file,
        mcp_config,
        mut suite,
        mut asked,
        warnings,
        resumed,
        earlier,
        replayed,
        own_agents,
        checkouts,
    } = loaded;
    let not_run = shipped::fill(engine, options, &mut suite, host).await?;
    refuse_external_agents(&suite)?;
    if earlier.is_none() {
        asked.known_failures = gates::known_failures(&suite, &own_agents);
    }
    let (planned, mut trials) = if let Some(earlier) = earlier {
        plan_again(engine, &suite, earlier)?
    } else {
        let mut wanted = options.plan.clone().unwrap_or_default();
        let named = SuiteLocation::new(&file, mcp_config.as_deref())?;
        let is_same = |run: &EarlierRun<'_>| run.is_of_suite(&named.suite);
        rerun::select(
            options.run.rerun,
            &suite,
            &mut wanted.selection,
            &is_same,
            host,
        )?;
        let workers = options.run.width.asked();
        let as_often_as = replayed.as_ref().filter(|_| wanted.runs.is_none());
        match plan(engine, &suite, &wanted, named, &asked, as_often_as, workers)? {
            Some(plan) => plan,
            None => {
                return Err(EngineError::NothingSelected {
                    suite: Box::new(suite),
                    selection: Box::new(wanted.selection),
                });
            }
        }
    };
    gates::refuse_impossible(&planned)?;
    let share = sharding::keep_own(engine, &planned, &suite, &mut trials)?;
    let run = sharding::with_share(&options.run, share);
    let mut context = context(engine, &run, &asked, suite, &trials, host)?;
    context.checkouts = checkouts;
    let timeouts = &mut context.timeouts;
    timeouts.request = options.call_timeout;
    timeouts.total = timeouts.total.max(options.call_timeout);
    Ok(PreparedRun {
        context,
        planned: RunPlanned {
            not_run,
            warnings,
            ..planned
        },
        trials,
        options: run,
        resumed,
        estimate: None,
    })
}

/// The MCP config that replaces the suite's own. A resumed run keeps its servers.
fn mcp_config(options: &CheckOptions, earlier: Option<&RunPlanned>) -> Option<PathBuf> {
    let of_run = || earlier?.mcp_config.as_ref().map(PathBuf::from);
    options.mcp_config.clone().or_else(of_run)
}

/// Loads the suite. Fetches the sources and extensions that are not here, and loads it again.
async fn load_suite(
    engine: &Engine,
    options: &CheckOptions,
    file: &Path,
    mcp_config: Option<&Path>,
    asked: &PlannedOptions,
    host: &dyn Host,
) -> Result<(Suite, Vec<PlannedWarning>), EngineError> {
    let inputs = Inputs {
        env: &engine.environment,
        source_roots: &options.source_roots,
        runs: options.plan.as_ref().and_then(|plan| plan.runs),
        mcp_config,
        judge_given: asked.judge.is_some(),
    };
    let read = || {
        let mut problems = Problems::default();
        let loaded = load(file, &inputs, &mut problems);
        problems.promote(Code::UnsetVariable);
        // Such a task ends as errored, and the others run.
        problems.demote(Code::UnmetRequirement);
        if asked.strict {
            problems.promote(Code::UnknownKey);
        }
        (loaded, problems)
    };
    let (mut loaded, mut problems) = read();
    let terms = FetchTerms {
        locked: options.locked,
        yes: options.consent.yes,
    };
    let is_sound = |problems: &Problems| !problems.has_errors();
    if let Some(suite) = loaded.as_ref().filter(|_| is_sound(&problems))
        && sources::provide(engine, suite, terms, host).await?
    {
        (loaded, problems) = read();
    }
    // Which extensions the cases need is known only now.
    if let Some(suite) = loaded.as_ref().filter(|_| is_sound(&problems))
        && extensions::provide(engine, suite, terms, host).await?
    {
        (loaded, problems) = read();
    }
    host.notice(HostNotice::Problems(&problems));
    match loaded {
        Some(suite) if !problems.has_errors() => {
            Ok((suite, problems.iter().map(PlannedWarning::from).collect()))
        }
        _ => Err(EngineError::InvalidFile {
            file: file.to_owned(),
            problems: Box::new(problems),
        }),
    }
}

/// Replaces the suite's agents, judge and protocol by those of the command line.
pub(super) fn stand_in(
    asked: &PlannedOptions,
    suite: &mut Suite,
    host: &dyn Host,
) -> Result<(), EngineError> {
    if let Some(text) = &asked.protocol {
        let pin: ProtocolPin = text
            .parse()
            .map_err(|error: UnknownProtocol| EngineError::usage(error.to_string()))?;
        for server in &mut suite.servers {
            server.client.protocol = Some(pin);
        }
    }
    let mut problems = Problems::default();
    let mut open = |text: &String| -> Result<Option<Agent>, EngineError> {
        let parsed = ModelRef::parse(text);
        let mut model = parsed.map_err(|error| EngineError::Missing(error.into()))?;
        if model.provider == Some(Provider::Scripted) {
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
    host.notice(HostNotice::Problems(&problems));
    if problems.has_errors() {
        return Err(EngineError::InvalidFile {
            file: suite.path.clone(),
            problems: Box::new(problems),
        });
    }
    for (at, agent) in agents.iter().enumerate() {
        if agents[..at].iter().any(|known| known.name == agent.name) {
            return Err(EngineError::usage(format!(
                "duplicate agent name `{}`",
                agent.name
            )));
        }
    }
    if !agents.is_empty() {
        suite.agents = agents;
    }
    for agent in suite.agents.iter_mut().filter(|_| asked.model_tap) {
        agent.model_tap = true;
    }
    if let Some(Some(agent)) = judge {
        suite.judge = Some(JudgeConfig {
            model: JudgeModel::Agent(Box::new(agent)),
            votes: suite.judge.as_ref().map_or(1, |judge| judge.votes),
        });
    }
    Ok(())
}
