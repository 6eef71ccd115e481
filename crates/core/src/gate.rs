//! The gate: whether a run succeeded.
//!
//! The main type is [`Gate`]. Trials without a verdict make the gate inconclusive, unless no
//! outcome of theirs could change the result.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

mod checks;
mod conditions;
mod known;
#[cfg(test)]
mod tests;

use proctor_record::event::PlannedGates;
use proctor_record::hint::counted;

pub use self::checks::check_rates;
pub use self::conditions::{Condition, conditions};
pub use crate::pass_rule::{CaseVerdict, PassThreshold, TrialCounts};
use crate::shard::Shard;
use crate::summary::{AgentTrials, CaseSummary, Summary};

/// Writes the reason for a verdict, if it is needed.
type Reason<'a> = Box<dyn FnOnce() -> String + 'a>;

/// Whether a run succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    Met,
    /// A case missed its pass rule, whatever the trials without a verdict would show.
    Missed {
        reasons: Vec<String>,
    },
    /// Inconclusive: the result depends on trials without a verdict.
    Open {
        reasons: Vec<String>,
    },
}

impl Gate {
    /// The gate that the run was started with. By default every case meets its pass rule with every
    /// agent, and there is at least one case. If a record was changed, the gate is inconclusive.
    pub fn of(summary: &Summary) -> Self {
        let default = PlannedGates::default();
        Self::with(summary, summary.plan.gates.as_deref().unwrap_or(&default))
    }

    /// Like [`Gate::of`], with other gates. A gate on rates replaces the default rule that every trial
    /// passes; cases with a pass rule of their own must still meet it.
    pub fn with(summary: &Summary, gates: &PlannedGates) -> Self {
        Self::with_conditions(summary, gates, &[])
    }

    /// Like [`Gate::with`], with conditions that were evaluated elsewhere.
    pub fn with_conditions(summary: &Summary, gates: &PlannedGates, more: &[Condition]) -> Self {
        let changed = summary.changed_trials.iter().map(|trial| {
            format!("the record of the trial `{trial}` was changed after the trial ended")
        });
        let reasons: Vec<String> = changed.collect();
        if !reasons.is_empty() {
            return Self::Open { reasons };
        }
        let shard = summary.plan.shard.as_deref();
        if let Some(shard) = shard.and_then(Shard::of_plan) {
            let text = format!(
                "shard {} of {}: the gate belongs to the whole run, and `proctor result merge` evaluates it",
                shard.index(),
                shard.count()
            );
            return Self::Open {
                reasons: vec![text],
            };
        }
        let several = summary.plan.agents.len() > 1;
        let every = !gates.replaces_default() && more.iter().all(|c| c.option.is_none());
        let compared = conditions::compared(summary, gates);
        // Known failures have conditions of their own.
        let ruled = summary.cells().filter(|(case, trials)| {
            let cell = (case.case.id.as_str(), trials.agent.as_str());
            let is_uncompared = compared.as_ref().is_some_and(|all| !all.contains(cell));
            (every || is_uncompared || conditions::has_rule(case.case.pass))
                && trials.known_failure.is_none()
        });
        let ruled = ruled.map(|(case, trials)| {
            let verdict = trials.verdict(&case.case);
            let reason: Reason<'_> = Box::new(move || reason(case, trials, several));
            (verdict, reason)
        });
        let more = more.iter().cloned();
        let conditions = conditions(summary, gates).into_iter().chain(more);
        let conditions = conditions.map(|condition| {
            let Condition {
                option,
                verdict,
                text,
            } = condition;
            let reason: Reason<'_> = Box::new(move || match option {
                Some(option) => format!("{option}: {text}"),
                None => text,
            });
            (verdict, reason)
        });
        Self::over(ruled.chain(conditions)).unless_missing(summary)
    }

    /// A run that did not end, a run with trials that never ran, and a merged run that lacks anything can't meet their
    /// gate: nobody knows what the rest would show. A run that stopped since its gate was decided needs no more trials.
    fn unless_missing(self, summary: &Summary) -> Self {
        let is_merged = summary.plan.shard.is_some();
        let mut missing = match &summary.ended {
            Some(ended) => ended.missing.clone(),
            None if is_merged => vec!["the merge did not finish".to_owned()],
            None => vec!["the run is not finished: it is still running, or was killed".to_owned()],
        };
        let not_run = summary.counts().not_run;
        let is_unexplained = is_merged || (self == Self::Met && !summary.plan.stop_when_decided);
        if missing.is_empty() && not_run > 0 && is_unexplained {
            let word = if is_merged { "missing" } else { "did not run" };
            missing.push(format!("{} {word}", counted(not_run as usize, "trial")));
        }
        match self {
            gate if missing.is_empty() => gate,
            Self::Met => Self::Open { reasons: missing },
            Self::Open { reasons } => {
                missing.extend(reasons);
                Self::Open { reasons: missing }
            }
            // The missing trials could not change it.
            Self::Missed { reasons } => Self::Missed { reasons },
        }
    }

    /// The gate over the verdicts of cases, each with its reason.
    fn over<R: FnOnce() -> String>(cells: impl IntoIterator<Item = (CaseVerdict, R)>) -> Self {
        let (mut missed, mut open, mut any) = (Vec::new(), Vec::new(), false);
        for (verdict, reason) in cells {
            any = true;
            match verdict {
                // A run of known failures only has an inconclusive condition besides.
                CaseVerdict::Met | CaseVerdict::KnownFailure => {}
                CaseVerdict::Missed => missed.push(reason()),
                CaseVerdict::Open => open.push(reason()),
            }
        }
        if !missed.is_empty() {
            Self::Missed { reasons: missed }
        } else if !open.is_empty() {
            Self::Open { reasons: open }
        } else if any {
            Self::Met
        } else {
            let reasons = vec!["there were no trials to run".to_owned()];
            Self::Open { reasons }
        }
    }

    /// The exit code of the command.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Met => 0,
            Self::Missed { .. } => 1,
            Self::Open { .. } => 3,
        }
    }

    /// The cases that missed their pass rule or are inconclusive.
    pub fn reasons(&self) -> &[String] {
        match self {
            Self::Met => &[],
            Self::Missed { reasons } | Self::Open { reasons } => reasons,
        }
    }
}

/// The reason for a case that did not meet its pass rule.
fn reason(case: &CaseSummary, trials: &AgentTrials, several: bool) -> String {
    let standing = trials.standing();
    let planned = trials.trials.len();
    let rule = PassThreshold::of(case.case.pass);
    let by = if several {
        format!(" by `{}`", trials.agent)
    } else {
        String::new()
    };
    let mut text = format!(
        "`{}`{by}: {} of {planned} trials passed, pass rule: {rule}",
        case.case.name, standing.passed
    );
    if standing.open > 0 {
        text.push_str(&format!(", {} without a verdict", standing.open));
    }
    text
}
