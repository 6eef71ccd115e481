//! Adds shipped evals to the cases of a suite, with the user's consent.

use std::collections::BTreeSet;
use std::sync::Arc;

use proctor_core::suite::{Case, Server, ShippedEval, ShippedEvalSet, Suite};
use proctor_record::event::Actor;
use proctor_record::event::SkippedEval;
use proctor_record::hint::listed;
use proctor_wire::client::{ConnectOptions, Timeouts};
use proctor_wire::recorder::Recorder;

use super::Engine;
use super::consent::{ConsentOptions, ConsentPurpose};
use super::error::EngineError;
use super::evals::{ServerSurvey, agree, not_run, turns};
use super::host::Host;
use super::offers::{EvalPlan, EvalSelection, ServerOffer};
use super::options::CheckOptions;
use super::planning::judge_name;
use crate::trial_folder::TrialFolder;

/// Adds the named evals to the suite's cases after the user has consented. Returns those that can't
/// be run.
pub(super) async fn fill(
    engine: &Engine,
    options: &CheckOptions,
    suite: &mut Suite,
    host: &dyn Host,
) -> Result<Vec<SkippedEval>, EngineError> {
    if suite.shipped.is_empty() {
        return Ok(Vec::new());
    }
    let (cases, not_run) = find_and_ask(engine, options, suite, host).await?;
    suite.cases.extend(cases);
    suite.shipped.clear();
    Ok(not_run)
}

async fn find_and_ask(
    engine: &Engine,
    options: &CheckOptions,
    suite: &Suite,
    host: &dyn Host,
) -> Result<(Vec<Case>, Vec<SkippedEval>), EngineError> {
    let named: BTreeSet<&str> = suite.shipped.iter().map(|s| s.server.as_str()).collect();
    let servers: Vec<Server> = suite
        .servers
        .iter()
        .filter(|server| named.contains(server.name.as_str()))
        .cloned()
        .collect();
    let redactor = engine.redactor(&suite.servers);
    let folder = TrialFolder::new("preflight");
    let prepared = folder.prepare(suite.workspace.as_deref()).await;
    prepared.map_err(|error| EngineError::Unreachable(error.to_string()))?;
    let connect: ConnectOptions = engine.connect_options(
        Actor::Preflight,
        Recorder::nothing().redacting(&redactor),
        &options.pass_env,
        Timeouts::default(),
        &folder,
    );
    let survey = ServerSurvey {
        servers: &servers,
        level: None,
        own: None,
        connect: &connect,
        redactor: &redactor,
    };
    let offers = survey.look().await.map_err(|error| match error {
        EngineError::Unreachable(reason) if !suite.setup.is_empty() => {
            let hint = "hint: shipped evals are listed before `config.setup` runs";
            EngineError::Unreachable(format!("{reason}\n{hint}"))
        }
        other => other,
    })?;
    if let Some(offer) = offers.iter().find(|offer| !offer.ships_evals()) {
        return Err(EngineError::usage(format!(
            "the suite names evals of `{}`, but that server ships no evals",
            offer.server.name
        )));
    }
    let planned: Vec<EvalPlan<'_>> = offers.iter().map(|offer| meant(offer, suite)).collect();
    if planned.iter().all(|planned| planned.evals.is_empty()) {
        return Ok((Vec::new(), not_run(&offers, &EvalSelection::default())));
    }
    refuse_without_judge(&planned, suite)?;
    let model = suite.agents.first().map(|agent| agent.name.clone());
    let judge = suite.judge.as_ref().map(judge_name);
    let terms = ConsentOptions {
        purpose: ConsentPurpose::Run,
        yes: options.consent.yes,
        file: options.consent.file.as_deref(),
        model: model.as_deref(),
        judge: judge.as_deref(),
        runs: options
            .plan
            .as_ref()
            .and_then(|plan| plan.runs)
            .unwrap_or(1),
        max_turns: options.max_turns,
        redactor: &redactor,
    };
    agree(&planned, &terms, &survey, host).await?;
    let mut all: Vec<Case> = Vec::new();
    for case in suite
        .shipped
        .iter()
        .flat_map(|set| cases(set, &offers, options.max_turns))
    {
        let case = Case {
            workspace: suite.workspace.clone(),
            ..case
        };
        // An eval that two sets select is one case, with the checks of both.
        match all.iter_mut().find(|known| known.id == case.id) {
            Some(known) => {
                known.checks.extend(case.checks);
                known.places.extend(case.places);
                known.pass = known.pass.or(case.pass);
            }
            None => all.push(case),
        }
    }
    Ok((all, not_run(&offers, &EvalSelection::default())))
}

/// The evals of a server that any task set selects.
fn meant<'a>(offer: &'a ServerOffer, suite: &Suite) -> EvalPlan<'a> {
    let is_meant = |eval: &mcp_evals::Eval| {
        let mut sets = suite.shipped.iter();
        sets.any(|set| set.server == offer.server.name && fits(set, eval))
    };
    EvalPlan {
        offer,
        evals: offer.runnable().filter(|eval| is_meant(eval)).collect(),
    }
}

fn fits(set: &ShippedEvalSet, eval: &mcp_evals::Eval) -> bool {
    set.level
        .is_none_or(|level| eval.level().is_some_and(|own| own.as_str() == level.word()))
}

/// The cases of a task set.
fn cases(set: &ShippedEvalSet, offers: &[ServerOffer], max_turns: Option<u32>) -> Vec<Case> {
    let offer = offers.iter().find(|offer| offer.server.name == set.server);
    let evals = offer.into_iter().flat_map(ServerOffer::runnable);
    evals
        .filter(|eval| fits(set, eval))
        .map(|eval| Case {
            checks: set.checks.iter().map(Arc::clone).collect(),
            places: set.places.clone(),
            pass: set.pass,
            ..Case::of_eval(ShippedEval {
                server: set.server.clone(),
                max_turns: turns(eval, max_turns),
                eval: eval.clone(),
            })
        })
        .collect()
}

fn refuse_without_judge(planned: &[EvalPlan<'_>], suite: &Suite) -> Result<(), EngineError> {
    if suite.judge.is_some() {
        return Ok(());
    }
    let judged = planned
        .iter()
        .flat_map(|planned| &planned.evals)
        .filter(|eval| matches!(eval.expected, mcp_evals::Expected::LlmJudge(_)));
    let ids: Vec<&str> = judged.map(|eval| eval.id.as_str()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    Err(EngineError::usage(format!(
        "a judge is needed for {}: add `config.llmJudge`, or set `--judge`",
        listed(ids)
    )))
}
