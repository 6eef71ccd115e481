//! `proctor result view`: trials as conversations.

mod follow;

use std::sync::Arc;

use proctor_core::fold::fold_trial;
use proctor_core::record::RunReader;
use proctor_core::trial_names::{self, NamedTrial};
use proctor_report::conversation::{self, ConversationOptions, TrialHeading};
use proctor_report::terminal::TerminalStyle;

use super::super::view;
use super::source;
use crate::args::{ViewArgs, ViewFormat};
use crate::exit::Exit;
use crate::output;
use crate::pager::Pager;

pub(crate) fn run(args: &ViewArgs) -> anyhow::Result<Exit> {
    let source = source::open(&args.run)?;
    let run = source.run();
    let is_raw = args.raw || args.findings || args.output == ViewFormat::Json;
    if is_raw && args.names.is_empty() {
        return view::run(run, args, None);
    }
    let mut trials = trial_names::load(run)?;
    if let Some(text) = &args.trial {
        trials.retain(|trial| trial.contains(text));
        if trials.is_empty() {
            output::message("no trial of the run has that in its name\n")?;
            return Ok(Exit::NothingSelected);
        }
    } else if !args.names.is_empty() {
        trials = match trial_names::select(trials, &args.names.join(" ")) {
            Ok(trials) => trials,
            Err(error) => {
                output::error(&error.into(), &super::super::known_secrets());
                return Ok(Exit::NothingSelected);
            }
        };
    }
    if is_raw {
        return view::run(run, args, Some(&trials));
    }
    if args.follow {
        return follow::run(run, trials, args.full);
    }
    if trials.is_empty() {
        output::message("the run has no trials; `--raw` shows its events\n")?;
    }
    show(run, &trials, args)
}

fn show(run: &RunReader, trials: &[NamedTrial], args: &ViewArgs) -> anyhow::Result<Exit> {
    let options = options(args.full);
    let mut pager = Pager::start(!args.no_pager);
    for trial in trials {
        let folded = fold_trial(run, &trial.file, &options.fold_options())?;
        pager.write(&conversation::render(&heading(trial), &folded, &options))?;
    }
    Ok(Exit::Ok)
}

fn options(full: bool) -> ConversationOptions {
    ConversationOptions {
        style: TerminalStyle {
            width: output::width(),
            colour: true,
        },
        full,
    }
}

fn heading(trial: &NamedTrial) -> TrialHeading {
    TrialHeading {
        case: trial.case.clone(),
        agent: trial.agent.clone(),
        repeat: trial.repeat,
        runs: trial.runs,
        attempt: trial.file.attempt,
        places: Arc::clone(&trial.places),
    }
}
