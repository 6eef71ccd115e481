//! A run folder with one trial of every sort, written by the real writer.

mod events;
mod trials;

use std::path::Path;

use proctor_core::gate::Gate;
use proctor_core::summary::Summary;
use proctor_record::event::{Blame, Outcome, RunEnded};
use proctor_record::record::{RecordError, RunReader, RunWriter};
use proctor_record::redact::Redactor;
use proctor_report::Report;

use events::{call_answered, case, ended, opened, planned, run_started, seen, trial, trial_by};
use trials::{hostile, list_a_folder, long, read_a_file, rest};

/// ANSI, bidi, zero width, what ends CDATA, a command to a CI service, what XML does not take.
pub(crate) const HOSTILE: &str =
    "\u{1b}[31mred\u{1b}[0m \u{202e}txt.exe\u{200b} ]]> <b>&amp;\u{0}\u{ffff}\u{7}\n::error::pwned";

/// A run in a folder of its own.
pub(crate) struct Sample {
    _folder: tempfile::TempDir,
    pub(crate) run: RunReader,
    pub(crate) summary: Summary,
    pub(crate) gate: Gate,
}

impl Sample {
    pub(crate) fn new() -> Self {
        Self::written(|folder| write(folder, 0))
    }

    /// The same, with so many more cases that pass and that fail.
    pub(crate) fn with_more(cases: u32) -> Self {
        Self::written(|folder| write(folder, cases))
    }

    /// A run of one case by two agents, of whom one passes it.
    pub(crate) fn of_two_agents() -> Self {
        Self::written(|folder| {
            let mut run = RunWriter::create(folder, Redactor::default(), run_started())?;
            run.append(1, planned(vec![case("one", 1, None)], &["first", "second"]))?;
            for (agent, outcome) in [("first", Outcome::Passed), ("second", Outcome::Failed)] {
                let trial = trial_by(&run, agent, "one", 1, 1)?;
                trial.end(1_200_000, ended(outcome, None, None))?;
            }
            Ok(())
        })
    }

    /// A run of one trial, in which a tool answers with this text.
    pub(crate) fn with_result(text: &str) -> Self {
        Self::written(|folder| {
            let mut run = RunWriter::create(folder, Redactor::default(), run_started())?;
            run.append(1, planned(vec![case("one", 1, None)], &["scripted"]))?;
            let mut trial = trial(&run, "one", 1, 1)?;
            trial.append(1_050_000, opened())?;
            call_answered(&mut trial, 1, "read", "{}", Some(text))?;
            trial.end(1_200_000, ended(Outcome::Passed, None, None))?;
            run.end(2_000_000, RunEnded::default())
        })
    }

    /// A run that was killed after all of its trials passed.
    pub(crate) fn killed_after_a_pass() -> Self {
        Self::written(|folder| {
            let mut run = RunWriter::create(folder, Redactor::default(), run_started())?;
            run.append(1, planned(vec![case("one", 1, None)], &["scripted"]))?;
            let trial = trial(&run, "one", 1, 1)?;
            trial.end(1_200_000, ended(Outcome::Passed, None, None))?;
            Ok(())
        })
    }

    /// A run that ended before its first trial.
    pub(crate) fn without_trials() -> Self {
        Self::written(|folder| {
            let mut run = RunWriter::create(folder, Redactor::default(), run_started())?;
            run.append(1, planned(vec![case("one", 2, None)], &["scripted"]))?;
            Ok(())
        })
    }

    pub(crate) fn written(write: impl FnOnce(&Path) -> Result<(), RecordError>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sample");
        write(&path).expect("a run");
        let run = RunReader::open(&path).expect("a run");
        let summary = Summary::of_run(&run).expect("a summary");
        let gate = Gate::of(&summary);
        Self {
            _folder: folder,
            run,
            summary,
            gate,
        }
    }

    pub(crate) fn report(&self) -> Report<'_> {
        Report {
            // The real one is another every time.
            folder: Path::new(".proctor/runs/sample"),
            ..Report::new(&self.run, &self.summary, &self.gate)
        }
    }
}

fn write(folder: &Path, more: u32) -> Result<(), RecordError> {
    let mut run = RunWriter::create(folder, Redactor::default(), run_started())?;
    let mut cases = vec![
        case("read a file", 2, None),
        case("list a folder", 5, Some((4, 5))),
        case(HOSTILE, 1, None),
        case(&long(), 1, None),
        case("slow", 1, None),
        case("broken setup", 1, None),
        case("undecided", 1, None),
        case("server dies", 1, None),
        case("stopped", 1, None),
    ];
    cases.extend((0..more).map(|n| case(&format!("good {n}"), 1, None)));
    cases.extend((0..more).map(|n| case(&format!("bad {n}"), 1, None)));
    run.append(1, planned(cases, &["scripted"]))?;
    run.append(2, seen())?;
    read_a_file(&run)?;
    list_a_folder(&run)?;
    hostile(&run)?;
    rest(&run)?;
    for n in 0..more {
        trial(&run, &format!("good {n}"), 1, 1)?
            .end(2_000_000, ended(Outcome::Passed, None, None))?;
        let end = ended(Outcome::Failed, Some("no"), Some(Blame::Agent));
        trial(&run, &format!("bad {n}"), 1, 1)?.end(2_000_000, end)?;
    }
    let reason = Some("Ctrl-C".to_owned());
    run.end(
        9_000_000,
        RunEnded {
            exit: 1,
            reason,
            ..RunEnded::default()
        },
    )
}
