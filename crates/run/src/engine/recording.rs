//! The run folder of one session, for commands that don't run a suite.
//!
//! Its main type is [`SessionRecording`].

use std::path::Path;
use std::time::Instant;

use proctor_record::event::{
    Blame, Outcome, RECORD_VERSION, RunEnded, RunStarted, TrialEnded, TrialStarted,
};
use proctor_record::index;
use proctor_record::record::{RecordError, RunWriter};
use proctor_record::redact::Redactor;
use proctor_wire::recorder::Recorder;

use super::{Engine, runs};

/// A run with one trial, which is the session.
pub struct SessionRecording {
    run: RunWriter,
    pub recorder: Recorder,
}

impl SessionRecording {
    /// Starts a recording in a new folder, unique even if several start in the same second.
    pub fn start(
        engine: &Engine,
        out: Option<&Path>,
        name: &str,
        redactor: &Redactor,
    ) -> Result<Self, RecordError> {
        if out.is_none() {
            runs::ignore();
        }
        let out = out.unwrap_or(Path::new(runs::RUNS));
        let started = Instant::now();
        let run = runs::create(out, redactor, &run_started(engine, name))?;
        Self::within(run, name, started)
    }

    /// Starts a recording in this folder, which must not contain one.
    pub fn at(
        engine: &Engine,
        folder: &Path,
        name: &str,
        redactor: &Redactor,
    ) -> Result<Self, RecordError> {
        let started = Instant::now();
        let run = RunWriter::create(folder, redactor.clone(), run_started(engine, name))?;
        Self::within(run, name, started)
    }

    fn within(run: RunWriter, name: &str, started: Instant) -> Result<Self, RecordError> {
        let trial = TrialStarted {
            case: name.to_owned(),
            agent: None,
            repeat: 1,
            attempt: 1,
        };
        let trial = run.trial(0, name, trial)?;
        Ok(Self {
            run,
            recorder: Recorder::new(trial, started),
        })
    }

    pub fn folder(&self) -> &Path {
        self.run.folder()
    }

    /// Ends the recording, or reports that it is incomplete.
    pub fn end(self, ended: TrialEnded, exit: u8) -> Result<(), RecordError> {
        // Taking it records the ends of connections.
        let trial = self.recorder.take_trial();
        let error = self.recorder.take_error();
        let ended = match &error {
            None => ended,
            // The earlier events are complete; only the rest is missing.
            Some(
                large @ (RecordError::TrialTooLarge { .. } | RecordError::EventTooLarge { .. }),
            ) => TrialEnded {
                outcome: Outcome::Errored,
                reason: Some(large.to_string()),
                blame: Some(Blame::Infra),
            },
            Some(error) => return Err(error.clone()),
        };
        let at = self.recorder.at();
        if let Some(trial) = trial {
            index::end_trial(trial, at, ended)?;
        }
        let reason = None;
        self.run.end(
            at,
            RunEnded {
                exit,
                reason,
                ..RunEnded::default()
            },
        )?;
        error.map_or(Ok(()), Err)
    }
}

/// The end of a session without problems.
pub fn well() -> TrialEnded {
    TrialEnded {
        outcome: Outcome::Passed,
        reason: None,
        blame: None,
    }
}

fn run_started(engine: &Engine, name: &str) -> RunStarted {
    RunStarted {
        record: RECORD_VERSION,
        proctor: env!("CARGO_PKG_VERSION").to_owned(),
        started: jiff::Timestamp::now().to_string(),
        name: name.to_owned(),
        command: engine.command.clone(),
        context: None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proctor_record::event::{ConnectionId, EventKind, Finding, FindingKind};
    use proctor_record::index::{self, IndexScrutiny};
    use proctor_record::record::RunReader;

    use super::*;

    #[test]
    fn an_event_that_is_too_large_ends_the_session_as_errored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let engine = Engine::new(std::iter::empty().collect(), PathBuf::from("proctor"));
        let kept = SessionRecording::at(&engine, &path, "s", &Redactor::default()).unwrap();
        kept.recorder.record(EventKind::Finding(Finding {
            conn: ConnectionId::NONE,
            kind: FindingKind::Protocol,
            detail: "x".repeat(64 << 20),
            count: 1,
        }));
        let error = kept.end(well(), 0).unwrap_err();
        assert!(
            matches!(error, RecordError::EventTooLarge { .. }),
            "{error}"
        );
        let run = RunReader::open(&path).unwrap();
        let entries = index::load(&run, IndexScrutiny::Length).unwrap();
        let ended = entries[0].attempt.ended.as_ref().expect("it has ended");
        assert_eq!(ended.outcome, Outcome::Errored);
        assert_eq!(ended.blame, Some(Blame::Infra));
    }
}
