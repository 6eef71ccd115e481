//! The gates of a run: those of the command line, else those of the suite.
//!
//! Main function: [`planned`]. A base that can't be read is an error before anything starts: without it, the
//! run could never answer.

use std::path::Path;

use proctor_core::compare::RunFacts;
use proctor_core::event::{PlannedGates, RunPlanned, RunTally};
use proctor_core::record::RunReader;

use super::EngineError;
use super::options::GateOptions;

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

/// The verdicts of the run to compare with.
fn base(folder: &Path) -> Result<RunTally, EngineError> {
    let facts = RunReader::open(folder).and_then(|run| RunFacts::load(&run));
    let facts = facts.map_err(|error| {
        EngineError::unusable("can't read the base of `--no-regression`", error)
    })?;
    Ok(facts.tally)
}

/// Refuses a plan that can't answer its own gates, before it costs anything.
pub(super) fn refuse_impossible(planned: &RunPlanned) -> Result<(), EngineError> {
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
