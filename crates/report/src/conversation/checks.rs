//! The checks of a trial, failed ones first, each with the events that decide it.

use anstyle::Style;
use proctor_core::event::{CheckEvaluated, CheckPlace};
use proctor_core::fold::FoldedTrial;
use proctor_core::transcript::Call;
use proctor_core::verdict::Verdict;

use super::screen::Screen;
use super::{BAD, DOUBTFUL, FAINT, GOOD, STRONG};
use crate::evidence::{answer, describe, is_error, request, verify_step};
use crate::words;

/// How many calls are shown for a check.
const CALLS: usize = 20;

pub(super) fn render(screen: &mut Screen, folded: &FoldedTrial, places: &[CheckPlace]) {
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
        one(screen, check, folded, places);
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

fn one(screen: &mut Screen, check: &CheckEvaluated, folded: &FoldedTrial, places: &[CheckPlace]) {
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
        Verdict::Fail { reason } | Verdict::Unknown { reason } => screen.block(6, reason, None),
    }
    for note in &check.notes {
        screen.block(6, note, None);
    }
    for seq in check.evidence.iter().take(CALLS) {
        match folded.transcript.calls.iter().find(|call| call.seq == *seq) {
            Some(call) => evidence(screen, call),
            None => screen.line(6, &format!("#{seq}"), Some(FAINT)),
        }
    }
    if check.evidence.len() > CALLS {
        let more = words::count((check.evidence.len() - CALLS) as u64, "call");
        screen.line(6, &format!("… and {more} more"), Some(FAINT));
    }
    let is_judge = step.is_some_and(|step| step.kind == "llmJudge");
    if let Some(output) = step.and_then(|step| step.output.as_ref())
        && check.verdict != Verdict::Pass
        && !is_judge
    {
        screen.block(6, &output.to_string(), Some("| "));
    }
}

/// A call that decides a check. Long arguments never hide an error.
fn evidence(screen: &mut Screen, call: &Call) {
    let text = describe(call);
    if screen.fits(6, &text) || !is_error(&call.answer) {
        screen.cut(6, &text, Some(FAINT));
    } else {
        screen.cut(6, &request(call), Some(FAINT));
        screen.block(8, &format!("→ {}", answer(&call.answer)), None);
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
