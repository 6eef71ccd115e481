//! `proctor result verify`: whether a recorded run meets its gates.

use std::path::Path;

use anyhow::bail;
use proctor_core::gate::{CaseVerdict, Condition, Gate, check_rates, conditions};
use proctor_core::printable::printable;
use proctor_core::summary::Summary;
use proctor_record::event::{NotRunOutcome, PlannedGates};
use proctor_record::hint::counted;
use proctor_run::engine::gates;
use serde_json::{Value, json};

use super::super::check::gate_options;
use super::source;
use crate::args::{OutputFormat, VerifyArgs};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<Exit> {
    let source = source::open(&args.run)?;
    let run = source.run();
    // An exit code depends on this, so the index must match the trial files.
    let summary = Summary::checked(run)?;
    let (options, base) = gate_options(&args.gates)?;
    // A run is never worse than itself, so a slip of the pen would always be green.
    if let Some(base) = base.as_ref().filter(|base| base.is_same(&source)) {
        bail!(
            "the base of `--no-regression` is the run itself: `{}`",
            base.shown().display()
        );
    }
    let is_given = !options.is_empty() || args.task.is_some() || args.assertion.is_some();
    let gates = if is_given {
        gates::planned(&options, &PlannedGates::default())?.map(|gates| *gates)
    } else {
        summary.plan.gates.as_deref().cloned()
    };
    let gates = gates.unwrap_or_default();
    let mut extra = check_rates(run, &summary, args.task, args.assertion)?;
    extra.extend(invalid_evals(&summary));
    let gate = Gate::with_conditions(&summary, &gates, &extra);
    let mut all = conditions(&summary, &gates);
    all.extend(extra);
    let rendered = match args.output.output {
        OutputFormat::Text => text(&summary, &gate, &all),
        OutputFormat::Json => format!("{:#}\n", value(source.shown(), &gate, &all)),
    };
    output::report(&rendered)?;
    Ok(Exit::from_code(gate.exit()))
}

/// An invalid eval fails a run, whatever the results of the others.
fn invalid_evals(summary: &Summary) -> Option<Condition> {
    let evals = summary.plan.not_run.iter();
    let invalid = evals
        .filter(|eval| eval.outcome == NotRunOutcome::Invalid)
        .count();
    (invalid > 0).then(|| Condition {
        option: None,
        verdict: CaseVerdict::Missed,
        text: format!("{} can't be run", counted(invalid, "invalid eval")),
    })
}

/// The gate, and one line for each condition.
fn text(summary: &Summary, gate: &Gate, conditions: &[Condition]) -> String {
    let mut out = format!("Gate {}\n", word(gate));
    match gate {
        Gate::Met => {
            if conditions
                .iter()
                .all(|condition| condition.option.is_none())
            {
                let met = summary
                    .cells()
                    .filter(|(case, trials)| trials.verdict(&case.case) == CaseVerdict::Met);
                let cases = counted(met.count(), "case");
                out.push_str(&format!("  {cases} met their pass rule\n"));
            }
            for condition in conditions {
                out.push_str(&format!("  {}\n", printable(&line(condition))));
            }
        }
        Gate::Missed { reasons } | Gate::Open { reasons } => {
            for reason in reasons {
                out.push_str(&format!("  {}\n", printable(reason)));
            }
        }
    }
    out
}

fn line(condition: &Condition) -> String {
    match &condition.option {
        Some(option) => format!("{option}: {}", condition.text),
        None => condition.text.clone(),
    }
}

fn value(run: &Path, gate: &Gate, conditions: &[Condition]) -> Value {
    let condition = |condition: &Condition| {
        let answer = match condition.verdict {
            CaseVerdict::Met => "met",
            CaseVerdict::Missed => "missed",
            CaseVerdict::Open => "inconclusive",
            CaseVerdict::KnownFailure => "known-failure",
        };
        json!({ "option": condition.option, "answer": answer, "text": condition.text })
    };
    json!({
        "run": run.to_string_lossy(),
        "gate": word(gate),
        "exit": gate.exit(),
        "reasons": gate.reasons(),
        "conditions": conditions.iter().map(condition).collect::<Vec<_>>(),
    })
}

fn word(gate: &Gate) -> &'static str {
    match gate {
        Gate::Met => "met",
        Gate::Missed { .. } => "missed",
        Gate::Open { .. } => "inconclusive",
    }
}
