//! The checks of a trial, failed ones first, each with the events that decide it.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::Style;
use proctor_core::event::CheckEvaluated;
use proctor_core::fold::FoldedTrial;
use proctor_core::transcript::Call;
use proctor_core::verdict::Verdict;

use super::screen::Screen;
use super::{BAD, DOUBTFUL, FAINT, GOOD, STRONG};
use crate::evidence::{describe, verify_step};
use crate::words;

/// How many calls are shown for a check.
const CALLS: usize = 20;

/// The indent of what belongs to a check.
const INDENT: usize = 6;

/// The calls that are shown with checks, by their numbers.
pub(super) fn evidence(checks: &[CheckEvaluated]) -> BTreeSet<u64> {
    let calls = checks
        .iter()
        .flat_map(|check| check.evidence.iter().take(CALLS));
    calls.copied().collect()
}

/// The line of a call below a check.
pub(super) fn described(screen: &Screen, call: &Call) -> String {
    screen.shortened(INDENT, &describe(call))
}

/// Renders the checks. `calls` has the line of each call that they refer to.
pub(super) fn render(screen: &mut Screen, folded: &FoldedTrial, calls: &BTreeMap<u64, String>) {
    let mut checks: Vec<&CheckEvaluated> = folded.work.checks.iter().collect();
    checks.sort_by_key(|check| match check.verdict {
        Verdict::Fail { .. } => 0,
        Verdict::Unknown { .. } => 1,
        Verdict::Pass => 2,
    });
    if !checks.is_empty() {
        screen.line(0, "Checks", Some(STRONG));
    }
    for check in checks {
        one(screen, check, folded, calls);
    }
    screen.blank();
}

/// The word for a verdict.
pub(super) fn label(verdict: &Verdict) -> (&'static str, Style) {
    match verdict {
        Verdict::Pass => ("PASS", GOOD),
        Verdict::Fail { .. } => ("FAIL", BAD),
        Verdict::Unknown { .. } => ("UNKNOWN", DOUBTFUL),
    }
}

fn one(
    screen: &mut Screen,
    check: &CheckEvaluated,
    folded: &FoldedTrial,
    calls: &BTreeMap<u64, String>,
) {
    let (word, style) = label(&check.verdict);
    let step = verify_step(check, &folded.work.steps);
    let kind = step.map_or(String::new(), |step| format!(" ({})", step.kind));
    screen.title(word, style, &format!("{}{kind}", check.check));
    match &check.verdict {
        Verdict::Pass => {}
        Verdict::Fail { reason } | Verdict::Unknown { reason } => {
            screen.block(INDENT, reason, None)
        }
    }
    for note in &check.notes {
        screen.block(INDENT, note, None);
    }
    for seq in check.evidence.iter().take(CALLS) {
        let text = calls.get(seq).cloned();
        let text = text.unwrap_or_else(|| screen.shortened(INDENT, &format!("#{seq}")));
        screen.push(INDENT, &text, Some(FAINT));
    }
    if check.evidence.len() > CALLS {
        let more = words::count((check.evidence.len() - CALLS) as u64, "call");
        screen.line(INDENT, &format!("… and {more} more"), Some(FAINT));
    }
    let is_judge = step.is_some_and(|step| step.kind == "llmJudge");
    if let Some(output) = step.and_then(|step| step.output.as_ref())
        && check.verdict != Verdict::Pass
        && !is_judge
    {
        screen.block(INDENT, &output.to_string(), Some("| "));
    }
}
