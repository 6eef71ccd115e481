//! `proctor result view`: trials as conversations.

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

/// The width if the output is not a terminal.
const WIDTH: usize = 100;

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
    if trials.is_empty() {
        output::message("the run has no trials; `--raw` shows its events\n")?;
    }
    show(run, &trials, args.full)
}

fn show(run: &RunReader, trials: &[NamedTrial], full: bool) -> anyhow::Result<Exit> {
    let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| width.0.into());
    let options = ConversationOptions {
        style: TerminalStyle {
            width,
            colour: true,
        },
        full,
    };
    for trial in trials {
        let folded = fold_trial(run, &trial.file, &options.fold_options())?;
        let heading = TrialHeading {
            case: trial.case.clone(),
            agent: trial.agent.clone(),
            repeat: trial.repeat,
            runs: trial.runs,
            attempt: trial.file.attempt,
        };
        output::result(&conversation::render(&heading, &folded, &options))?;
    }
    Ok(Exit::Ok)
}
