//! A full disk, simulated with a limit on the size of files.
//!
//! The test runs itself again under `ulimit -f`, because a limit can't be removed.
#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test starts itself, not a program under test"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use proctor_record::event::{
    ConnectionId, Direction, Outcome, RECORD_VERSION, RunEnded, RunStarted, TrialEnded,
    TrialStarted,
};
use proctor_record::record::{RecordError, RunReader, RunWriter};
use proctor_record::redact::Redactor;

const FOLDER: &str = "PROCTOR_TEST_FOLDER";

#[test]
fn a_record_that_could_not_be_written_never_looks_whole() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        write_until_full(&PathBuf::from(folder));
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let program = std::env::current_exe().unwrap();
    // Sixteen blocks of 512 or 1024 bytes, by shell. The signal has to be ignored to get the error.
    let output = Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 16; exec \"$0\" --exact \"$1\" --nocapture",
        ])
        .arg(program)
        .arg("a_record_that_could_not_be_written_never_looks_whole")
        .env(FOLDER, &folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    let run = RunReader::open(&folder).unwrap();
    let trials = run.trials().unwrap();
    assert_eq!(trials.len(), 1);
    assert!(!trials[0].ended);
    let mut events = run.trial(&trials[0]).unwrap();
    assert!(events.by_ref().map(Result::unwrap).count() > 10);
    assert!(events.torn().is_some());
    assert!(proctor_record::index::ended(&run).unwrap().is_empty());
}

fn write_until_full(folder: &Path) {
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "0".to_owned(),
        started: String::new(),
        name: String::new(),
        command: Vec::new(),
        context: None,
    };
    let run = RunWriter::create(folder, Redactor::default(), started)
        .expect("there is room for the start");
    let started = TrialStarted {
        case: "x".to_owned(),
        agent: None,
        repeat: 1,
        attempt: 1,
    };
    let mut trial = run
        .trial(0, "x", started)
        .expect("there is room for the start");
    let error = (1..10_000)
        .find_map(|at| {
            let body = b"{\"jsonrpc\":\"2.0\"}";
            let direction = Direction::ToServer;
            trial
                .append_frame(at, ConnectionId(1), None, direction, body)
                .err()
        })
        .expect("the limit is reached");
    assert!(
        matches!(error, RecordError::Io { doing: "write", .. }),
        "{error:?}"
    );
    let ended = TrialEnded {
        outcome: Outcome::Passed,
        reason: None,
        blame: None,
    };
    assert_eq!(
        trial
            .end(1, ended)
            .expect_err("nothing ends after a failed write")
            .to_string(),
        error.to_string()
    );
    let ended = RunEnded {
        exit: 0,
        reason: None,
        ..RunEnded::default()
    };
    assert_eq!(
        run.end(1, ended)
            .expect_err("nothing ends after a failed write")
            .to_string(),
        error.to_string()
    );
}
