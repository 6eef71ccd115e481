//! The results of shipped evals as JSON: an `EvalResult` of the MCP proposal for each, and the evals without one.

use std::io::Write;

use proctor_core::summary::{CaseSummary, TrialResult, TrialSummary};
use proctor_record::event::{CheckId, Outcome, PlannedEval};
use proctor_record::verdict::Verdict;
use serde_json::{Value, json};

use crate::words;
use crate::{Report, ReportError};

/// Writes `{"results": […], "others": […]}`, which ends in a line feed.
pub fn write(report: &Report<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
    let mut results = Vec::new();
    let mut others: Vec<Value> = Vec::new();
    for (case, _, trial) in report.summary.trials() {
        let Some(eval) = &case.case.eval else {
            continue;
        };
        match &trial.result {
            Some(result) if is_definite(result.outcome) => {
                results.push(entry(report, case, eval, trial, result)?);
            }
            Some(result) => others.push(json!({
                "evalId": eval.id,
                "server": eval.server,
                "outcome": words::outcome(Some(result.outcome)),
                "reason": result.reason,
            })),
            None => others.push(json!({
                "evalId": eval.id,
                "server": eval.server,
                "outcome": "cancelled",
                "reason": report.note.unwrap_or("not run"),
            })),
        }
    }
    others.extend(
        report
            .listed
            .iter()
            .filter_map(|not_run| serde_json::to_value(not_run).ok()),
    );
    let mut document = json!({"results": results, "others": others});
    if let Some(part) = &report.part {
        document["part"] = json!({"filter": part.filter, "wholeRun": {"trials": part.trials}});
    }
    let text = serde_json::to_string_pretty(&document).map_err(std::io::Error::from)?;
    out.write_all(proctor_record::json::spelled(&text).as_bytes())?;
    writeln!(out)?;
    Ok(())
}

fn is_definite(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Passed | Outcome::Failed | Outcome::TimedOut
    )
}

fn entry(
    report: &Report<'_>,
    case: &CaseSummary,
    eval: &PlannedEval,
    trial: &TrialSummary,
    result: &TrialResult,
) -> Result<Value, ReportError> {
    let model = (eval.level != "execution")
        .then(|| report.summary.plan.agents.first()?.model.clone())
        .flatten();
    let judge = report.summary.plan.judge.clone().filter(|_| eval.judged);
    let millis = u64::try_from(result.duration().as_millis()).unwrap_or(u64::MAX);
    let mut entry = json!({
        "evalId": eval.id,
        "passed": result.outcome == Outcome::Passed,
        "durationMs": millis,
        "_meta": {
            "server": eval.server,
            "run": report.folder.display().to_string(),
            "trial": trial.repeat,
            "case": case.case.id,
            "model": model,
            "judge": judge,
        },
    });
    if let Some(reason) = reason(report, eval, (trial, result), judge.as_deref())? {
        entry["reason"] = reason.into();
    }
    Ok(entry)
}

/// The reason of a result. If a judge decided, it names the judge.
fn reason(
    report: &Report<'_>,
    eval: &PlannedEval,
    (trial, result): (&TrialSummary, &TrialResult),
    judge: Option<&str>,
) -> Result<Option<String>, ReportError> {
    if result.outcome != Outcome::Passed || !eval.judged {
        return Ok(result.reason.clone());
    }
    let said = report.fold(trial)?.and_then(|folded| {
        let mut checks = folded.work.checks.into_iter();
        let own = checks.find(|check| matches!(check.id, Some(CheckId::Grading(_))))?;
        matches!(own.verdict, Verdict::Pass).then(|| own.notes.into_iter().next())?
    });
    let judge = judge.unwrap_or("the judge");
    // The note of a single vote starts with the judge's name.
    let prefix = format!("{judge}: pass: ");
    Ok(Some(match said.as_deref() {
        Some(said) => {
            let said = said.strip_prefix(&prefix).unwrap_or(said);
            format!("passed according to {judge}: {said}")
        }
        None => format!("passed according to {judge}"),
    }))
}
