//! Turns votes into a ruling.

use proctor_record::verdict::Verdict;

use super::{Ruling, Vote};

/// The number of votes for each verdict.
struct VoteSplit {
    pass: usize,
    fail: usize,
}

impl VoteSplit {
    fn of(votes: &[Vote]) -> Self {
        let count = |way: fn(&Verdict) -> bool| votes.iter().filter(|v| way(&v.verdict)).count();
        Self {
            pass: count(|v| matches!(v, Verdict::Pass)),
            fail: count(|v| matches!(v, Verdict::Fail { .. })),
        }
    }

    /// Whether more than half of all votes are definite.
    fn has_quorum(&self, wanted: usize) -> bool {
        self.pass + self.fail > wanted / 2
    }
}

/// Whether the votes decide, whatever the missing ones would be.
pub(super) fn is_settled(votes: &[Vote], wanted: usize) -> bool {
    let split = VoteSplit::of(votes);
    let missing = wanted - votes.len();
    split.has_quorum(wanted) && split.pass.abs_diff(split.fail) > missing
}

/// The ruling that results from votes.
pub(super) fn ruling(votes: Vec<Vote>, wanted: usize) -> Ruling {
    let split = VoteSplit::of(&votes);
    let verdict = if !split.has_quorum(wanted) {
        Verdict::unknown(no_quorum(&votes, &split, wanted))
    } else if split.pass > split.fail {
        Verdict::Pass
    } else if split.fail > split.pass {
        let reason = votes.iter().find_map(|vote| match &vote.verdict {
            Verdict::Fail { reason } => Some(reason.as_str()),
            Verdict::Pass | Verdict::Unknown { .. } => None,
        });
        Verdict::fail(reason.unwrap_or_default())
    } else {
        Verdict::unknown(format!("the votes are split: {}", shown(&votes, wanted)))
    };
    let mut ruling = Ruling {
        notes: notes(&votes, &verdict, wanted),
        evidence: Vec::new(),
        verdict,
        votes,
    };
    let agreeing = ruling
        .votes
        .iter()
        .filter(|vote| same_way(&vote.verdict, &ruling.verdict));
    ruling.evidence = agreeing.flat_map(|vote| vote.evidence.clone()).collect();
    ruling.evidence.sort_unstable();
    ruling.evidence.dedup();
    ruling
}

/// Why too few votes are definite, from the first vote that is not.
fn no_quorum(votes: &[Vote], split: &VoteSplit, wanted: usize) -> String {
    let why = votes.iter().find_map(|vote| match &vote.verdict {
        Verdict::Unknown { reason } => Some(reason.as_str()),
        Verdict::Pass | Verdict::Fail { .. } => None,
    });
    let why = why.unwrap_or("no usable votes");
    if wanted == 1 {
        return why.to_owned();
    }
    let definite = split.pass + split.fail;
    format!("only {definite} of {wanted} votes are definite: {why}")
}

fn shown(votes: &[Vote], wanted: usize) -> String {
    let split = VoteSplit::of(votes);
    let unknown = votes.len() - split.pass - split.fail;
    let mut text = format!(
        "{} pass, {} fail, {unknown} unknown",
        split.pass, split.fail
    );
    match wanted - votes.len() {
        0 => {}
        missing => text.push_str(&format!(", {missing} not given")),
    }
    text
}

fn notes(votes: &[Vote], verdict: &Verdict, wanted: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if wanted > 1 {
        notes.push(format!("votes: {}", shown(votes, wanted)));
    }
    for vote in votes {
        let agrees = same_way(&vote.verdict, verdict);
        let said = match &vote.verdict {
            Verdict::Pass => format!("pass: {}", vote.reason),
            Verdict::Fail { reason } => format!("fail: {reason}"),
            Verdict::Unknown { reason } => format!("unknown: {reason}"),
        };
        // For a single fail or unknown, the verdict has the same text.
        if wanted > 1 || matches!(verdict, Verdict::Pass) {
            notes.push(format!("{}: {said}", vote.model));
        }
        if agrees {
            notes.extend(
                vote.quotes
                    .iter()
                    .map(|quote| format!("quote: \"{quote}\"")),
            );
        }
    }
    notes
}

fn same_way(a: &Verdict, b: &Verdict) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}
