//! `proctor list`: shows what a suite would run.

use std::collections::BTreeSet;

use proctor_core::plan::{Plan, Selection};
use proctor_core::suite::{Inputs, Suite, load};
use proctor_record::problem::{Code, Problems};
use proctor_run::engine::estimate::of_plan;
use serde_json::json;

use super::{drawn, environment, tally};
use crate::args::{ListArgs, OutputFormat};
use crate::exit::Exit;
use crate::output;

mod document;
mod table;

pub(crate) fn run(args: &ListArgs) -> anyhow::Result<Exit> {
    let env = environment();
    let roots = args.loading.source_roots();
    let inputs = Inputs {
        env: &env,
        source_roots: &roots,
        runs: args.plan.runs,
        mcp_config: args.loading.mcp_config_file.as_deref(),
        judge_given: false,
    };
    let mut problems = Problems::default();
    let loaded = load(&args.file, &inputs, &mut problems);
    problems.demote(Code::UnmetRequirement);
    output::message(&drawn(&problems))?;
    let Some(suite) = loaded else {
        output::message(&format!("{}: {}\n", args.file.display(), tally(&problems)))?;
        return Ok(Exit::Usage);
    };
    let options = args.plan.options();
    let plan = Plan::new(&suite, &options);
    // Shipped evals and sources that are not fetched may have further cases.
    let all_known = suite.shipped.is_empty() && suite.unfetched().next().is_none();
    if plan.cases.is_empty() && all_known {
        return nothing_selected(&suite, &options.selection, args.output.output);
    }
    let estimate = args.cost.then(|| of_plan(&suite, &plan)).transpose()?;
    if estimate.is_some() && !all_known {
        output::message(
            "note: shipped evals and sources that are not fetched are not in the estimate\n",
        )?;
    }
    match args.output.output {
        OutputFormat::Json => {
            let mut document = document::render(&suite, &plan, &problems);
            if let Some(estimate) = estimate {
                document["estimate"] = json!(estimate);
            }
            output::json(&document)?;
        }
        OutputFormat::Text => {
            let mut text = table::render(&suite, &plan);
            if let Some(estimate) = estimate {
                text.push_str(&format!("estimate: {estimate}\n"));
            }
            output::report(&text)?;
        }
    }
    Ok(Exit::Ok)
}

/// Prints that no case was selected, with the available names and labels, and what was probably meant.
pub(super) fn nothing_selected(
    suite: &Suite,
    selection: &Selection,
    format: OutputFormat,
) -> anyhow::Result<Exit> {
    let hints = selection.suggestions(&suite.cases);
    let names: Vec<&str> = suite.cases.iter().map(|case| case.name.as_str()).collect();
    let labels: BTreeSet<String> = suite
        .cases
        .iter()
        .flat_map(|case| &case.labels)
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let written = match format {
        OutputFormat::Json => output::json(&json!({
            "cases": [],
            "available": {"names": names, "labels": labels},
            "hints": hints,
        })),
        OutputFormat::Text => output::message(&table::render_available(&names, &labels, &hints)),
    };
    match written {
        // A closed pipe does not change the exit code.
        Err(error) if !output::is_broken_pipe(&error) => Err(error),
        _ => Ok(Exit::NothingSelected),
    }
}
