//! Writing and reading records, including incomplete and damaged ones.

mod faults;
mod files;
mod round_trip;

use std::path::Path;

use crate::event::{
    Actor, ConnectionId, ConnectionOpened, Direction, Event, EventKind, Outcome, RECORD_VERSION,
    RunStarted, TrialEnded, TrialStarted, WireKind,
};
use crate::redact::Redactor;

use super::*;

const SECRET: &str = "hunter2-hunter2";

fn redactor() -> Redactor {
    Redactor::new([("DB_PASSWORD".to_owned(), SECRET.to_owned())])
}

fn run_started() -> RunStarted {
    RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: "2026-11-15T05:00:00Z".to_owned(),
        name: "suite".to_owned(),
        command: vec!["proctor".to_owned(), "run".to_owned()],
        context: None,
    }
}

fn trial_started(attempt: u32) -> TrialStarted {
    TrialStarted {
        case: "tasks/add.yaml".to_owned(),
        agent: Some("loop".to_owned()),
        repeat: 1,
        attempt,
    }
}

fn passed() -> TrialEnded {
    TrialEnded {
        outcome: Outcome::Passed,
        reason: None,
        blame: None,
    }
}

fn opened() -> EventKind {
    EventKind::ConnectionOpened(ConnectionOpened {
        conn: ConnectionId(1),
        server: "fs".to_owned(),
        actor: Actor::Agent,
        transport: WireKind::Stdio,
        target: format!("fs --password {SECRET}"),
    })
}

fn create(folder: &Path) -> RunWriter {
    RunWriter::create(folder, redactor(), run_started()).unwrap()
}

fn frame(trial: &mut TrialWriter, at: u64, bytes: &[u8]) -> Result<u64, RecordError> {
    trial.append_frame(at, ConnectionId(1), None, Direction::ToServer, bytes)
}

fn only_trial(run: &RunReader) -> TrialFile {
    let mut trials = run.trials().unwrap();
    assert_eq!(trials.len(), 1);
    trials.remove(0)
}

fn events_of(run: &RunReader, trial: &TrialFile) -> Vec<Event> {
    run.trial(trial).unwrap().map(Result::unwrap).collect()
}
