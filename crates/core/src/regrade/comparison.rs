//! What changed in a case since the run that is regraded.
//!
//! The main type is [`CaseComparison`].

use std::collections::BTreeSet;

use proctor_record::event::{CaseParts, PlannedCase};

use crate::suite::Step;
use crate::suite::step::Action;

/// Which parts of a case are still those of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseComparison {
    /// Why the agent's task was another one then, if it was.
    other_task: Option<&'static str>,
    /// The ids of the verify steps that are unchanged.
    unchanged: BTreeSet<String>,
    /// The ids of the verify steps of the run; `None` if the record does not name them.
    known: Option<BTreeSet<String>>,
    /// Whether the assertions are those of the run; `None` if the record does not tell.
    pub same_checks: Option<bool>,
}

impl CaseComparison {
    /// Compares a case of a plan with a case as it is now.
    pub fn new(planned: &PlannedCase, hash: &str, now: &CaseParts) -> Self {
        let ids = |parts: &CaseParts| parts.verify.iter().map(|step| step.id.clone()).collect();
        if planned.hash == hash {
            return Self {
                other_task: None,
                unchanged: ids(now),
                known: Some(ids(now)),
                same_checks: Some(true),
            };
        }
        let Some(then) = &planned.parts else {
            // An imported case has no hash: the user says which suite it belongs to.
            let is_imported = planned.hash.is_empty();
            let changed =
                "the case changed, and the record of an older Proctor does not tell which part";
            return Self {
                other_task: (!is_imported).then_some(changed),
                unchanged: BTreeSet::new(),
                known: None,
                same_checks: None,
            };
        };
        let other_task = if then.prompt != now.prompt {
            Some("the prompt changed since the run")
        } else if then.setup != now.setup {
            Some("the setup changed since the run")
        } else {
            None
        };
        let same = now.verify.iter().filter(|step| then.verify.contains(step));
        Self {
            other_task,
            unchanged: same.map(|step| step.id.clone()).collect(),
            known: Some(ids(then)),
            same_checks: Some(then.checks == now.checks),
        }
    }

    /// The comparison of a shipped eval: only its server knows it, so it counts as unchanged. `hash`
    /// is that of its additional assertions.
    pub fn of_eval(planned: &PlannedCase, checks: &str) -> Self {
        let then = planned.parts.as_ref().map(|parts| parts.checks.as_str());
        Self {
            other_task: None,
            unchanged: BTreeSet::new(),
            known: Some(BTreeSet::new()),
            same_checks: then.map(|then| then == checks),
        }
    }

    /// Why the record is about another task than the case is now.
    pub fn other_task(&self) -> Option<&'static str> {
        self.other_task
    }

    /// Whether every part of the case is as in the run.
    pub fn is_same(&self, verify: &[Step]) -> bool {
        self.other_task.is_none()
            && self.same_checks == Some(true)
            && verify.iter().all(|step| self.unchanged.contains(&step.id))
            && self
                .known
                .as_ref()
                .is_some_and(|known| known.len() == verify.len())
    }

    /// Whether the recorded result of a step counts, or why it doesn't. A step may depend on those before
    /// it, so it counts only if they are unchanged too. Judges come after all other steps.
    pub(super) fn step(&self, verify: &[Step], step: &Step) -> Result<(), String> {
        if !self.unchanged.contains(&step.id) {
            let is_new = self
                .known
                .as_ref()
                .is_some_and(|known| !known.contains(&step.id));
            let what = if is_new { "is new" } else { "changed" };
            return Err(format!(
                "the step {what} since the run, so the record has no result of it"
            ));
        }
        let is_judged = |step: &Step| matches!(step.action, Action::Judge(_));
        let before = verify
            .iter()
            .take_while(|other| is_judged(step) || other.id != step.id);
        let mut before = before.filter(|other| !is_judged(other));
        match before.find(|other| !self.unchanged.contains(&other.id)) {
            None => Ok(()),
            Some(other) => Err(format!(
                "the step `{}` before it changed since the run",
                other.id
            )),
        }
    }
}
