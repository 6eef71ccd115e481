//! Evals that servers ship, as cases of a suite: found, agreed to, and put among the others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use proctor_core::event::Actor;
use proctor_core::hint::listed;
use proctor_core::suite::{Case, Server, Shipped, ShippedEval, Suite};
use proctor_report::evals::NotRun;
use proctor_wire::answers::Answers;
use proctor_wire::client::{Caps, ConnectOptions, Timeouts};
use proctor_wire::recorder::Recorder;

use super::prepare::judge_name;
use crate::args::CheckArgs;
use crate::commands::environment;
use crate::commands::evals::consent::{self, ConsentOptions, Purpose};
use crate::commands::evals::gather::{Choice, Offer, Planned, gather};
use crate::commands::evals::run::{not_run, turns};
use crate::commands::evals::servers::redactor;
use crate::commands::stops::Stops;
use crate::exit::Exit;
use crate::output;
use crate::threads;

/// Puts the evals that the suite names among its cases, once somebody has agreed to it. Gives those
/// that are listed and can't be run, or the exit code.
pub(super) fn fill(
    args: &CheckArgs,
    suite: &mut Suite,
) -> anyhow::Result<Result<Vec<NotRun>, Exit>> {
    if suite.shipped.is_empty() {
        return Ok(Ok(Vec::new()));
    }
    let runtime = threads::one_worker()?;
    let filled = runtime.block_on(async {
        let mut stops = Stops::listen().context("can't listen for signals")?;
        tokio::select! {
            filled = find_and_ask(args, suite) => filled,
            () = stops.next() => Ok(Err(Exit::Interrupted)),
        }
    });
    // Processes are ended by their guards, which a runtime that is going away still waits for.
    runtime.shutdown_timeout(Duration::from_secs(5));
    Ok(match filled? {
        Ok((cases, not_run)) => {
            suite.cases.extend(cases);
            suite.shipped.clear();
            Ok(not_run)
        }
        Err(exit) => Err(exit),
    })
}

async fn find_and_ask(
    args: &CheckArgs,
    suite: &Suite,
) -> anyhow::Result<Result<(Vec<Case>, Vec<NotRun>), Exit>> {
    let named: BTreeSet<&str> = suite.shipped.iter().map(|s| s.server.as_str()).collect();
    let servers: Vec<Server> = suite
        .servers
        .iter()
        .filter(|server| named.contains(server.name.as_str()))
        .cloned()
        .collect();
    let redactor = redactor(&suite.servers);
    let options = ConnectOptions {
        actor: Actor::Preflight,
        recorder: Recorder::nothing().redacting(&redactor),
        inherited: environment(),
        pass: args.pass_env.clone(),
        guard: std::env::current_exe().context("can't tell where Proctor is")?,
        timeouts: Timeouts::default(),
        answers: Answers::default(),
        era: None,
    };
    let look = async || {
        let offers = gather(&servers, None, &options, &Caps::default()).await;
        offers.map_err(|error| redactor.text(&error.to_string()).into_owned())
    };
    let offers = match look().await {
        Ok(offers) => offers,
        Err(reason) => return unreachable_now(&reason),
    };
    if let Some(offer) = offers.iter().find(|offer| !offer.ships_evals()) {
        bail!(
            "the suite names evals of `{}`, which ships none",
            offer.server.name
        );
    }
    let planned: Vec<Planned<'_>> = offers.iter().map(|offer| meant(offer, suite)).collect();
    if planned.iter().all(|planned| planned.evals.is_empty()) {
        return Ok(Ok((Vec::new(), not_run(&offers, &Choice::default()))));
    }
    refuse_without_judge(&planned, suite)?;
    let model = suite.agents.first().map(|agent| agent.name.clone());
    let judge = suite.judge.as_ref().map(judge_name);
    let terms = ConsentOptions {
        purpose: Purpose::Run,
        yes: args.yes,
        terminal: consent::is_terminal(),
        file: args.consent.as_deref(),
        model: model.as_deref(),
        judge: judge.as_deref(),
        runs: args.plan.runs.unwrap_or(1),
        max_turns: args.max_turns,
        redactor: &redactor,
    };
    let granted = match consent::obtain(&planned, &terms).await? {
        Ok(granted) => granted,
        Err(exit) => return Ok(Err(exit)),
    };
    // What somebody agreed to may have changed while they read it.
    let again = match look().await {
        Ok(again) => again,
        Err(reason) => return unreachable_now(&reason),
    };
    if let Err(difference) = granted.still_holds(&again) {
        let text = output::printable_lines(&redactor.text(&difference.to_string()));
        output::message(&format!("error: {text}\nnothing was called\n"))?;
        return Ok(Err(Exit::Usage));
    }
    let mut all: Vec<Case> = Vec::new();
    for case in suite
        .shipped
        .iter()
        .flat_map(|set| cases(set, &offers, args.max_turns))
    {
        // What two sets mean is one case, and what both ask for must hold.
        match all.iter_mut().find(|known| known.id == case.id) {
            Some(known) => {
                known.checks.extend(case.checks);
                known.pass = known.pass.or(case.pass);
            }
            None => all.push(case),
        }
    }
    Ok(Ok((all, not_run(&offers, &Choice::default()))))
}

/// Nothing is known of a server that does not come up, and no trial was started.
fn unreachable_now<T>(reason: &str) -> anyhow::Result<Result<T, Exit>> {
    output::message(&format!("error: {}\n", output::printable_lines(reason)))?;
    Ok(Err(Exit::Inconclusive))
}

/// The evals of a server that any task set means.
fn meant<'a>(offer: &'a Offer, suite: &Suite) -> Planned<'a> {
    let is_meant = |eval: &mcp_evals::Eval| {
        let mut sets = suite.shipped.iter();
        sets.any(|set| set.server == offer.server.name && fits(set, eval))
    };
    Planned {
        offer,
        evals: offer.runnable().filter(|eval| is_meant(eval)).collect(),
    }
}

fn fits(set: &Shipped, eval: &mcp_evals::Eval) -> bool {
    set.level
        .is_none_or(|level| eval.level().is_some_and(|own| own.as_str() == level.word()))
}

/// The cases of a task set.
fn cases(set: &Shipped, offers: &[Offer], max_turns: Option<u32>) -> Vec<Case> {
    let offer = offers.iter().find(|offer| offer.server.name == set.server);
    let evals = offer.into_iter().flat_map(Offer::runnable);
    evals
        .filter(|eval| fits(set, eval))
        .map(|eval| Case {
            checks: set.checks.iter().map(Arc::clone).collect(),
            pass: set.pass,
            ..Case::of_eval(ShippedEval {
                server: set.server.clone(),
                max_turns: turns(eval, max_turns),
                eval: eval.clone(),
            })
        })
        .collect()
}

fn refuse_without_judge(planned: &[Planned<'_>], suite: &Suite) -> anyhow::Result<()> {
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
    bail!(
        "a judge is needed for {}: add `config.llmJudge`, or give `--judge`",
        listed(ids)
    )
}
