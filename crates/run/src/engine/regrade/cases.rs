//! The cases of a run, each with the checks that an eval file has for it now.
//!
//! The main type is [`CaseTable`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proctor_core::check::Check;
use proctor_core::grades::GradedCase;
use proctor_core::grading::CaseChecks;
use proctor_core::regrade::CaseComparison;
use proctor_core::suite::{self, Case, Level, ShippedEvalSet, Step, Suite, digest, parts};
use proctor_record::event::{PlannedCase, PlannedEval, RunPlanned};

use super::super::error::EngineError;

/// The checks of every case of a run.
pub(super) struct CaseTable {
    /// By the id of the case in the plan; `None` if the eval file has no such case.
    cases: BTreeMap<String, Option<KnownCase>>,
    /// The cases of the eval file without a trial in the run.
    pub(super) added: Vec<String>,
    names: BTreeMap<String, String>,
}

/// A case of the run that the eval file has.
pub(super) struct KnownCase {
    assertions: Vec<Arc<Check>>,
    verify: Vec<Step>,
    is_shipped: bool,
    pass: Option<(u32, u32)>,
    /// The SHA-256 of the case; for a shipped eval, of its additional assertions.
    hash: String,
    pub(super) comparison: CaseComparison,
}

impl KnownCase {
    pub(super) fn checks(&self) -> CaseChecks<'_> {
        CaseChecks {
            assertions: &self.assertions,
            verify: &self.verify,
            is_shipped: self.is_shipped,
        }
    }

    fn of_case(planned: &PlannedCase, case: &Case) -> Result<Self, EngineError> {
        let unreadable =
            |error| EngineError::unusable(format!("the case `{}` can't be read", case.name), error);
        let hash = digest(case).map_err(unreadable)?;
        let now = parts(case).map_err(unreadable)?;
        Ok(Self {
            comparison: CaseComparison::new(planned, &hash, &now),
            assertions: case.checks.clone(),
            verify: case.verify.clone(),
            is_shipped: false,
            pass: case.pass.map(|rule| (rule.passed, rule.of)),
            hash,
        })
    }

    /// A shipped eval: its server defines it, and the task sets of the suite add assertions.
    fn of_eval(planned: &PlannedCase, sets: &[&ShippedEvalSet]) -> Result<Self, EngineError> {
        let assertions: Vec<Arc<Check>> = sets.iter().flat_map(|set| set.checks.clone()).collect();
        let hash = suite::checks(&assertions)
            .map_err(|error| EngineError::unusable("the checks can't be read", error))?;
        let pass = sets.iter().find_map(|set| set.pass);
        Ok(Self {
            comparison: CaseComparison::of_eval(planned, &hash),
            assertions,
            verify: Vec::new(),
            is_shipped: true,
            pass: pass.map(|rule| (rule.passed, rule.of)),
            hash,
        })
    }
}

impl CaseTable {
    /// Finds every case of the plan in the suite: by its id, or else by a name that both have once.
    /// Without a suite, the plan has shipped evals only.
    pub(super) fn new(planned: &RunPlanned, suite: Option<&Suite>) -> Result<Self, EngineError> {
        let mut cases = BTreeMap::new();
        let mut found = BTreeSet::new();
        for case in &planned.cases {
            let known = match (&case.eval, suite) {
                (Some(_), None) => Some(KnownCase::of_eval(case, &[])?),
                (Some(eval), Some(suite)) => match &sets_of(eval, suite)[..] {
                    [] => None,
                    sets => Some(KnownCase::of_eval(case, sets)?),
                },
                (None, Some(suite)) => match find(case, planned, suite) {
                    Some(now) => {
                        found.insert(now.id.0.clone());
                        Some(KnownCase::of_case(case, now)?)
                    }
                    None => None,
                },
                (None, None) => None,
            };
            cases.insert(case.id.clone(), known);
        }
        let all = suite.into_iter().flat_map(|suite| &suite.cases);
        let added = all.filter(|case| !found.contains(&case.id.0));
        let names = planned.cases.iter();
        Ok(Self {
            cases,
            added: added.map(|case| case.name.clone()).collect(),
            names: names
                .map(|case| (case.id.clone(), case.name.clone()))
                .collect(),
        })
    }

    /// A case by its id in the plan.
    pub(super) fn get(&self, id: &str) -> Option<&KnownCase> {
        self.cases.get(id)?.as_ref()
    }

    /// The cases of the run that the eval file does not have, by name.
    pub(super) fn removed(&self) -> Vec<String> {
        let missing = self.cases.iter().filter(|(_, case)| case.is_none());
        let name = |id: &String| self.names.get(id).unwrap_or(id).clone();
        missing.map(|(id, _)| name(id)).collect()
    }

    /// The number of cases that changed since the run.
    pub(super) fn changed(&self) -> usize {
        let known = self.cases.values().flatten();
        known
            .filter(|case| !case.comparison.is_same(&case.verify))
            .count()
    }

    /// Sets the pass rule that the eval file has for a case now.
    pub(super) fn set_pass_rule(&self, case: &mut PlannedCase) {
        // The command line of `evals run` has no pass rules, so none can change.
        if let Some(known) = self.get(&case.id) {
            case.pass = known.pass;
        }
    }

    /// The checks of all cases, for the grades file.
    pub(super) fn graded(&self) -> Vec<GradedCase> {
        let known = self.cases.iter();
        let known = known.filter_map(|(id, case)| Some((id, case.as_ref()?)));
        known
            .map(|(id, case)| GradedCase {
                case: id.clone(),
                hash: case.hash.clone(),
                checks: case
                    .assertions
                    .iter()
                    .map(|check| serde_json::to_value(check.as_ref()).unwrap_or_default())
                    .collect(),
                verify: case.verify.iter().map(|step| step.id.clone()).collect(),
            })
            .collect()
    }
}

/// The case of a suite that a planned case is now.
fn find<'a>(planned: &PlannedCase, plan: &RunPlanned, suite: &'a Suite) -> Option<&'a Case> {
    if let Some(case) = suite.cases.iter().find(|case| case.id.0 == planned.id) {
        return Some(case);
    }
    let is_known = |case: &Case| plan.cases.iter().any(|other| other.id == case.id.0);
    let mut named = suite
        .cases
        .iter()
        .filter(|case| case.name == planned.name && !is_known(case));
    let mut alike = plan.cases.iter().filter(|case| case.name == planned.name);
    match (named.next(), named.next(), alike.next(), alike.next()) {
        (Some(only), None, Some(_), None) => Some(only),
        _ => None,
    }
}

/// The task sets that select a shipped eval.
fn sets_of<'a>(eval: &PlannedEval, suite: &'a Suite) -> Vec<&'a ShippedEvalSet> {
    let is_meant = |set: &&ShippedEvalSet| {
        let level = set.level.map(Level::word);
        set.server == eval.server && level.is_none_or(|level| level == eval.level)
    };
    suite.shipped.iter().filter(is_meant).collect()
}
