//! `proctor result view --follow`: a trial that is still running, as it goes on.
//!
//! It reads the record from where it stopped reading, and ends with the trial. Ctrl-C ends it earlier; the run
//! does not notice.

use std::time::Duration;

use proctor_core::trial_names::NamedTrial;
use proctor_record::fold::Fold;
use proctor_record::hint::listed;
use proctor_record::record::{Position, RunReader};
use proctor_report::conversation::{ConversationOptions, Follower};

use super::heading;
use crate::exit::Exit;
use crate::output;

/// The time between looks at the record.
const INTERVAL: Duration = Duration::from_millis(200);

/// After so many looks without anything new, it asks whether the run still goes on.
const PATIENCE: u32 = 10;

pub(super) fn run(
    run: &RunReader,
    trials: Vec<NamedTrial>,
    options: &ConversationOptions,
) -> anyhow::Result<Exit> {
    let running: Vec<NamedTrial> = trials.into_iter().filter(|t| !t.file.ended).collect();
    let trial = match &running[..] {
        [] => {
            output::message("no such trial is running\n")?;
            return Ok(Exit::NothingSelected);
        }
        [trial] => trial.clone(),
        several => {
            let names: Vec<String> = several.iter().map(name).collect();
            let names = listed(names.iter().map(String::as_str));
            let text = format!("several trials are running; name one of {names}");
            output::message(&output::printable_lines(&format!("{text}\n")))?;
            return Ok(Exit::NothingSelected);
        }
    };
    follow(run, trial, options)
}

fn follow(
    run: &RunReader,
    mut trial: NamedTrial,
    options: &ConversationOptions,
) -> anyhow::Result<Exit> {
    let heading = heading(&trial);
    let mut fold = Fold::new(options.fold_options());
    let mut follower = Follower::default();
    let mut position = Position::default();
    let mut quiet = 0;
    loop {
        // Looked up before it is read: what is read after the rename is all there is.
        trial.file = trial.file.current();
        let mut events = run.trial_from(&trial.file, position)?;
        for event in events.by_ref() {
            fold.push(&event?, run.blobs())?;
        }
        let is_new = events.position() != position;
        position = events.position();
        if is_new {
            quiet = 0;
            output::report(&follower.update(&heading, fold.clone().finish(), options))?;
        } else {
            quiet += 1;
        }
        if trial.file.ended {
            return Ok(Exit::Ok);
        }
        if quiet > PATIENCE && !run.is_active() && !trial.file.clone().current().ended {
            output::message(
                "the run ended before its trial; `proctor check --resume` resumes it\n",
            )?;
            return Ok(Exit::Inconclusive);
        }
        std::thread::sleep(INTERVAL);
    }
}

/// The name that selects a trial.
fn name(trial: &NamedTrial) -> String {
    match &trial.agent {
        Some(agent) => format!("{agent}/{} {}", trial.case, trial.repeat),
        None => format!("{} {}", trial.case, trial.repeat),
    }
}
