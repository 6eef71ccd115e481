//! Prepares a run of shipped evals: finds them, asks for consent, and checks the servers again
//! before the first call.
//!
//! Its main functions are `prepare` and `agree`; the latter also serves suites that name shipped
//! evals.

use std::collections::BTreeMap;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp_evals::{Level, ListedEval, validate};
use proctor_core::evals::file::EvalsFile;
use proctor_core::plan::PlanOptions;
use proctor_core::suite::{Agent, Case, Isolation, LimitFlags, Limits, Server, ShippedEval, Suite};
use proctor_record::event::{Actor, PlannedGates, PlannedOptions, RunKind, RunPlanned};
use proctor_record::event::{NotRunOutcome, SkippedEval};
use proctor_record::hint::{listed, nearest_hint};
use proctor_record::problem::Problems;
use proctor_record::redact::Redactor;
use proctor_wire::client::{Client, ConnectOptions, ListLimits};
use proctor_wire::evals::on_changes;
use proctor_wire::recorder::Recorder;

use super::Engine;
use super::consent::{self, ConsentDifference, ConsentGrant, ConsentOptions, ConsentPurpose};
use super::error::EngineError;
use super::gates;
use super::host::{Host, HostNotice};
use super::offers::{EvalPlan, EvalSelection, ServerOffer, ask, gather};
use super::opening::context;
use super::options::EvalsOptions;
use super::planning::{SuiteLocation, plan};
use super::prepare::{PreparedRun, stand_in};
use super::rerun::{self, EarlierRun};
use crate::together::first;
use crate::trial_folder::TrialFolder;

/// Finds the evals, asks for consent, plans the evals, and opens what they need.
pub(super) async fn prepare(
    engine: &Engine,
    options: &EvalsOptions,
    host: &dyn Host,
) -> Result<PreparedRun, EngineError> {
    let asked = PlannedOptions {
        agents: Vec::new(),
        model_tap: false,
        replay: None,
        replay_strict: false,
        model: options.model.clone(),
        judge: options.judge.clone(),
        strict: options.run.strict,
        pass_env: options.pass_env.clone(),
        gates: gates::planned(&options.run.gates, &PlannedGates::default())?,
        known_failures: Vec::new(),
        stop_when_decided: options.run.stop_when_decided,
        protocol: None,
        profile: None,
        shard: None,
    };
    let mut suite = bare_suite(&options.servers);
    stand_in(&asked, &mut suite, host)?;
    let own = match &options.own_evals {
        Some(path) => Some(own_evals(path, &options.servers, host)?),
        None => None,
    };
    let (cases, not_run) = find_and_ask(engine, options, own.as_deref(), host).await?;
    suite.cases = cases;
    let mut wanted = PlanOptions {
        runs: options.runs,
        limits: LimitFlags {
            timeout: options.task_timeout,
            ..LimitFlags::default()
        },
        ..PlanOptions::default()
    };
    let is_same = |run: &EarlierRun<'_>| run.is_of_evals(&suite.name);
    rerun::select(
        options.run.rerun,
        &suite,
        &mut wanted.selection,
        &is_same,
        host,
    )?;
    let named = SuiteLocation {
        suite: "evals".to_owned(),
        mcp_config: None,
    };
    let Some((planned, trials)) = plan(engine, &suite, &wanted, named, &asked, None, 1)? else {
        return Err(EngineError::usage("no evals to run"));
    };
    gates::refuse_impossible(&planned)?;
    let mut context = context(engine, &options.run, &asked, suite, &trials, host)?;
    context.timeouts = options.timeouts;
    Ok(PreparedRun {
        context,
        planned: RunPlanned {
            kind: RunKind::Evals,
            not_run,
            ..planned
        },
        trials,
        options: options.run.clone(),
        resumed: None,
        estimate: None,
    })
}

/// Loads the evals of the user's own file.
fn own_evals(
    path: &Path,
    servers: &[Server],
    host: &dyn Host,
) -> Result<Vec<ListedEval>, EngineError> {
    if servers.len() != 1 {
        return Err(EngineError::usage(format!(
            "`--evals` works with one server, found {}",
            servers.len()
        )));
    }
    let mut problems = Problems::default();
    let file = EvalsFile::load(path, &mut problems);
    if let Some(file) = &file {
        file.tell_unknown_keys(&validate(&file.evals), &mut problems);
    }
    host.notice(HostNotice::Problems(&problems));
    match file {
        Some(file) if !problems.has_errors() => Ok(file.evals),
        _ => Err(EngineError::InvalidFile {
            file: path.to_owned(),
            problems: Box::new(problems),
        }),
    }
}

/// A suite with these servers and nothing else.
pub(super) fn bare_suite(servers: &[Server]) -> Suite {
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    Suite {
        name: format!("evals-{}", names.join("-")),
        path: PathBuf::from("evals"),
        servers: servers.to_vec(),
        agents: vec![Agent::nobody()],
        judge: None,
        default_limits: Limits::default(),
        extensions: Vec::new(),
        skills: Vec::new(),
        setup: Vec::new(),
        cleanup: Vec::new(),
        cleanup_timeout: None,
        preflight: true,
        workspace: None,
        isolation: Isolation::Trial,
        gates: PlannedGates::default(),
        no_regression: None,
        known_failures: Vec::new(),
        surface: None,
        lint_off: Vec::new(),
        cases: Vec::new(),
        task_sets: Vec::new(),
        shipped: Vec::new(),
        sources: Vec::new(),
    }
}

/// Surveys servers, once before asking for consent and again right before the first call.
pub(super) struct ServerSurvey<'a> {
    pub(super) servers: &'a [Server],
    pub(super) level: Option<Level>,
    /// The user's own evals, in place of those that the server ships.
    pub(super) own: Option<&'a [ListedEval]>,
    pub(super) connect: &'a ConnectOptions,
    pub(super) redactor: &'a Redactor,
}

impl ServerSurvey<'_> {
    /// The offers of all servers, with the user's own evals in place of theirs.
    pub(super) async fn look(&self) -> Result<Vec<ServerOffer>, EngineError> {
        // A server leaves malformed evals out of a level, so all are requested.
        let offers = gather(self.servers, None, self.connect, &ListLimits::default()).await;
        let mut offers = offers.map_err(|error| {
            let reason = self.redactor.text(&error.to_string()).into_owned();
            EngineError::Unreachable(reason)
        })?;
        for (offer, own) in offers.iter_mut().zip(self.own) {
            offer.evals = own.to_vec();
            offer.raw.clear();
        }
        let offers = offers.into_iter();
        Ok(offers.map(|offer| offer.of_level(self.level)).collect())
    }
}

/// The timeout of a subscription, which has no response while a person reads.
const READING: Duration = Duration::from_hours(24);

impl ServerSurvey<'_> {
    /// Waits until a server that announces changed evals has others than those that are shown.
    async fn changed(&self, planned: &[EvalPlan<'_>], shown: &ConsentGrant) -> ConsentDifference {
        let watched = planned.iter().map(|planned| planned.offer);
        // The user's own evals don't change with the server.
        let watched = watched.filter(|offer| self.own.is_none() && offer.tells_of_changes);
        first(watched.map(|offer| self.watch(&offer.server, shown))).await
    }

    async fn watch(&self, server: &Server, shown: &ConsentGrant) -> ConsentDifference {
        let mut options = self.connect.clone();
        options.timeouts.request = READING;
        options.timeouts.total = READING;
        // A server that can't be watched is listed again before anything runs.
        let Ok(client) = Client::connect(server, &options).await else {
            return pending().await;
        };
        let difference = on_changes(&client, async || {
            let offer = ask(server, None, &client, &ListLimits::default()).await;
            let offer = offer.ok()?.of_level(self.level);
            shown.still_holds(&[offer]).err()
        });
        let difference = difference.await;
        client.close().await;
        difference
    }
}

/// Asks for consent to the planned evals, and checks that the servers have not changed meanwhile.
pub(super) async fn agree(
    planned: &[EvalPlan<'_>],
    terms: &ConsentOptions<'_>,
    survey: &ServerSurvey<'_>,
    host: &dyn Host,
) -> Result<(), EngineError> {
    let shown = ConsentGrant::of(planned, terms.redactor);
    let changed = survey.changed(planned, &shown);
    let granted = consent::obtain(planned, terms, host, changed).await?;
    // The servers may have changed while the user read the question.
    let again = survey.look().await?;
    granted.still_holds(&again).map_err(EngineError::Changed)
}

async fn find_and_ask(
    engine: &Engine,
    options: &EvalsOptions,
    own: Option<&[ListedEval]>,
    host: &dyn Host,
) -> Result<(Vec<Case>, Vec<SkippedEval>), EngineError> {
    let redactor = engine.redactor(&options.servers);
    let folder = TrialFolder::new("preflight");
    let prepared = folder.prepare(None).await;
    prepared.map_err(|error| EngineError::Unreachable(error.to_string()))?;
    let connect = engine.connect_options(
        Actor::Preflight,
        Recorder::nothing().redacting(&redactor),
        &options.pass_env,
        options.timeouts,
        &folder,
    );
    let choice = &options.choice;
    let survey = ServerSurvey {
        servers: &options.servers,
        level: choice.level,
        own,
        connect: &connect,
        redactor: &redactor,
    };
    let offers = survey.look().await?;
    if own.is_none() && !offers.iter().any(ServerOffer::ships_evals) {
        let names = listed(options.servers.iter().map(|server| server.name.as_str()));
        return Err(EngineError::usage(format!(
            "{names} declares no `evals` capability; run your own evals with `--evals FILE`, or create \
             a first file with `proctor evals init`"
        )));
    }
    refuse_unknown_ids(&offers, choice)?;
    let planned: Vec<EvalPlan<'_>> = offers.iter().map(|offer| offer.plan(choice)).collect();
    let not_run = not_run(&offers, choice);
    if planned.iter().all(|planned| planned.evals.is_empty()) {
        host.notice(HostNotice::NotRun(&not_run));
        let is_invalid = |not_run: &SkippedEval| not_run.outcome == NotRunOutcome::Invalid;
        let any_invalid = not_run.iter().any(is_invalid);
        return Err(EngineError::NoEvals { any_invalid });
    }
    let terms = ConsentOptions {
        purpose: ConsentPurpose::Run,
        yes: options.consent.yes,
        file: options.consent.file.as_deref(),
        model: options.model.as_deref(),
        judge: options.judge.as_deref(),
        runs: options.runs.unwrap_or(1),
        max_turns: options.max_turns,
        redactor: &redactor,
    };
    refuse_missing_models(&planned, &terms)?;
    agree(&planned, &terms, &survey, host).await?;
    let cases = planned.iter().flat_map(|planned| cases(planned, &terms));
    let cases = cases.collect();
    Ok((cases, not_run))
}

/// The cases of the evals with consent.
fn cases(planned: &EvalPlan<'_>, options: &ConsentOptions<'_>) -> Vec<Case> {
    let case = |eval: &&mcp_evals::Eval| {
        Case::of_eval(ShippedEval {
            server: planned.offer.server.name.clone(),
            max_turns: turns(eval, options.max_turns),
            eval: (*eval).clone(),
        })
    };
    planned.evals.iter().map(case).collect()
}

/// The default turn limit of a scenario.
const DEFAULT_TURNS: u32 = 10;

/// The turn limit of a scenario: its own or the default, and at most the user's limit.
pub fn turns(eval: &mcp_evals::Eval, most: Option<u32>) -> u32 {
    let own = match &eval.input {
        mcp_evals::Input::Scenario(input) => input.turn_limit(),
        _ => None,
    };
    let own = own.map_or(DEFAULT_TURNS, |own| u32::try_from(own).unwrap_or(u32::MAX));
    most.map_or(own, |most| own.min(most))
}

/// Reports ids that no server has, so that a typo does not silently skip an eval.
fn refuse_unknown_ids(offers: &[ServerOffer], choice: &EvalSelection) -> Result<(), EngineError> {
    let all = offers.iter().flat_map(|offer| &offer.evals);
    let known: Vec<&str> = all.filter_map(ListedEval::id).collect();
    let unknown = |id: &&String| !known.contains(&id.as_str());
    match choice.ids.iter().find(unknown) {
        Some(id) => {
            let hint = nearest_hint(id, known.iter().copied());
            let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
            let message = format!("no server ships an eval `{id}`{hint}");
            Err(EngineError::usage(message))
        }
        None => Ok(()),
    }
}

/// The selected evals that can't be run.
pub(super) fn not_run(offers: &[ServerOffer], choice: &EvalSelection) -> Vec<SkippedEval> {
    let mut all = Vec::new();
    for offer in offers {
        let invalid = offer.invalid().map(|found| (NotRunOutcome::Invalid, found));
        let skipped = offer.skipped().map(|found| (NotRunOutcome::Skipped, found));
        for (outcome, (index, findings)) in invalid.chain(skipped) {
            let id = offer.evals[index].id();
            let is_meant = choice.ids.is_empty()
                || id.is_some_and(|id| choice.ids.iter().any(|meant| meant == id));
            if is_meant {
                let reasons: Vec<String> = findings.iter().map(ToString::to_string).collect();
                all.push(SkippedEval {
                    eval_id: id.map(str::to_owned),
                    server: offer.server.name.clone(),
                    outcome,
                    reason: reasons.join("; "),
                });
            }
        }
    }
    all
}

/// Reports evals that need a model or a judge, before anything starts.
fn refuse_missing_models(
    planned: &[EvalPlan<'_>],
    options: &ConsentOptions<'_>,
) -> Result<(), EngineError> {
    let mut lacking: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for one in planned {
        for eval in &one.evals {
            let shipped = ShippedEval {
                server: String::new(),
                eval: (*eval).clone(),
                max_turns: 1,
            };
            if shipped.needs_model() && options.model.is_none() {
                lacking.entry("--model").or_default().push(eval.id.clone());
            }
            if shipped.needs_judge() && options.judge.is_none() {
                lacking.entry("--judge").or_default().push(eval.id.clone());
            }
        }
    }
    let missing: Vec<String> = lacking
        .iter()
        .map(|(flag, ids)| {
            format!(
                "`{flag}` is needed for {}",
                listed(ids.iter().map(String::as_str))
            )
        })
        .collect();
    if !missing.is_empty() {
        return Err(EngineError::usage(format!(
            "{}; select other evals with `--level` or `--id`",
            missing.join("; ")
        )));
    }
    Ok(())
}
