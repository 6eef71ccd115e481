//! `proctor result view`: trials as conversations.

mod follow;

use std::sync::Arc;

use proctor_core::summary::Summary;
use proctor_core::trial_names::{self, NamedTrial};
use proctor_record::event::Phase;
use proctor_record::fold::TrialOutline;
use proctor_record::record::RunReader;
use proctor_report::conversation::{Conversation, ConversationOptions, TrialHeading, run_steps};
use proctor_report::terminal::TerminalStyle;

use super::super::view;
use super::source;
use crate::args::{ViewArgs, ViewFormat};
use crate::exit::Exit;
use crate::output;
use crate::pager::Pager;

/// How many bytes of a conversation are written at once.
const WRITTEN: usize = 64 * 1024;

pub(crate) fn run(args: &ViewArgs) -> anyhow::Result<Exit> {
    let source = source::open(&args.run)?;
    let run = source.run();
    let is_raw = args.raw || args.findings || args.output == ViewFormat::Json;
    if is_raw && args.names.is_empty() && args.trial.is_none() {
        return view::run(run, args, None);
    }
    let trials = if let Some(text) = &args.trial {
        let trials = trial_names::containing(run, text)?;
        if trials.is_empty() {
            output::message("no trial of the run has that in its name\n")?;
            return Ok(Exit::NothingSelected);
        }
        trials
    } else if args.names.is_empty() {
        trial_names::load(run)?
    } else {
        match trial_names::find(run, &args.names.join(" "))? {
            Ok(trials) => trials,
            Err(error) => {
                output::error(&error.into(), &super::super::known_secrets());
                return Ok(Exit::NothingSelected);
            }
        }
    };
    if is_raw {
        return view::run(run, args, Some(&trials));
    }
    if args.follow {
        return follow::run(run, trials, &options(args));
    }
    if trials.is_empty() {
        output::message("the run has no trials; `--raw` shows its events\n")?;
    }
    show(run, &trials, args)
}

fn show(run: &RunReader, trials: &[NamedTrial], args: &ViewArgs) -> anyhow::Result<Exit> {
    let options = options(args);
    let mut pager = Pager::start(!args.no_pager);
    let is_whole = args.names.is_empty() && args.trial.is_none();
    let steps = match Summary::planned(run) {
        Ok(summary) if is_whole => summary.steps,
        // A record without a plan has no steps.
        _ => Vec::new(),
    };
    let in_phase = |phase: Phase| {
        let steps = steps.iter().filter(|step| step.phase == phase);
        run_steps(run, steps, &options)
    };
    pager.write(&in_phase(Phase::Setup)?)?;
    for trial in trials {
        show_trial(run, trial, &options, &mut pager)?;
    }
    pager.write(&in_phase(Phase::Cleanup)?)?;
    Ok(Exit::Ok)
}

/// Shows a trial while it is read, so that a long one does not fill the memory.
fn show_trial(
    run: &RunReader,
    trial: &NamedTrial,
    options: &ConversationOptions,
    pager: &mut Pager,
) -> anyhow::Result<()> {
    let fold = options.fold_options();
    let outline = TrialOutline::read(run, &trial.file, &fold)?;
    let mut conversation = Conversation::new(&heading(trial), &outline, options);
    outline.each_item(run, &trial.file, &fold, |item| -> anyhow::Result<()> {
        conversation.item(&item);
        if conversation.waiting_bytes() > WRITTEN {
            pager.write(&conversation.take())?;
        }
        Ok(())
    })?;
    conversation.finish();
    pager.write(&conversation.take())
}

fn options(args: &ViewArgs) -> ConversationOptions {
    let lengths = args.lengths;
    // Zero means all.
    let lines = lengths.max_output_lines.map(|lines| match lines {
        0 => usize::MAX,
        lines => lines,
    });
    ConversationOptions {
        style: TerminalStyle {
            width: lengths.max_line_length.unwrap_or_else(output::width),
            colour: true,
        },
        full: args.full,
        turns: lengths.timeline,
        max_items: Some(lengths.max_events).filter(|events| *events > 0),
        max_lines: lines,
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
