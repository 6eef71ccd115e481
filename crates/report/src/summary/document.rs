//! The summary of a run as a JSON document for scripts.

use proctor_core::causes::{Cause, group};
use proctor_core::gate::Gate;
use proctor_core::overview::Answer;
use proctor_core::statistics::{Rate, failures_allowed};
use proctor_core::summary::{AgentSummary, Summary};
use proctor_record::event::PlannedAgent;
use serde_json::{Value, json};

use super::cells::{CaseStatus, Cell, worst_first};
use super::{RunSummary, outputs, strip};
use crate::{coverage, selection, words};

/// The version of the document. It increases if a field changes its meaning or is removed.
const VERSION: u32 = 1;

/// The document. Its fields are described in `docs/results.md`.
pub fn document(run: &RunSummary<'_>) -> Value {
    let summary = run.summary;
    let cells = worst_first(summary);
    let causes = group(summary.trials());
    let mut out = json!({
        "version": VERSION,
        "run": {
            "id": run.folder.file_name().map(|name| name.to_string_lossy()),
            "folder": run.folder.to_string_lossy(),
            "name": summary.started.name,
            "suite": summary.plan.suite,
            "started": summary.started.started,
            "durationMs": coverage::millis(summary.duration),
            "finished": summary.ended.is_some(),
        },
        "agents": agents(summary),
        "servers": summary.servers.iter().map(|seen| json!({
            "server": seen.server,
            "name": seen.name,
            "version": seen.version,
        })).collect::<Vec<_>>(),
        "gate": {
            "answer": answer(run.gate),
            "reasons": run.gate.reasons(),
        },
        "trials": summary.counts(),
        "rate": summary.rate(None).as_ref().map(rate),
        "cases": cells.iter().map(case).collect::<Vec<_>>(),
        "stable": stable(&cells),
        "causes": causes.iter().map(cause).collect::<Vec<_>>(),
        "coverage": coverage::totals(run.coverage),
    });
    if let Some(selection) = selection::document(summary) {
        out["selection"] = selection;
    }
    if let Some(part) = &run.part {
        let gate = out["gate"].take();
        out["part"] = json!({
            "filter": part.filter,
            "wholeRun": { "trials": part.trials, "gate": gate },
        });
    }
    if let (Some(out), Value::Object(tasks)) = (out.as_object_mut(), outputs::tasks(run)) {
        out.extend(tasks);
    }
    out
}

fn answer(gate: &Gate) -> Answer {
    match gate {
        Gate::Met => Answer::Met,
        Gate::Missed { .. } => Answer::Missed,
        Gate::Open { .. } => Answer::Inconclusive,
    }
}

fn agents(summary: &Summary) -> Vec<Value> {
    let both = summary.plan.agents.iter().zip(summary.by_agent());
    let one = |(planned, found): (&PlannedAgent, AgentSummary<'_>)| {
        json!({
            "name": super::short_name(planned),
            "model": planned.model,
            "trials": found.counts,
            "rate": found.rate.as_ref().map(rate),
        })
    };
    both.map(one).collect()
}

fn rate(rate: &Rate) -> Value {
    json!({
        "passed": rate.tally.passed,
        "counted": rate.tally.counted,
        "mean": rate.mean,
        "low95": rate.interval.low,
        "high95": rate.interval.high,
    })
}

fn case(cell: &Cell<'_>) -> Value {
    let planned = &cell.case.case;
    let verdict = match cell.standing {
        CaseStatus::Missed => json!(Answer::Missed),
        CaseStatus::Inconclusive => json!(Answer::Inconclusive),
        CaseStatus::KnownFailure => json!("known-failure"),
        CaseStatus::Flaky | CaseStatus::Passed => json!(Answer::Met),
    };
    json!({
        "case": planned.id,
        "name": planned.name,
        "agent": cell.trials.agent,
        "pass": planned.pass.map(|(passed, of)| format!("{passed}/{of}")),
        "verdict": verdict,
        "knownFailure": cell.trials.known_failure,
        "flaky": cell.standing == CaseStatus::Flaky,
        "passed": cell.counts.passed,
        "notPassed": cell.counts.not_passed,
        "noVerdict": cell.counts.open,
        "outcomes": strip::marks(cell.trials, false),
        "reason": Some(cell.reason()).filter(|reason| !reason.is_empty()),
    })
}

/// What the cases without a failure prove; `null` if there are none.
fn stable(cells: &[Cell<'_>]) -> Value {
    let clean = cells
        .iter()
        .filter(|cell| cell.standing == CaseStatus::Passed);
    let passes: Vec<u32> = clean.map(|cell| cell.counts.passed).collect();
    match passes.iter().min() {
        Some(fewest) => json!({
            "cases": passes.len(),
            "fewestTrials": fewest,
            "failuresAllowed": failures_allowed(*fewest),
        }),
        None => Value::Null,
    }
}

fn cause(cause: &Cause<'_>) -> Value {
    let trials = cause.trials.iter().map(|(case, agent, trial)| {
        json!({
            "case": case.case.id,
            "agent": agent.agent,
            "repeat": trial.repeat,
        })
    });
    json!({
        "count": cause.trials.len(),
        "outcome": words::outcome(Some(cause.outcome)),
        "blame": cause.blame.map(words::blame),
        "check": cause.check,
        "reason": cause.reason,
        "cases": cause.cases(),
        "trials": trials.collect::<Vec<_>>(),
    })
}
