//! Selects the cases that failed or have no verdict in the latest run of the same suite.
//!
//! Its main function is [`select`]. It selects whole cases, not single trials: a pass rule is about all
//! trials of a case.

use std::collections::BTreeSet;
use std::path::Path;

use proctor_core::gate::CaseVerdict;
use proctor_core::plan::Selection;
use proctor_core::runs;
use proctor_core::suite::Suite;
use proctor_core::summary::{AgentTrials, CaseSummary, Summary, TrialSummary};
use proctor_record::event::{Outcome, RunKind};
use proctor_record::hint::{counted, listed};

use super::error::EngineError;
use super::host::{Host, HostNotice};
use super::options::RerunOption;
use super::runs::RUNS;

/// How many cases a notice names.
const NAMED: usize = 10;

/// An earlier run.
pub(super) struct EarlierRun<'a>(&'a Summary);

impl EarlierRun<'_> {
    /// Whether it is a run of the suite in this file.
    pub(super) fn is_of_suite(&self, file: &str) -> bool {
        let real = |path: &str| std::fs::canonicalize(path).ok();
        let plan = &self.0.plan;
        plan.kind == RunKind::Suite
            && (plan.suite == file
                || real(&plan.suite).is_some_and(|path| Some(path) == real(file)))
    }

    /// Whether it is a run of shipped evals with this name, which contains the servers.
    pub(super) fn is_of_evals(&self, name: &str) -> bool {
        self.0.plan.kind == RunKind::Evals && self.0.started.name == name
    }
}

/// Restricts a selection to the cases to rerun, and tells the host which these are.
pub(super) fn select(
    option: RerunOption,
    suite: &Suite,
    selection: &mut Selection,
    is_same: &dyn Fn(&EarlierRun<'_>) -> bool,
    host: &dyn Host,
) -> Result<(), EngineError> {
    if !option.is_set() {
        return Ok(());
    }
    let nothing = |reason: String| Err(EngineError::NothingToRerun(reason));
    let Some((name, summary)) = latest(is_same)? else {
        return nothing(format!("`{RUNS}` has no earlier run of this suite"));
    };
    let meant: Vec<&CaseSummary> = summary
        .cases
        .iter()
        .filter(|case| is_meant(option, case, summary.plan.stop_when_decided))
        .collect();
    if meant.is_empty() {
        return nothing(format!("no case {} in `{name}`", words(option)));
    }
    let is_known = |case: &&CaseSummary| {
        let mut cases = suite.cases.iter();
        cases.any(|known| known.id.0 == case.case.id && selection.matches(known))
    };
    let (known, gone): (Vec<&CaseSummary>, Vec<&CaseSummary>) =
        meant.into_iter().partition(is_known);
    if !gone.is_empty() {
        let text = format!(
            "not selected now, or no longer in the suite: {}",
            names(&gone)
        );
        host.notice(HostNotice::Text(&text));
    }
    if known.is_empty() {
        return nothing(format!(
            "the selection has no case that {} in `{name}`",
            words(option)
        ));
    }
    let cases = counted(known.len(), "case");
    let text = format!(
        "rerunning {cases} that {} in `{name}`: {}",
        words(option),
        names(&known)
    );
    host.notice(HostNotice::Text(&text));
    let ids = known.iter().map(|case| case.case.id.clone());
    selection.ids = Some(ids.collect::<BTreeSet<String>>());
    Ok(())
}

/// The latest run of the same suite, with its name.
fn latest(
    is_same: &dyn Fn(&EarlierRun<'_>) -> bool,
) -> Result<Option<(String, Summary)>, EngineError> {
    let entries = runs::list(Path::new(RUNS))
        .map_err(|error| EngineError::unusable("can't find the earlier runs", error))?;
    for entry in entries {
        let Ok(run) = entry.run else { continue };
        // A record without a plan is not a run of a suite.
        let Ok(planned) = Summary::planned(&run) else {
            continue;
        };
        if is_same(&EarlierRun(&planned)) {
            return Ok(Some((entry.name, Summary::of_run(&run)?)));
        }
    }
    Ok(None)
}

fn is_meant(option: RerunOption, case: &CaseSummary, stop_when_decided: bool) -> bool {
    let trials = |agent: &AgentTrials| {
        // The missing trials of a decided case were not needed.
        let is_open = agent.verdict(&case.case) == CaseVerdict::Open;
        let is_missing = option.errors && (is_open || !stop_when_decided);
        let is_meant = |trial: &TrialSummary| match trial.outcome() {
            Some(Outcome::Passed) => false,
            Some(Outcome::Failed | Outcome::TimedOut) => option.failed,
            Some(Outcome::Errored | Outcome::Cancelled) => option.errors,
            None => is_missing,
        };
        agent.trials.iter().any(is_meant)
    };
    case.agents.iter().any(trials)
}

fn words(option: RerunOption) -> &'static str {
    match (option.failed, option.errors) {
        (true, true) => "failed, or had trials without a verdict,",
        (true, false) => "failed",
        (false, true | false) => "had trials without a verdict",
    }
}

fn names(cases: &[&CaseSummary]) -> String {
    let shown = cases.iter().take(NAMED).map(|case| case.case.name.as_str());
    let more = match cases.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", listed(shown))
}
