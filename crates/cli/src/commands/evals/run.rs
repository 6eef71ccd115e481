//! `proctor evals run`: runs the evals that servers ship, after somebody has agreed to it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use mcp_evals::{Listed, validate, validate_with_tools};
use proctor_core::evals::file::EvalsFile;
use proctor_core::event::PlannedOptions;
use proctor_core::hint::listed;
use proctor_core::plan::PlanOptions;
use proctor_core::problem::Problems;
use proctor_core::suite::{Agent, Case, Isolation, LimitFlags, Limits, Server, ShippedEval, Suite};
use proctor_report::evals::{NotRun, NotRunOutcome};
use proctor_wire::client::{Caps, ConnectOptions};
use proctor_wire::recorder::Recorder;

use super::consent::{self, ConsentOptions, Granted, Purpose};
use super::gather::{Choice, GatherError, Offer, Planned, gather};
use super::servers;
use crate::args::EvalsRunArgs;
use crate::commands::check::context::context;
use crate::commands::check::prepare::{Named, Prepared, plan, stand_in};
use crate::commands::check::{Shape, run_prepared};
use crate::commands::stops::Stops;
use crate::commands::{drawn, environment};
use crate::exit::Exit;
use crate::output;
use crate::threads;

pub(super) fn run(args: &EvalsRunArgs) -> anyhow::Result<Exit> {
    let servers = match servers::servers(&args.servers)? {
        Ok(servers) => servers,
        Err(exit) => return Ok(exit),
    };
    let asked = PlannedOptions {
        agents: Vec::new(),
        model_tap: false,
        replay: None,
        replay_strict: false,
        model: args.model.clone(),
        judge: args.judge.clone(),
        strict: args.run.strict,
        pass_env: args.servers.pass_env.clone(),
    };
    let mut suite = bare_suite(&servers);
    if let Err(exit) = stand_in(&asked, &mut suite)? {
        return Ok(exit);
    }
    let own = match own_evals(args, &servers)? {
        Ok(own) => own,
        Err(exit) => return Ok(exit),
    };
    let agreed = match agree(args, &servers, own.as_deref())? {
        Ok(agreed) => agreed,
        Err(exit) => return Ok(exit),
    };
    suite.cases = agreed.cases;
    let options = PlanOptions {
        runs: args.runs,
        limits: LimitFlags {
            timeout: args.task_timeout,
            ..LimitFlags::default()
        },
        ..PlanOptions::default()
    };
    let named = Named {
        suite: "evals".to_owned(),
        mcp_config: None,
    };
    let Some((planned, trials)) = plan(&suite, &options, named, &asked, None, 1)? else {
        bail!("there is nothing to run");
    };
    let mut context = match context(&args.run, &asked, suite, &trials, environment())? {
        Ok(context) => context,
        Err(exit) => return Ok(exit),
    };
    context.timeouts = agreed.timeouts;
    let prepared = Prepared {
        context,
        planned,
        trials,
        not_run: agreed.not_run,
    };
    run_prepared(&args.run, prepared, None, Shape::Evals)
}

/// The evals of the user's own file, if there is one.
fn own_evals(
    args: &EvalsRunArgs,
    servers: &[Server],
) -> anyhow::Result<Result<Option<Vec<Listed>>, Exit>> {
    let Some(path) = &args.evals else {
        return Ok(Ok(None));
    };
    if servers.len() != 1 {
        bail!(
            "`--evals` is for one server, and there are {}",
            servers.len()
        );
    }
    let mut problems = Problems::default();
    let file = EvalsFile::load(path, &mut problems);
    if let Some(file) = &file {
        file.tell_unknown_keys(&validate(&file.evals), &mut problems);
    }
    output::message(&drawn(&problems))?;
    Ok(match file {
        Some(file) if !problems.has_errors() => Ok(Some(file.evals)),
        _ => Err(Exit::Usage),
    })
}

/// A suite that no file describes.
fn bare_suite(servers: &[Server]) -> Suite {
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
        isolation: Isolation::Trial,
        cases: Vec::new(),
        task_sets: Vec::new(),
        shipped: Vec::new(),
        unfetched: Vec::new(),
    }
}

/// What may be run.
struct Agreed {
    cases: Vec<Case>,
    not_run: Vec<NotRun>,
    timeouts: proctor_wire::client::Timeouts,
}

/// Looks at the servers, asks, and looks again; gives the exit code if nothing may be run.
fn agree(
    args: &EvalsRunArgs,
    servers: &[Server],
    own: Option<&[Listed]>,
) -> anyhow::Result<Result<Agreed, Exit>> {
    let redactor = servers::redactor(servers);
    let options = servers::connect_options(&args.servers, Recorder::nothing(), &redactor)?;
    let choice = Choice {
        level: args.level.map(Into::into),
        ids: args.ids.clone(),
        only_read_only: args.only_read_only,
    };
    let terms = Terms {
        consent: ConsentOptions {
            purpose: Purpose::Run,
            yes: args.yes,
            terminal: consent::is_terminal(),
            file: args.consent.as_deref(),
            model: args.model.as_deref(),
            judge: args.judge.as_deref(),
            runs: args.runs.unwrap_or(1),
            max_turns: args.max_turns,
            redactor: &redactor,
        },
        choice: &choice,
        own,
    };
    let runtime = threads::one_worker()?;
    let agreed = runtime.block_on(async {
        let mut stops = Stops::listen().context("can't listen for signals")?;
        tokio::select! {
            agreed = look_and_ask(servers, &options, &terms) => agreed,
            () = stops.next() => Ok(Err(Exit::Interrupted)),
        }
    });
    // Processes are ended by their guards, which a runtime that is going away still waits for.
    runtime.shutdown_timeout(Duration::from_secs(5));
    agreed
}

/// What is to be run, and how it is asked for.
struct Terms<'a> {
    consent: ConsentOptions<'a>,
    choice: &'a Choice,
    /// Evals of the user's own, instead of those that the server ships.
    own: Option<&'a [Listed]>,
}

async fn look_and_ask(
    servers: &[Server],
    options: &ConnectOptions,
    terms: &Terms<'_>,
) -> anyhow::Result<Result<Agreed, Exit>> {
    let offers = match look(servers, options, terms).await {
        Ok(offers) => offers,
        Err(error) => return inconclusive(&error.to_string(), terms),
    };
    if terms.own.is_none() && !offers.iter().any(Offer::ships_evals) {
        let names = listed(servers.iter().map(|server| server.name.as_str()));
        bail!(
            "{names} ships no evals: nothing of the kind is declared; `--evals FILE` runs evals of \
             your own, and `proctor evals init` writes a first file"
        );
    }
    refuse_unknown_ids(&offers, terms.choice)?;
    let planned: Vec<Planned<'_>> = offers.iter().map(|o| o.plan(terms.choice)).collect();
    let not_run = not_run(&offers, terms.choice);
    if planned.iter().all(|planned| planned.evals.is_empty()) {
        return Ok(Err(nothing_to_run(&not_run)?));
    }
    refuse_what_lacks_a_model(&planned, &terms.consent)?;
    let granted: Granted = match consent::obtain(&planned, &terms.consent).await? {
        Ok(granted) => granted,
        Err(exit) => return Ok(Err(exit)),
    };
    // What somebody agreed to may have changed while they read it.
    let again = match look(servers, options, terms).await {
        Ok(again) => again,
        Err(error) => return inconclusive(&error.to_string(), terms),
    };
    if let Err(difference) = granted.still_holds(&again) {
        let text = terms
            .consent
            .redactor
            .text(&difference.to_string())
            .into_owned();
        let text = output::printable_lines(&text);
        output::message(&format!("error: {text}\nnothing was called\n"))?;
        return Ok(Err(Exit::Usage));
    }
    let cases = planned
        .iter()
        .flat_map(|planned| cases(planned, &terms.consent));
    Ok(Ok(Agreed {
        cases: cases.collect(),
        not_run,
        timeouts: options.timeouts,
    }))
}

/// What servers offer, with the user's own evals in place of theirs.
async fn look(
    servers: &[Server],
    options: &ConnectOptions,
    terms: &Terms<'_>,
) -> Result<Vec<Offer>, GatherError> {
    let level = terms.choice.level;
    let mut offers = gather(servers, level, options, &Caps::default()).await?;
    for (offer, own) in offers.iter_mut().zip(terms.own) {
        let of_level = |item: &&Listed| {
            level.is_none_or(|level| item.eval().is_none_or(|eval| eval.level() == Some(level)))
        };
        offer.evals = own.iter().filter(of_level).cloned().collect();
        offer.report = validate_with_tools(&offer.evals, &offer.tools);
    }
    Ok(offers)
}

fn inconclusive(reason: &str, terms: &Terms<'_>) -> anyhow::Result<Result<Agreed, Exit>> {
    let reason = terms.consent.redactor.text(reason);
    output::message(&format!("error: {}\n", output::printable_lines(&reason)))?;
    Ok(Err(Exit::Inconclusive))
}

/// The cases of what was agreed to.
fn cases(planned: &Planned<'_>, options: &ConsentOptions<'_>) -> Vec<Case> {
    let case = |eval: &&mcp_evals::Eval| {
        Case::of_eval(ShippedEval {
            server: planned.offer.server.name.clone(),
            max_turns: turns(eval, options.max_turns),
            eval: (*eval).clone(),
        })
    };
    planned.evals.iter().map(case).collect()
}

/// How many turns a scenario has that names none.
const DEFAULT_TURNS: u32 = 10;

/// How many turns a scenario has: what it says, or the default, and no more than the user allows.
pub(in crate::commands) fn turns(eval: &mcp_evals::Eval, most: Option<u32>) -> u32 {
    let own = match &eval.input {
        mcp_evals::Input::Scenario(input) => input.turn_limit(),
        _ => None,
    };
    let own = own.map_or(DEFAULT_TURNS, |own| u32::try_from(own).unwrap_or(u32::MAX));
    most.map_or(own, |most| own.min(most))
}

/// An id that no server has is a mistake, and nothing to be run by silence.
fn refuse_unknown_ids(offers: &[Offer], choice: &Choice) -> anyhow::Result<()> {
    let known = |id: &String| {
        let mut all = offers.iter().flat_map(|offer| &offer.evals);
        all.any(|item| item.id() == Some(id))
    };
    match choice.ids.iter().find(|id| !known(id)) {
        Some(id) => bail!("no server ships an eval `{id}`"),
        None => Ok(()),
    }
}

/// What is listed, meant, and not run.
pub(in crate::commands) fn not_run(offers: &[Offer], choice: &Choice) -> Vec<NotRun> {
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
                all.push(NotRun {
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

/// Says why nothing is run. Invalid evals fail, and nothing at all is nothing selected.
fn nothing_to_run(not_run: &[NotRun]) -> anyhow::Result<Exit> {
    let mut is_invalid = false;
    for one in not_run {
        let word = match one.outcome {
            NotRunOutcome::Invalid => "invalid",
            NotRunOutcome::Skipped => "skipped",
        };
        is_invalid |= one.outcome == NotRunOutcome::Invalid;
        output::message(&output::printable_lines(&format!(
            "{word}: {}\n",
            one.reason
        )))?;
    }
    output::message("no eval is left to be run\n")?;
    Ok(if is_invalid {
        Exit::Failed
    } else {
        Exit::NothingSelected
    })
}

/// Evals that need a model or a judge that was not given are named before anything is started.
fn refuse_what_lacks_a_model(
    planned: &[Planned<'_>],
    options: &ConsentOptions<'_>,
) -> anyhow::Result<()> {
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
    let told: Vec<String> = lacking
        .iter()
        .map(|(flag, ids)| {
            format!(
                "`{flag}` is needed for {}",
                listed(ids.iter().map(String::as_str))
            )
        })
        .collect();
    if !told.is_empty() {
        bail!("{}; `--level` or `--id` chooses others", told.join("; "));
    }
    Ok(())
}
