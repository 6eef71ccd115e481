//! Runs suites as tests: `cargo test` fails if an agent no longer does its tasks.
//!
//! Needs the `proctor` binary, which starts the servers: next to this test, in `PATH`, or at the path in the
//! variable `PROCTOR`.

use std::error::Error;
use std::path::Path;

use proctor_core::gate::Gate;
use proctor_run::engine::{CheckOptions, Engine, EngineError};
use proctor_run::trial_folder::KeepOption;

/// Options for the eval file of an example, with a folder for the record of its run.
fn example(file: &str, record: &Path) -> CheckOptions {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../quickstart")
        .join(file);
    let mut options = CheckOptions::file(path);
    options.run.folder = Some(record.join("run"));
    options.run.keep = KeepOption::None;
    options
}

#[test]
fn the_suite_meets_its_gate() -> Result<(), Box<dyn Error>> {
    let record = tempfile::tempdir()?;
    let engine = Engine::of_this_process()?;
    let result = engine.check_blocking(&example("eval.yaml", record.path()))?;
    assert_eq!(result.gate, Gate::Met);
    assert_eq!(result.summary.counts().passed, 3);
    Ok(())
}

#[test]
fn a_careless_agent_misses_the_gate_and_the_summary_has_the_reason() -> Result<(), Box<dyn Error>> {
    let record = tempfile::tempdir()?;
    let engine = Engine::of_this_process()?;
    let result = engine.check_blocking(&example("failing.yaml", record.path()))?;
    assert!(
        matches!(result.gate, Gate::Missed { .. }),
        "{:?}",
        result.gate
    );
    assert_eq!(result.summary.counts().failed, 2);
    let trials = result.summary.trials();
    let mut reasons = trials.filter_map(|(_, _, trial)| trial.result.as_ref()?.reason.clone());
    assert!(reasons.all(|reason| reason.contains("toolsUsed")));
    Ok(())
}

#[test]
fn an_invalid_suite_does_not_start() -> Result<(), Box<dyn Error>> {
    let record = tempfile::tempdir()?;
    let engine = Engine::of_this_process()?;
    let result = engine.check_blocking(&example("no-such-file.yaml", record.path()));
    assert!(matches!(result, Err(EngineError::InvalidFile { .. })));
    assert!(!record.path().join("run").exists());
    Ok(())
}
