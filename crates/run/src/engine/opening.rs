//! Creates the shared state of all trials from the suite, the flags and the environment, and
//! reports what is missing.

use std::path::Path;
use std::sync::Arc;

use proctor_core::price::Prices;
use proctor_core::replay::Cassette;
use proctor_core::suite::agent::AgentKind;
use proctor_core::suite::step::Action;
use proctor_core::suite::{Agent, Case, Environment, JudgeConfig, JudgeModel, Limits, Suite};
use proctor_models::{Budget, Meter, Model, Settings};
use proctor_record::event::PlannedOptions;
use proctor_record::problem::Problems;
use proctor_record::redact::{Redactor, secrets_of};
use proctor_wire::client::Timeouts;

use super::Engine;
use super::error::EngineError;
use super::host::{Host, HostNotice};
use super::options::RunOptions;
use super::other_models;
use super::planning::judge_name;
use crate::context::{RunContext, Worker};
use crate::external::{ExternalAgent, JudgeProgram, sent_key};
use crate::runner::{TrialList, TrialSpec};
use crate::secrets;
use crate::steps::step_environment;

/// The start of the message if the judge can't be opened.
const JUDGE: &str = "the judge can't be used";

/// The redactor for everything that a run of this suite records.
pub(super) fn redactor(engine: &Engine, suite: &Suite) -> Redactor {
    let env = &engine.environment;
    let withheld = key_variables(suite);
    let keys = withheld
        .iter()
        .filter_map(|name| Some((name.clone(), env.get(name)?.clone())));
    let known = secrets_of(env).into_iter();
    let of_servers = suite.servers.iter().flat_map(secrets::of_server);
    let of_agents = agents_of(suite).flat_map(|agent| secrets_of(&agent.env.filled(env)));
    let of_steps = secrets::of_steps(suite, env);
    let given = of_servers.chain(of_agents).chain(of_steps);
    let redactor = Redactor::new(known.chain(keys).chain(given));
    redactor.sharing(engine.credentials.secrets())
}

/// Creates the shared state of all trials.
pub(super) fn context(
    engine: &Engine,
    options: &RunOptions,
    asked: &PlannedOptions,
    suite: Suite,
    trials: &TrialList,
    host: &dyn Host,
) -> Result<RunContext, EngineError> {
    let env = engine.environment.clone();
    let prices = prices(options, host)?;
    // Leftovers of a killed run may contain keys.
    proctor_contain::scratch::sweep();
    let agents = open_agents(&suite, asked, &env)?;
    let models: Vec<Arc<Model>> = agents.iter().filter_map(Worker::model).cloned().collect();
    let judges = open_judges(engine, &suite, trials, asked)?;
    let cassette = match &asked.replay {
        Some(folder) => {
            let cassette = Cassette::open(Path::new(folder));
            Some((Arc::new(cassette?), asked.replay_strict))
        }
        None => None,
    };
    let others = other_models::open(&suite, trials, asked, &env)?;
    let all_others: Vec<Arc<Model>> = others.values().cloned().collect();
    let besides = [&judges[..], &all_others].concat();
    require_prices(options, &suite, trials, &prices, &models, &besides)?;
    if asked.replay.is_none() {
        require_enforced_limits(options, &suite, trials, &agents)?;
    }
    warn_of_own_judge(&agents, &judges, host);
    warn_of_sent_keys(&suite, &env, host);
    let withheld = key_variables(&suite);
    let redactor = redactor(engine, &suite);
    Ok(RunContext {
        agents,
        judges,
        others,
        meter: Arc::new(Meter::new(
            prices,
            Budget {
                usd: options.budget_usd,
                tokens: options.budget_tokens,
            },
        )),
        pass: asked.pass_env.clone(),
        step_environment: Arc::new(step_environment(&env, &withheld)),
        guard: engine.program.clone(),
        scratches: Arc::default(),
        timeouts: Timeouts::default(),
        redactor,
        keep: options.keep,
        credentials: engine.credentials.clone(),
        strict: asked.strict,
        eras: std::collections::BTreeMap::new(),
        tools: std::collections::BTreeMap::new(),
        offers: crate::agent::KnownOffers::default(),
        shared: std::collections::BTreeMap::new(),
        warnings: std::sync::Mutex::default(),
        seen: std::sync::Mutex::default(),
        cassette,
        checkouts: Vec::new(),
        ended_files: None,
        suite,
        environment: env.into(),
    })
}

/// Opens every agent of the suite, or reports what one lacks.
fn open_agents(
    suite: &Suite,
    asked: &PlannedOptions,
    env: &Environment,
) -> Result<Vec<Worker>, EngineError> {
    let is_replayed = asked.replay.is_some();
    let has_skills = !suite.skills.is_empty();
    let open = |agent: &Agent| {
        if agent.kind == AgentKind::Nobody {
            return Ok(Worker::NoAgent);
        }
        if let Some(external) = ExternalAgent::open(agent, env, has_skills, is_replayed) {
            let external = external.map_err(|error| EngineError::Missing(error.into()))?;
            return Ok(Worker::External(Arc::new(external)));
        }
        let model = match agent.model_in_loop().filter(|_| is_replayed) {
            Some(model) => Model::Recorded(model.to_string()),
            None => Model::open_agent(agent, &Settings::of(env))
                .map_err(|error| EngineError::Missing(error.into()))?,
        };
        Ok(Worker::Model(Arc::new(model)))
    };
    suite.agents.iter().map(open).collect()
}

/// Refuses limits on turns, tokens and costs for external agents without the model tap: Proctor
/// could not enforce them.
fn require_enforced_limits(
    options: &RunOptions,
    suite: &Suite,
    trials: &TrialList,
    agents: &[Worker],
) -> Result<(), EngineError> {
    let budget = match (options.budget_usd, options.budget_tokens) {
        (Some(_), _) => Some("`--budget-usd`"),
        (None, Some(_)) => Some("`--budget-tokens`"),
        (None, None) => None,
    };
    for spec in trials.iter() {
        let Worker::External(external) = &agents[spec.agent] else {
            continue;
        };
        if external.is_tapped() {
            continue;
        }
        let limit = unenforced(&spec.limits, external);
        let limit = limit.map(|limit| format!("`{limit}` of `{}`", suite.cases[spec.case].name));
        let Some(limit) = limit.or(budget.map(str::to_owned)) else {
            continue;
        };
        let name = &external.agent().name;
        let hint = if external.can_be_tapped() {
            "add `modelTap: true` to the agent, or use `--model-tap`"
        } else {
            "the model tap can't be used with this agent, so remove the limit"
        };
        return Err(EngineError::usage(format!(
            "{limit} can't be enforced for the agent `{name}` without the model tap: {hint}"
        )));
    }
    Ok(())
}

/// The first limit of a trial that Proctor can't enforce for this agent.
fn unenforced(limits: &Limits, external: &ExternalAgent) -> Option<&'static str> {
    if limits.max_cost_usd.is_some() {
        return Some("maxCostUsd");
    }
    if limits.max_tokens.is_some() {
        return Some("maxTokens");
    }
    let is_unlimited = limits.max_turns.is_some() && !external.stops_at_max_turns();
    is_unlimited.then_some("maxTurns")
}

/// The known prices of models.
fn prices(options: &RunOptions, host: &dyn Host) -> Result<Prices, EngineError> {
    let Some(file) = &options.prices else {
        return Ok(Prices::default());
    };
    let mut problems = Problems::default();
    let prices = Prices::load(file, &mut problems);
    host.notice(HostNotice::Problems(&problems));
    prices.ok_or_else(|| EngineError::InvalidFile {
        file: file.clone(),
        problems: Box::new(problems),
    })
}

/// The models that judge, if a case needs a judge.
fn open_judges(
    engine: &Engine,
    suite: &Suite,
    trials: &TrialList,
    asked: &PlannedOptions,
) -> Result<Vec<Arc<Model>>, EngineError> {
    let is_judged = |spec: TrialSpec| needs_judge(&suite.cases[spec.case]);
    let Some(judge) = suite
        .judge
        .as_ref()
        .filter(|_| trials.iter().any(is_judged))
    else {
        return Ok(Vec::new());
    };
    if asked.replay.is_some() {
        return Ok(vec![Arc::new(Model::Recorded(judge_name(judge)))]);
    }
    Ok(vec![open_judge(engine, judge, asked)?])
}

/// Whether a judge decides about a case.
pub(super) fn needs_judge(case: &Case) -> bool {
    let mut verify = case.verify.iter();
    let shipped = case.shipped.as_ref();
    verify.any(|step| matches!(step.action, Action::Judge(_)))
        || shipped.is_some_and(|shipped| shipped.needs_judge())
}

/// Opens the model that judges, or the program.
pub(super) fn open_judge(
    engine: &Engine,
    judge: &JudgeConfig,
    asked: &PlannedOptions,
) -> Result<Arc<Model>, EngineError> {
    let model = match open_judge_program(engine, judge, asked)? {
        Some(program) => Ok(Model::Program(Box::new(program))),
        None => Model::open_judge(&judge.model, &Settings::of(&engine.environment)),
    };
    let model = model.map_err(|error| EngineError::unusable(JUDGE, error))?;
    Ok(Arc::new(model))
}

/// The judge, if it is an external agent.
fn open_judge_program(
    engine: &Engine,
    judge: &JudgeConfig,
    asked: &PlannedOptions,
) -> Result<Option<JudgeProgram>, EngineError> {
    let env = &engine.environment;
    let JudgeModel::Agent(agent) = &judge.model else {
        return Ok(None);
    };
    let Some(external) = ExternalAgent::open(agent, env, false, false) else {
        return Ok(None);
    };
    let external = external.map_err(|error| EngineError::unusable(JUDGE, error))?;
    let pass = asked.pass_env.clone();
    Ok(Some(JudgeProgram::new(
        external,
        env.clone(),
        pass,
        engine.program.clone(),
    )))
}

/// Refuses limits on costs if a price is unknown.
fn require_prices(
    options: &RunOptions,
    suite: &Suite,
    trials: &TrialList,
    prices: &Prices,
    agents: &[Arc<Model>],
    judges: &[Arc<Model>],
) -> Result<(), EngineError> {
    let unknown = |models: &[Arc<Model>]| {
        let first = models.iter().find(|m| prices.of(m.name()).is_none());
        first.map(|model| model.name().to_owned())
    };
    if options.budget_usd.is_some()
        && let Some(model) = unknown(agents).or_else(|| unknown(judges))
    {
        return Err(EngineError::usage(format!(
            "the price of `{model}` is unknown, so `--budget-usd` can't be enforced: add the price \
             with `--prices FILE`"
        )));
    }
    let limited = trials
        .iter()
        .find(|spec| spec.limits.max_cost_usd.is_some());
    if let Some(spec) = limited
        && let Some(model) = unknown(agents)
    {
        let case = &suite.cases[spec.case].name;
        return Err(EngineError::usage(format!(
            "the price of `{model}` is unknown, so `maxCostUsd` of `{case}` can't be enforced: add \
             the price with `--prices FILE`"
        )));
    }
    Ok(())
}

/// Warns if an agent file sends the user's default key to its own URL.
fn warn_of_sent_keys(suite: &Suite, env: &Environment, host: &dyn Host) {
    let agents = suite.agents.iter().map(|agent| ("agent", agent));
    let judge = match suite.judge.as_ref().map(|judge| &judge.model) {
        Some(JudgeModel::Agent(agent)) => Some(("judge", &**agent)),
        _ => None,
    };
    for (who, agent) in agents.chain(judge) {
        if let Some((url, variable)) = sent_key(agent, env) {
            let text = format!(
                "warning: the {who} `{}` sends `{variable}` to `{url}`, the URL in its file; to \
                 send another key, set `apiKey`",
                agent.name
            );
            host.notice(HostNotice::Text(&text));
        }
    }
}

fn warn_of_own_judge(agents: &[Worker], judges: &[Arc<Model>], host: &dyn Host) {
    let names: Vec<String> = agents.iter().filter_map(Worker::model_name).collect();
    let own = judges
        .iter()
        .find(|judge| names.iter().any(|name| name == judge.name()));
    if let Some(model) = own {
        let text = format!(
            "warning: `{}` judges its own work; use another model as judge",
            model.name()
        );
        host.notice(HostNotice::Text(&text));
    }
}

/// The agents of a suite and its judge, since their files may hold secrets.
fn agents_of(suite: &Suite) -> impl Iterator<Item = &Agent> {
    let judge = suite.judge.as_ref().and_then(|judge| match &judge.model {
        JudgeModel::Agent(agent) => Some(&**agent),
        JudgeModel::Environment { .. } => None,
    });
    suite.agents.iter().chain(judge)
}

/// The variables that hold model keys, as the suite names them.
fn key_variables(suite: &Suite) -> Vec<String> {
    let of_agent = |agent: &Agent| match &agent.kind {
        AgentKind::Builtin {
            api_key_variable, ..
        } => api_key_variable.clone(),
        _ => None,
    };
    let of_judge = match suite.judge.as_ref().map(|judge| &judge.model) {
        Some(JudgeModel::Agent(agent)) => of_agent(agent),
        Some(JudgeModel::Environment { api_key, .. }) => api_key.clone(),
        None => None,
    };
    let agents = suite.agents.iter().filter_map(of_agent);
    agents.chain(of_judge).collect()
}
