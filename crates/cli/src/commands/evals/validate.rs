//! `proctor evals validate`: checks an evals file for mistakes.

use std::path::Path;

use mcp_evals::{EvalStatus, ListedEval, ValidationReport, validate, validate_with_tools};
use proctor_core::evals::file::EvalsFile;
use proctor_core::printable::printable;
use proctor_record::problem::Problems;
use proctor_wire::client::ListLimits;
use serde_json::json;

use super::servers::visit;
use crate::args::{EvalsValidateArgs, OutputFormat};
use crate::commands::session::CommandOutcome;
use crate::commands::{counted, drawn, tally};
use crate::exit::Exit;
use crate::output;
use proctor_run::engine::offers::gather;

pub(super) fn run(args: &EvalsValidateArgs) -> anyhow::Result<Exit> {
    let mut problems = Problems::default();
    let file = EvalsFile::load(&args.file, &mut problems);
    let Some(file) = file else {
        return show(args, None, problems);
    };
    if !args.server.are_given() {
        let report = validate(&file.evals);
        file.tell_author(&report, &mut problems);
        return show(args, Some((&file.evals, &report)), problems);
    }
    visit(&args.server, async |visit| {
        let offers = match gather(visit.servers, None, visit.options, &ListLimits::default()).await
        {
            Ok(offers) => offers,
            Err(error) => {
                return Ok(CommandOutcome::because(
                    Exit::Inconclusive,
                    error.to_string(),
                ));
            }
        };
        let tools: Vec<_> = offers.into_iter().flat_map(|offer| offer.tools).collect();
        let report = validate_with_tools(&file.evals, &tools);
        file.tell_author(&report, &mut problems);
        file.check_arguments(&tools, &mut problems);
        let exit = show(args, Some((&file.evals, &report)), problems)?;
        Ok(CommandOutcome { exit, reason: None })
    })
}

fn show(
    args: &EvalsValidateArgs,
    read: Option<(&[ListedEval], &ValidationReport)>,
    mut problems: Problems,
) -> anyhow::Result<Exit> {
    if args.strict {
        problems.promote_all();
    }
    problems.sort();
    match args.output.output {
        OutputFormat::Json => output::json(&json!({
            "files": [args.file],
            "evals": read.map(|(evals, _)| evals.len()),
            "errors": problems.errors(),
            "warnings": problems.warnings(),
            "problems": problems.iter().collect::<Vec<_>>(),
        }))?,
        OutputFormat::Text => {
            let mut text = drawn(&problems);
            if let Some((evals, report)) = read {
                text.push_str(&describe(&args.file, evals, report));
            }
            text.push_str(&format!("{}\n", tally(&problems)));
            output::result(&text)?;
        }
    }
    Ok(if problems.has_errors() {
        Exit::Usage
    } else {
        Exit::Ok
    })
}

fn describe(path: &Path, evals: &[ListedEval], report: &ValidationReport) -> String {
    let levels = ["invocation", "execution", "scenario"].map(|level| {
        let is_it = |item: &&ListedEval| item.eval().is_some_and(|eval| eval.input.kind() == level);
        (level, evals.iter().filter(is_it).count())
    });
    let parts: Vec<String> = levels
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(level, count)| format!("{count} {level}"))
        .collect();
    let path = path.display().to_string();
    let mut line = format!("{}: {}", printable(&path), counted(evals.len(), "eval"));
    if !parts.is_empty() {
        line.push_str(&format!(" ({})", parts.join(", ")));
    }
    let skipped = report.findings.iter().map(|finding| finding.index);
    let mut skipped: Vec<usize> = skipped
        .filter(|index| report.status(*index) == EvalStatus::Skipped)
        .collect();
    skipped.dedup();
    if !skipped.is_empty() {
        line.push_str(&format!(", {} skipped by clients", skipped.len()));
    }
    line.push('\n');
    line
}
