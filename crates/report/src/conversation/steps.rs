//! Steps: those of a trial, and those of a run.

use std::time::Duration;

use proctor_record::event::StepEnded;
use proctor_record::fold::{ClippedText, StepDone};
use proctor_record::record::{RecordError, RunReader};
use proctor_record::verdict::Verdict;

use super::screen::Screen;
use super::{ConversationOptions, checks};
use crate::words;

/// Steps of a run's own setup or cleanup, with their outputs.
pub fn run_steps<'a>(
    run: &RunReader,
    steps: impl IntoIterator<Item = &'a StepEnded>,
    options: &ConversationOptions,
) -> Result<String, RecordError> {
    let mut screen = Screen::new(options);
    for step in steps {
        render(&mut screen, "run ", &done(run, step)?, true);
    }
    screen.blank();
    Ok(screen.take())
}

fn done(run: &RunReader, step: &StepEnded) -> Result<StepDone, RecordError> {
    let body = step.output.as_ref().map(|body| run.body_bytes(body));
    let output = body.transpose()?.flatten().map(|bytes| ClippedText {
        head: String::from_utf8_lossy(&bytes).into_owned(),
        ..ClippedText::default()
    });
    Ok(StepDone {
        phase: step.phase,
        id: step.id.clone(),
        kind: step.kind.clone(),
        verdict: step.verdict.clone(),
        output,
        outputs: step.outputs.clone(),
        duration: Duration::from_micros(step.duration),
    })
}

/// Shows a step. `of` says what it belongs to.
pub(super) fn render(screen: &mut Screen, of: &str, step: &StepDone, shows_output: bool) {
    let (label, style) = checks::label(&step.verdict);
    let mut facts = vec![step.kind.clone()];
    facts.extend(words::time(step.duration));
    let text = format!("{of}{} {} ({})", step.phase, step.id, facts.join(", "));
    screen.title(label, style, &text);
    match &step.verdict {
        Verdict::Pass => {}
        Verdict::Fail { reason } | Verdict::Unknown { reason } => screen.block(2, reason, None),
    }
    if let Some(output) = step.output.as_ref().filter(|_| shows_output) {
        screen.block(2, &output.to_string(), Some("| "));
    }
}
