//! What the entries of `knownFailures` mean for the gate.
//!
//! A listed case that fails does not miss the gate. An unexpected pass, an entry that matches no case, and an
//! expired entry do, so that the list can't outlive its reasons. A run whose every case is listed proves
//! nothing.

use proctor_record::event::PlannedKnownFailure;

use super::conditions::Condition;
use super::{CaseVerdict, PassThreshold};
use crate::summary::{AgentTrials, CaseSummary, Summary};

/// The conditions of all entries that concern the run.
pub(super) fn conditions(summary: &Summary) -> Vec<Condition> {
    let entries = &summary.plan.known_failures;
    let mut all: Vec<Condition> = entries
        .iter()
        .filter_map(|known| entry(summary, known))
        .collect();
    let cells = summary.cells();
    all.extend(cells.filter_map(|(case, trials)| cell(summary, case, trials)));
    let (mut cells, mut listed) = (0, 0);
    for (_, trials) in summary.cells() {
        cells += 1;
        listed += usize::from(trials.known_failure.is_some());
    }
    if cells > 0 && listed == cells {
        all.push(Condition {
            option: None,
            verdict: CaseVerdict::Open,
            text: "every case of the run is listed in `knownFailures`, so the run proves nothing"
                .to_owned(),
        });
    }
    all
}

/// Why an entry misses the gate, whatever the trials show.
fn entry(summary: &Summary, known: &PlannedKnownFailure) -> Option<Condition> {
    let agent = known.agent.as_ref();
    let agent = agent.map_or(String::new(), |agent| format!(" by `{agent}`"));
    let name = format!("the known failure `{}`{agent}", known.case);
    let is_selected = || {
        let mut cells = summary.cells();
        cells.any(|(case, trials)| {
            known.is_about(&case.case.name, &case.case.id) && known.is_of(&trials.agent)
        })
    };
    let text = match &known.until {
        _ if known.unmatched => {
            format!("{name} matches no case of the suite; correct or remove the entry")
        }
        Some(until) if known.is_expired(&summary.started.started) && is_selected() => format!(
            "{name} expired on {until} ({}); fix the case, or set a later date",
            known.reason
        ),
        Some(_) | None => return None,
    };
    Some(Condition {
        option: None,
        verdict: CaseVerdict::Missed,
        text,
    })
}

/// The verdict on a listed case; `None` if the case is not listed.
fn cell(summary: &Summary, case: &CaseSummary, trials: &AgentTrials) -> Option<Condition> {
    let reason = trials.known_failure.as_ref()?;
    let by = if summary.plan.agents.len() > 1 {
        format!(" by `{}`", trials.agent)
    } else {
        String::new()
    };
    let standing = trials.standing();
    let name = format!("`{}`{by}", case.case.name);
    let passed = format!("{} of {} trials passed", standing.passed, standing.total());
    let rule = PassThreshold::of(case.case.pass);
    let verdict = trials.verdict(&case.case);
    let text = match verdict {
        CaseVerdict::KnownFailure => format!("{name}: known failure: {reason} ({passed})"),
        CaseVerdict::Met | CaseVerdict::Missed => format!(
            "{name}: unexpected pass: {passed}, but the case is listed as a known failure ({reason}); \
             remove the entry from `knownFailures`"
        ),
        CaseVerdict::Open => format!(
            "{name}: {passed}, pass rule: {rule}, {} without a verdict; known failure: {reason}",
            standing.open
        ),
    };
    Some(Condition {
        option: None,
        verdict,
        text,
    })
}
