//! The result of a regrade: as text that lists what changed and why, and as JSON per trial.
//!
//! Main functions: [`change`], [`totals`], [`entry`] and [`document_end`]. A regrade may have any number of
//! trials, so each is rendered by itself.

use proctor_core::gate::Gate;
use proctor_core::printable::printable;
use proctor_core::regrade::{Basis, CheckChange, CheckGrade, GradedTrial, RegradeTotals};
use proctor_core::summary::Summary;
use proctor_record::event::{CheckEvaluated, CheckId, Outcome, TrialEnded};
use proctor_record::hint::listed;
use proctor_record::verdict::Verdict;
use serde_json::{Map, Value, json};

use crate::json::entry as json_entry;
use crate::terminal::{Page, TerminalStyle};
use crate::{selection, words};

/// The width of the label column of a change.
const INDENT: usize = 4;

/// How many names a line lists.
const LISTED: usize = 10;

/// Everything that a regrade came to, besides its trials.
#[derive(Debug, Clone, Copy)]
pub struct RegradeReport<'a> {
    pub totals: RegradeTotals,
    /// The eval file; `None` for shipped evals without a suite.
    pub eval: Option<&'a str>,
    pub run: &'a str,
    /// The run with its new outcomes.
    pub summary: &'a Summary,
    pub before: &'a Gate,
    pub gate: &'a Gate,
    pub exit: u8,
    /// The number of cases that changed since the run.
    pub changed_cases: usize,
    /// The cases of the run that the eval file does not have.
    pub removed: &'a [String],
    /// The cases of the eval file without a trial in the run.
    pub added: &'a [String],
    /// Trial files that the plan of the run does not include.
    pub unplanned: &'a [String],
    /// The SHA-256 of all checks.
    pub hash: &'a str,
    /// The path of the grades file, if it was written.
    pub grades: Option<&'a str>,
}

/// A trial whose outcome changed, with the checks that changed it.
pub fn change(trial: &GradedTrial, several_agents: bool, style: TerminalStyle) -> String {
    let mut page = Page::new(style);
    let mut name = format!("{} #{}", printable(&trial.name), trial.repeat);
    if several_agents {
        name.push_str(&format!(" by {}", printable(&trial.agent)));
    }
    let (before, after) = (outcome(trial.before.as_ref()), new_outcome(trial));
    page.wrapped(0, &format!("{name}: {before} → {after}"));
    if let Basis::Inconclusive(reason) = &trial.basis {
        page.wrapped(INDENT, &printable(reason));
    }
    for change in &trial.changes {
        // A reason may have several lines, such as the output of a script.
        let text = check_change(change);
        for (number, line) in text.lines().enumerate() {
            let indent = if number == 0 { INDENT } else { 2 * INDENT };
            page.wrapped(indent, &printable(line));
        }
    }
    page.into_text()
}

/// `toolsUsed: fail → pass (before: …)`.
fn check_change(change: &CheckChange) -> String {
    let word = |verdict: &Option<Verdict>, none: &'static str| match verdict {
        Some(Verdict::Pass) => "pass",
        Some(Verdict::Fail { .. }) => "fail",
        Some(Verdict::Unknown { .. }) => "unknown",
        None => none,
    };
    let check = &change.check;
    let before = word(&change.before, "not evaluated");
    let after = word(&change.after, "not evaluated");
    let why = match (&change.before, &change.after) {
        (_, Some(Verdict::Fail { reason } | Verdict::Unknown { reason })) => {
            format!(": {reason}")
        }
        (Some(Verdict::Fail { reason } | Verdict::Unknown { reason }), _) => {
            format!(" (before: {reason})")
        }
        (Some(Verdict::Pass) | None, Some(Verdict::Pass) | None) => String::new(),
    };
    format!("{check}: {before} → {after}{why}")
}

fn outcome(ended: Option<&TrialEnded>) -> &'static str {
    words::outcome(ended.map(|ended| ended.outcome))
}

/// The new outcome. An errored trial is called inconclusive if only the record lacks something.
fn new_outcome(trial: &GradedTrial) -> &'static str {
    match &trial.basis {
        Basis::Inconclusive(_) => "inconclusive",
        Basis::Regraded if trial.lacks_results() => "inconclusive",
        Basis::Regraded | Basis::Kept(_) | Basis::NotRun => outcome(trial.after.as_ref()),
    }
}

/// The end of the text: totals, what was kept, what is missing, and the gate.
pub fn totals(report: &RegradeReport<'_>, style: TerminalStyle) -> String {
    let totals = &report.totals;
    let mut page = Page::new(style);
    let same = totals.trials - totals.changed;
    let verdicts = words::count(same, "verdict");
    page.fact(
        "Verdicts",
        &format!(
            "{verdicts} as before; {} changed",
            words::thousands(totals.changed)
        ),
    );
    let with = match (report.eval, report.changed_cases) {
        (Some(eval), 0) => format!("`{}`, unchanged since the run", printable(eval)),
        (Some(eval), changed) => {
            let cases = words::count(changed as u64, "case");
            format!("`{}`, {cases} changed since the run", printable(eval))
        }
        (None, _) => "the recorded grading of shipped evals".to_owned(),
    };
    page.fact("Checks", &with);
    let kept = [
        (
            totals.kept,
            "trial",
            " that something other than checks decided",
        ),
        (
            totals.with_recorded_checks,
            "trial",
            " with recorded results of steps or judges",
        ),
    ];
    let kept: Vec<String> = kept
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, noun, what)| format!("{}{what}", words::count(*count, noun)))
        .collect();
    if !kept.is_empty() {
        page.fact("Kept", &kept.join("; "));
    }
    let mut missing = Vec::new();
    if totals.inconclusive > 0 {
        let trials = words::count(totals.inconclusive, "trial");
        missing.push(format!(
            "{trials} inconclusive: the record lacks what the checks need"
        ));
    }
    if totals.not_run > 0 {
        let trials = words::count(totals.not_run, "trial");
        missing.push(format!("{trials} did not run or did not end"));
    }
    for (names, what) in [
        (report.removed, "not in the eval file"),
        (report.added, "no trial in the run"),
        (report.unplanned, "trial files that are not in the plan"),
    ] {
        if !names.is_empty() {
            missing.push(format!("{what}: {}", some(names)));
        }
    }
    if !missing.is_empty() {
        page.fact("Missing", &missing.join("; "));
    }
    page.fact("Gate", &gate(report));
    let reasons = report.gate.reasons();
    for reason in reasons.iter().take(LISTED) {
        page.more(&printable(reason));
    }
    if reasons.len() > LISTED {
        page.more(&format!("… and {} more", reasons.len() - LISTED));
    }
    if let Some(path) = report.grades {
        page.fact("Grades", &printable(path));
    }
    let mut text = page.into_text();
    for line in selection::lines(report.summary) {
        text.push_str(&format!("\n{line}"));
    }
    text
}

fn some(names: &[String]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|name| printable(name).into_owned())
        .collect();
    let more = match names.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", listed(shown.iter().map(String::as_str)))
}

fn gate(report: &RegradeReport<'_>) -> String {
    let (before, after) = (gate_word(report.before), gate_word(report.gate));
    if before == after {
        format!("{after}, as before")
    } else {
        format!("{before} → {after}")
    }
}

fn gate_word(gate: &Gate) -> &'static str {
    match gate {
        Gate::Met => "met",
        Gate::Missed { .. } => "missed",
        Gate::Open { .. } => "inconclusive",
    }
}

/// The entry of a trial in the JSON document: the keys of mcpchecker's result file, and an object
/// `proctor`.
pub fn entry(trial: &GradedTrial) -> Value {
    let is_step = |check: &&CheckGrade| check.check.id.as_ref().and_then(CheckId::step).is_some();
    let assertions: Vec<&CheckEvaluated> = trial
        .checks
        .iter()
        .filter(|check| !is_step(check))
        .map(|check| &check.check)
        .collect();
    let is_decided = match trial.basis {
        Basis::Regraded | Basis::Kept(_) => true,
        // Verdicts on another task, or on a part of a record, are not a pass.
        Basis::Inconclusive(_) | Basis::NotRun => false,
    };
    let all_passed = is_decided
        && !trial.checks.is_empty()
        && assertions
            .iter()
            .all(|check| check.verdict == Verdict::Pass);
    json!({
        "taskName": trial.name,
        "runIndex": trial.repeat.saturating_sub(1),
        "taskPassed": trial.outcome() == Some(Outcome::Passed),
        "allAssertionsPassed": all_passed,
        "assertionResults": json_entry::assertions(assertions),
        "proctor": ours(trial),
    })
}

fn ours(trial: &GradedTrial) -> Value {
    let (basis, note) = match &trial.basis {
        Basis::Regraded => ("regraded", None),
        Basis::Kept(note) => ("kept", Some(note)),
        Basis::Inconclusive(note) => ("inconclusive", Some(note)),
        Basis::NotRun => ("not-run", None),
    };
    let checks = trial.checks.iter().map(|check| {
        let mut value = json_entry::check(&check.check);
        value["origin"] = json!(check.origin);
        value
    });
    let mut out = ended(trial.after.as_ref());
    let more = json!({
        "case": trial.case,
        "agent": trial.agent,
        "repeat": trial.repeat,
        "file": trial.file,
        "basis": basis,
        "note": note,
        "changed": trial.is_changed(),
        "before": ended(trial.before.as_ref()),
        "checks": checks.collect::<Vec<_>>(),
        "changes": trial.changes,
    });
    if let Value::Object(more) = more {
        out.extend(more);
    }
    Value::Object(out)
}

/// How a trial ended.
fn ended(ended: Option<&TrialEnded>) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("outcome".to_owned(), json!(outcome(ended)));
    out.insert(
        "blame".to_owned(),
        json!(ended.and_then(|ended| ended.blame).map(words::blame)),
    );
    out.insert(
        "reason".to_owned(),
        json!(ended.and_then(|ended| ended.reason.as_ref())),
    );
    out
}

/// The object `proctor` of the JSON document.
pub fn document_end(report: &RegradeReport<'_>) -> Value {
    let mut out = json!({
        "run": report.run,
        "eval": report.eval,
        "hash": report.hash,
        "totals": report.totals,
        "changedCases": report.changed_cases,
        "removedCases": report.removed,
        "casesWithoutTrials": report.added,
        "unplannedFiles": report.unplanned,
        "gate": {
            "before": gate_word(report.before),
            "answer": gate_word(report.gate),
            "reasons": report.gate.reasons(),
        },
        "exit": report.exit,
        "grades": report.grades,
    });
    if let Some(selection) = selection::document(report.summary) {
        out["selection"] = selection;
    }
    out
}
