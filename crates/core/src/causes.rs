//! Trials that did not pass, grouped by cause: hundreds of failures often have a handful of causes.
//!
//! The main function is [`group`]. Two trials have the same cause if their outcome, blame and check are equal, and
//! their reasons are equal without numbers, quoted values and ids ([`pattern`]).

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new outcome must not go unreported"
)]

mod pattern;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use proctor_record::event::{Blame, Outcome};
use proctor_record::verdict::Verdict;

use crate::summary::{AgentTrials, CaseSummary, TrialResult, TrialSummary};

pub use self::pattern::pattern;
use self::pattern::{Piece, pieces, shown};

/// A trial with its case and agent, as [`Summary::trials`](crate::summary::Summary::trials) yields it.
pub type TrialRef<'a> = (&'a CaseSummary, &'a AgentTrials, &'a TrialSummary);

/// Trials that did not pass for the same cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause<'a> {
    /// Failed, timed out or errored.
    pub outcome: Outcome,
    pub blame: Option<Blame>,
    /// The check that decided, unless the trial ended for another reason.
    pub check: Option<&'a str>,
    /// The reason as one line, with `…` for values in which the trials differ.
    pub reason: String,
    /// The trials, in the order in which they were given.
    pub trials: Vec<TrialRef<'a>>,
}

impl Cause<'_> {
    /// The number of distinct cases.
    pub fn cases(&self) -> usize {
        let ids = self.trials.iter().map(|(case, ..)| case.case.id.as_str());
        ids.collect::<BTreeSet<&str>>().len()
    }

    /// The check and the reason as one line: `toolsUsed: no call fits`.
    pub fn text(&self) -> String {
        match self.check {
            Some(check) => format!("{check}: {}", self.reason),
            None => self.reason.clone(),
        }
    }
}

/// The maximum number of lines of an output in the reason of a cause. The last line alone is often only the
/// exit of a program, and the one before it says why.
const QUOTED: usize = 2;

/// What must be equal in all trials of a cause.
type CauseKey<'a> = (Outcome, Option<Blame>, Option<&'a str>, String);

/// The causes of the trials that failed, timed out or errored, most frequent first. Other trials have no cause.
pub fn group<'a>(trials: impl IntoIterator<Item = TrialRef<'a>>) -> Vec<Cause<'a>> {
    let mut causes: Vec<(Cause<'a>, SharedReason)> = Vec::new();
    let mut known: HashMap<CauseKey<'a>, usize> = HashMap::new();
    for row in trials {
        let Some(result) = row.2.result.as_ref().filter(|result| has_cause(result)) else {
            continue;
        };
        let (check, reason) = reason_of(result);
        let pieces = pieces(reason);
        let key = (
            result.outcome,
            result.blame,
            check,
            shown(&pieces, |_| true),
        );
        if let Some(index) = known.get(&key) {
            let (cause, shared) = &mut causes[*index];
            shared.add(&pieces);
            cause.trials.push(row);
            continue;
        }
        known.insert(key, causes.len());
        let cause = Cause {
            outcome: result.outcome,
            blame: result.blame,
            check,
            reason: String::new(),
            trials: vec![row],
        };
        let different = BTreeSet::new();
        causes.push((cause, SharedReason { pieces, different }));
    }
    let causes = causes.into_iter().map(|(cause, shared)| Cause {
        reason: shared.line(),
        ..cause
    });
    let mut causes: Vec<Cause> = causes.collect();
    // The sort is stable: causes of equal weight stay in the order of their first trials.
    causes.sort_by_key(|cause| (Reverse(cause.trials.len()), rank(cause.outcome)));
    causes
}

/// The reason of several trials, and the values in which they differ.
struct SharedReason {
    pieces: Vec<Piece>,
    different: BTreeSet<usize>,
}

impl SharedReason {
    /// Adds a reason with the same pattern.
    fn add(&mut self, others: &[Piece]) {
        let both = self.pieces.iter().zip(others).enumerate();
        let different = both.filter(|(_, (one, other))| one != other);
        self.different.extend(different.map(|(index, _)| index));
    }

    fn line(&self) -> String {
        one_line(&shown(&self.pieces, |index| {
            self.different.contains(&index)
        }))
    }
}

fn has_cause(result: &TrialResult) -> bool {
    match result.outcome {
        Outcome::Failed | Outcome::TimedOut | Outcome::Errored => true,
        Outcome::Passed | Outcome::Cancelled => false,
    }
}

fn rank(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Failed => 0,
        Outcome::TimedOut => 1,
        Outcome::Errored => 2,
        Outcome::Passed | Outcome::Cancelled => 3,
    }
}

/// The check that decided a trial and its reason, or the reason of the trial alone: a server that dies ends a trial
/// regardless of its checks.
fn reason_of(result: &TrialResult) -> (Option<&str>, &str) {
    let reason = result.reason.as_deref();
    if let Some(decisive) = result.decisive.as_deref()
        && let Verdict::Fail { reason: why } | Verdict::Unknown { reason: why } = &decisive.verdict
    {
        let check = decisive.check.as_str();
        let names_it = |text: &str| {
            let rest = text.strip_prefix(check);
            rest.is_some_and(|rest| rest.starts_with(": "))
        };
        if reason.is_none_or(names_it) {
            return (Some(check), why);
        }
    }
    (None, reason.unwrap_or("no reason is recorded"))
}

/// A reason as one line: its first line, and the last lines of the output that it quotes.
pub fn one_line(reason: &str) -> String {
    let mut lines = reason.lines().map(str::trim).filter(|l| !l.is_empty());
    let first = lines.next().unwrap_or_default();
    let quoted: Vec<&str> = lines.collect();
    let last = quoted[quoted.len().saturating_sub(QUOTED)..].join(" / ");
    match last.as_str() {
        "" => first.to_owned(),
        last => format!("{}: {last}", first.trim_end_matches(':')),
    }
}
