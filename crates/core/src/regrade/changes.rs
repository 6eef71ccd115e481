//! The checks whose verdict changed between a run and its regrade.
//!
//! The main type is [`CheckChange`].

use serde::{Deserialize, Serialize};

use proctor_record::event::{CheckEvaluated, CheckId};
use proctor_record::verdict::Verdict;

use super::CheckGrade;

/// A check whose verdict changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckChange {
    pub check: String,
    pub id: Option<CheckId>,
    /// The recorded verdict; `None` if the check was not evaluated in the run.
    pub before: Option<Verdict>,
    /// The new verdict; `None` if the check is gone, or was not reached.
    pub after: Option<Verdict>,
}

impl CheckChange {
    /// The differences between recorded checks and new ones. Several task sets may have the same
    /// assertion: checks with the same id correspond in order.
    pub fn between(before: &[CheckEvaluated], after: &[CheckGrade]) -> Vec<Self> {
        let mut left: Vec<Option<&CheckEvaluated>> = before.iter().map(Some).collect();
        let mut changes = Vec::new();
        for CheckGrade { check, .. } in after {
            let then = left
                .iter_mut()
                .find(|then| then.is_some_and(|then| then.id == check.id));
            let then = then.and_then(Option::take);
            if then.is_none_or(|then| kind(&then.verdict) != kind(&check.verdict)) {
                changes.push(Self {
                    check: check.check.clone(),
                    id: check.id.clone(),
                    before: then.map(|then| then.verdict.clone()),
                    after: Some(check.verdict.clone()),
                });
            }
        }
        changes.extend(left.into_iter().flatten().map(|then| Self {
            check: then.check.clone(),
            id: then.id.clone(),
            before: Some(then.verdict.clone()),
            after: None,
        }));
        changes
    }
}

/// The verdict without its reason.
fn kind(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Pass => 0,
        Verdict::Fail { .. } => 1,
        Verdict::Unknown { .. } => 2,
    }
}
