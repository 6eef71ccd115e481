//! The text output of `proctor list`.

use std::collections::BTreeSet;
use std::fmt::Write;

use comfy_table::{ContentArrangement, Table, presets};
use proctor_core::plan::{CasePlan, Plan};
use proctor_core::printable::printable;
use proctor_core::suite::{Case, JudgeModel, Suite};
use proctor_record::duration;

use super::super::counted;

/// The maximum number of names or labels listed if no case was selected.
const SHOWN: usize = 20;

pub(super) fn render(suite: &Suite, plan: &Plan<'_>) -> String {
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = write_heading(suite, &mut out);
    if !plan.cases.is_empty() {
        out.push('\n');
        out.push_str(&case_table(plan));
        out.push('\n');
    }
    let agents = match suite.agents.len() {
        1 => String::new(),
        many => format!(" by {many} agents"),
    };
    let _ = writeln!(
        out,
        "\n{}{agents}, {}",
        counted(plan.cases.len(), "case"),
        counted(
            usize::try_from(plan.trials()).unwrap_or(usize::MAX),
            "trial"
        ),
    );
    out
}

fn write_heading(suite: &Suite, out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "{}  ({})",
        printable(&suite.name),
        printable(&suite.path.display().to_string())
    )?;
    for (at, agent) in suite.agents.iter().enumerate() {
        let label = if at == 0 { "agent" } else { "" };
        writeln!(out, "  {label:8} {}", printable(&agent.name))?;
    }
    for (at, server) in suite.servers.iter().enumerate() {
        let label = if at == 0 { "servers" } else { "" };
        let name = printable(&server.name);
        writeln!(out, "  {label:8} {name}: {}", printable(&server.written))?;
    }
    if let Some(judge) = &suite.judge {
        let name = match &judge.model {
            JudgeModel::Agent(agent) => agent.name.as_str(),
            JudgeModel::Environment { .. } => "from the environment",
        };
        writeln!(out, "  {:8} {}", "judge", printable(name))?;
    }
    for shipped in &suite.shipped {
        let level = shipped.level.map_or("all", |level| level.word());
        let server = printable(&shipped.server);
        writeln!(out, "  {:8} evals of {server}, {level}", "ships")?;
    }
    for source in suite.unfetched() {
        let name = printable(&source.name);
        let repo = printable(&source.repo);
        writeln!(out, "  {:8} {name} ({repo}), not fetched", "source")?;
    }
    Ok(())
}

fn case_table(plan: &Plan<'_>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["CASE", "LABELS", "RUNS", "TIMEOUT", "CHECKS"]);
    if let Some(width) = terminal_width() {
        table.set_width(width);
    }
    for planned in &plan.cases {
        table.add_row([
            printable(&planned.case.name).into_owned(),
            labels(planned.case),
            runs(planned),
            planned
                .limits
                .timeout
                .map_or("none".to_owned(), duration::render),
            checks(planned.case),
        ]);
    }
    let lines = table.to_string();
    let lines: Vec<&str> = lines.lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// The width of the terminal, if stdout is one.
fn terminal_width() -> Option<u16> {
    terminal_size::terminal_size().map(|(width, _)| width.0)
}

fn labels(case: &Case) -> String {
    let pairs: Vec<String> = case
        .labels
        .iter()
        .map(|(key, value)| format!("{}={}", printable(key), printable(value)))
        .collect();
    pairs.join(" ")
}

fn runs(planned: &CasePlan<'_>) -> String {
    match planned.case.pass {
        Some(rule) => format!("{} (pass {}/{})", planned.runs, rule.passed, rule.of),
        None => planned.runs.to_string(),
    }
}

fn checks(case: &Case) -> String {
    let mut names: Vec<String> = Vec::new();
    for check in &case.checks {
        let name = match check.details().len() {
            0 | 1 => check.name().into_owned(),
            many => format!("{}×{many}", check.name()),
        };
        names.push(name);
    }
    match case.verify.len() {
        0 => {}
        1 => names.push("verify".to_owned()),
        many => names.push(format!("verify×{many}")),
    }
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

/// The error message, with the available names and labels, and hints.
pub(super) fn render_available(
    names: &[&str],
    labels: &BTreeSet<String>,
    hints: &[String],
) -> String {
    let mut out = "error: no cases selected\n".to_owned();
    let mut list = |title: &str, words: Vec<&str>| {
        if words.is_empty() {
            return;
        }
        let shown: Vec<_> = words.iter().take(SHOWN).map(|w| printable(w)).collect();
        let rest = match words.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let _ = writeln!(out, "{title}: {}{rest}", shown.join(", "));
    };
    list("available cases", names.to_vec());
    list(
        "available labels",
        labels.iter().map(String::as_str).collect(),
    );
    for hint in hints {
        let _ = writeln!(out, "hint: {}", printable(hint));
    }
    out
}
