//! The gates of a run: those of the command line, else those of the suite.
//!
//! Main function: [`planned`]. A base that can't be read is an error before anything starts: without it, the
//! run could never answer.

use std::path::{Path, PathBuf};

use proctor_core::compare::RunFacts;
use proctor_core::runs;
use proctor_core::suite::Suite;
use proctor_core::suite::known_failures_file::is_unmatched;
use proctor_record::event::{PlannedGates, PlannedKnownFailure, RunPlanned, RunTally};
use proctor_record::record::RunReader;

use super::EngineError;
use super::options::GateOptions;
use super::runs::RUNS;

impl GateOptions {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The gates of a new run; `None` for the default gate.
pub fn planned(
    options: &GateOptions,
    suite: &PlannedGates,
) -> Result<Option<Box<PlannedGates>>, EngineError> {
    let base = options.no_regression.as_deref().map(base).transpose()?;
    let gates = PlannedGates {
        min_pass_rate: options.min_pass_rate.or(suite.min_pass_rate),
        min_lower_bound: options.min_lower_bound.or(suite.min_lower_bound),
        pass_hat: options.pass_hat.or(suite.pass_hat),
        max_errors: options.max_errors.or(suite.max_errors),
        base: base.or_else(|| suite.base.clone()),
    };
    Ok((!gates.is_empty()).then(|| Box::new(gates)))
}

/// The gates of a new run of a suite.
pub(super) fn of_suite(
    options: &GateOptions,
    suite: &Suite,
) -> Result<Option<Box<PlannedGates>>, EngineError> {
    let mut options = options.clone();
    if options.no_regression.is_none() {
        options.no_regression = suite_base(suite)?;
    }
    planned(&options, &suite.gates)
}

/// The folder of the run that `noRegression` of an eval file names.
fn suite_base(suite: &Suite) -> Result<Option<PathBuf>, EngineError> {
    let Some(written) = &suite.no_regression else {
        return Ok(None);
    };
    let beside = suite.path.parent().map(|folder| folder.join(written));
    if let Some(path) = beside.filter(|path| path.exists()) {
        return Ok(Some(path));
    }
    let found = runs::resolve(Path::new(RUNS), Path::new(written));
    let found = found.map_err(|error| {
        let message = format!("can't find the base of `noRegression: {written}`");
        EngineError::unusable(message, error)
    })?;
    Ok(Some(found))
}

/// The known failures of a suite, each with whether it matches a case. `own_agents` are the agents of the
/// eval file, which the command line may have replaced.
pub(super) fn known_failures(suite: &Suite, own_agents: &[String]) -> Vec<PlannedKnownFailure> {
    let known = suite.known_failures.iter().cloned();
    let agents = || {
        let run = suite.agents.iter().map(|agent| agent.name.as_str());
        run.chain(own_agents.iter().map(String::as_str))
    };
    known
        .map(|known| PlannedKnownFailure {
            unmatched: is_unmatched(&known, &suite.cases, agents()),
            ..known
        })
        .collect()
}

/// The base of one of several suites: the newest run of this suite in a folder of runs.
pub(super) fn base_of_suite(bases: &Path, suite: &str) -> Result<PathBuf, EngineError> {
    let shown = bases.display();
    if RunReader::open(bases).is_ok() {
        return Err(EngineError::usage(format!(
            "the base `{shown}` of `--no-regression` is one run: for several suites, name a folder with a \
             run of each"
        )));
    }
    let entries = runs::list(bases).map_err(|error| {
        EngineError::unusable("can't read the base of `--no-regression`", error)
    })?;
    let is_of_suite = |run: &RunReader| run.started().name == suite;
    let mut readable = entries.into_iter().filter_map(|entry| {
        let run = entry.run.ok()?;
        is_of_suite(&run).then_some(entry.folder)
    });
    readable.next().ok_or_else(|| {
        EngineError::usage(format!(
            "the base `{shown}` of `--no-regression` has no run of the suite `{suite}`"
        ))
    })
}

/// The verdicts of the run to compare with.
fn base(folder: &Path) -> Result<RunTally, EngineError> {
    let facts = RunReader::open(folder).and_then(|run| RunFacts::load(&run));
    let facts = facts.map_err(|error| {
        EngineError::unusable("can't read the base of the gate on regressions", error)
    })?;
    if facts.tally.curtailed {
        return Err(EngineError::usage(format!(
            "the base `{}` of `--no-regression` was stopped when its gate was decided \
             (`--stop-when-decided`), so it can't be compared; name a complete run",
            facts.tally.run
        )));
    }
    Ok(facts.tally)
}

/// Refuses gates that need every trial, if trials are not started once the gate is decided.
fn refuse_curtailed(planned: &RunPlanned) -> Result<(), EngineError> {
    let Some(gates) = planned
        .asked
        .gates
        .as_ref()
        .filter(|_| planned.asked.stop_when_decided)
    else {
        return Ok(());
    };
    let named = [
        (gates.pass_hat.is_some(), "`--pass-hat`"),
        (gates.base.is_some(), "`--no-regression`"),
        (gates.max_errors.is_some(), "`--max-errors`"),
    ];
    match named.iter().find(|(is_set, _)| *is_set) {
        Some((_, gate)) => Err(EngineError::usage(format!(
            "{gate} needs every trial, so `--stop-when-decided` can't be used with it"
        ))),
        None => Ok(()),
    }
}

/// Refuses a plan that can't answer its own gates, before it costs anything.
pub(super) fn refuse_impossible(planned: &RunPlanned) -> Result<(), EngineError> {
    refuse_curtailed(planned)?;
    let gate = planned
        .asked
        .gates
        .as_ref()
        .and_then(|gates| gates.pass_hat);
    let fewest = planned.cases.iter().min_by_key(|case| case.runs);
    match (gate, fewest) {
        (Some(gate), Some(case)) if case.runs < gate.k => Err(EngineError::usage(format!(
            "pass^{k} needs {k} runs of each case, and `{}` has {}; use `-n {k}`",
            case.name,
            case.runs,
            k = gate.k
        ))),
        (Some(_) | None, _) => Ok(()),
    }
}
