//! The checks of a trial, failed ones first, each with the events that decide it.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::Style;
use proctor_record::event::{CheckEvaluated, CheckPlace};
use proctor_record::fold::FoldedTrial;
use proctor_record::transcript::Call;
use proctor_record::verdict::Verdict;

use super::screen::Screen;
use super::{BAD, DOUBTFUL, FAINT, GOOD, STRONG};
use crate::evidence::{answer, describe, is_error, request, verify_step};
use crate::words;

/// How many calls are shown for a check.
const CALLS: usize = 20;

/// The indent of what belongs to a check.
const INDENT: usize = 6;

/// A call that decides a check, as text.
pub(super) struct CallText {
    line: String,
    /// The error that ended it, unless it is in the line: long arguments never hide it.
    error: Option<String>,
}

/// What is known of the calls that checks refer to, by their numbers, and where checks are written.
type KnownPlaces<'a> = (&'a BTreeMap<u64, CallText>, &'a [CheckPlace]);

/// The calls that are shown with checks, by their numbers.
pub(super) fn evidence(checks: &[CheckEvaluated]) -> BTreeSet<u64> {
    let calls = checks
        .iter()
        .flat_map(|check| check.evidence.iter().take(CALLS));
    calls.copied().collect()
}

/// The text of a call below a check.
pub(super) fn described(screen: &Screen, call: &Call) -> CallText {
    let text = describe(call);
    if screen.fits(INDENT, &text) || !is_error(&call.answer) {
        CallText {
            line: screen.shortened(INDENT, &text),
            error: None,
        }
    } else {
        CallText {
            line: screen.shortened(INDENT, &request(call)),
            error: Some(format!("→ {}", answer(&call.answer))),
        }
    }
}

/// Renders the checks.
pub(super) fn render(screen: &mut Screen, folded: &FoldedTrial, known: KnownPlaces<'_>) {
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
        one(screen, check, folded, known);
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
    (calls, places): KnownPlaces<'_>,
) {
    let (word, style) = label(&check.verdict);
    let step = verify_step(check, &folded.work.steps);
    let mut facts = Vec::from_iter(step.map(|step| step.kind.clone()));
    if check.verdict != Verdict::Pass {
        facts.extend(place(check, places));
    }
    let facts = match facts.join(", ") {
        facts if facts.is_empty() => facts,
        facts => format!(" ({facts})"),
    };
    screen.title(word, style, &format!("{}{facts}", check.check));
    match &check.verdict {
        Verdict::Pass => {}
        Verdict::Fail { reason } | Verdict::Unknown { reason } => {
            screen.block(INDENT, reason, None);
        }
    }
    for note in &check.notes {
        screen.block(INDENT, note, None);
    }
    for seq in check.evidence.iter().take(CALLS) {
        let Some(call) = calls.get(seq) else {
            screen.line(INDENT, &format!("#{seq}"), Some(FAINT));
            continue;
        };
        screen.push(INDENT, &call.line, Some(FAINT));
        if let Some(error) = &call.error {
            screen.block(INDENT + 2, error, None);
        }
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

/// Where a check is written. Several checks of the same name have no place.
fn place(check: &CheckEvaluated, places: &[CheckPlace]) -> Option<String> {
    let id = check.id.as_ref()?;
    let mut places = places.iter().filter(|place| place.check == *id);
    match (places.next(), places.next()) {
        (Some(place), None) => Some(format!("{}:{}", place.path, place.line)),
        (Some(_), Some(_)) | (None, _) => None,
    }
}
