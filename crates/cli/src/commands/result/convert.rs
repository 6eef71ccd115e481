//! `proctor result convert`: a run in the formats of other programs.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, bail};
use proctor_core::gate::Gate;
use proctor_core::selection::SelectionReport;
use proctor_core::summary::Summary;
use proctor_record::hint::listed;
use proctor_report::csv::{self, Table};
use proctor_report::{Report, ReportError, html, junit, markdown, mcpchecker, otlp};

use super::super::show::filter::Filter;
use super::super::shown;
use super::super::target::Target;
use super::source;
use crate::args::{ConvertArgs, ConvertFormat, CsvTable};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &ConvertArgs) -> anyhow::Result<Exit> {
    let (run, format) = args.what()?;
    check(args, format)?;
    let target = match (&args.out, is_folder(args, format)) {
        (Some(path), false) => Some(Target::open(path)?),
        _ => None,
    };
    let source = source::open(run)?;
    // Programs act on the result, so the index must match the trial files.
    let whole = Summary::checked(source.run())?;
    let gate = Gate::of(&whole);
    let filter = args.task.as_deref().map(Filter::of_task).transpose()?;
    let report = source.report(&whole, &gate);
    let Some(filter) = filter else {
        return write(&report, args, format, target);
    };
    let Some(part) = whole.part(source.run(), &filter.trials)? else {
        output::message(&filter.nothing_selected(&whole))?;
        return Ok(Exit::NothingSelected);
    };
    let report = Report {
        part: Some(filter.part(&whole)),
        summary: &part,
        ..report
    };
    write(&report, args, format, target)
}

fn write(
    report: &Report<'_>,
    args: &ConvertArgs,
    format: ConvertFormat,
    target: Option<Target>,
) -> anyhow::Result<Exit> {
    match &args.out {
        Some(folder) if is_folder(args, format) => tables(report, folder)?,
        _ => {
            let agent = agent(args, format, report.summary)?;
            let render = |out: &mut dyn Write| render(report, args, (format, agent), out);
            match target {
                Some(target) => target.write(render)?,
                None => to_stdout(render)?,
            }
        }
    }
    Ok(Exit::Ok)
}

/// Refuses flags that have no meaning together.
fn check(args: &ConvertArgs, format: ConvertFormat) -> anyhow::Result<()> {
    let is_csv = format == ConvertFormat::Csv;
    if args.table.is_some() && !is_csv {
        bail!("`--table` belongs to `--to csv`");
    }
    if args.agent.is_some() && format != ConvertFormat::Mcpchecker {
        bail!("`--agent` belongs to `--to mcpchecker`");
    }
    if args.max_size.is_some() && format != ConvertFormat::Html {
        bail!("`--max-size` belongs to `--to html`");
    }
    if args.task.is_some() && !can_be_partial(format) {
        bail!("`--task` belongs to `--to junit`, `--to markdown` and `--to json`");
    }
    if is_csv && args.table.is_none() && args.out.is_none() {
        bail!("CSV has several tables: name a folder with `--out`, or one of them with `--table`");
    }
    Ok(())
}

/// Whether the format says that it shows a part of a run.
fn can_be_partial(format: ConvertFormat) -> bool {
    match format {
        ConvertFormat::Junit | ConvertFormat::Markdown | ConvertFormat::Json => true,
        ConvertFormat::Csv
        | ConvertFormat::Mcpchecker
        | ConvertFormat::Otlp
        | ConvertFormat::Html => false,
    }
}

/// Whether `--out` names a folder.
fn is_folder(args: &ConvertArgs, format: ConvertFormat) -> bool {
    format == ConvertFormat::Csv && args.table.is_none()
}

fn render(
    report: &Report<'_>,
    args: &ConvertArgs,
    (format, agent): (ConvertFormat, usize),
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    match format {
        ConvertFormat::Junit => junit::write(report, out),
        ConvertFormat::Markdown => {
            let text = markdown::render(report, markdown::COMMENT);
            Ok(out.write_all(text.as_bytes())?)
        }
        ConvertFormat::Csv => {
            let table = match args.table {
                Some(CsvTable::Trials) | None => Table::Trials,
                Some(CsvTable::Calls) => Table::Calls,
                Some(CsvTable::Checks) => Table::Checks,
                Some(CsvTable::Tools) => Table::Tools,
                Some(CsvTable::Confusion) => Table::Confusion,
            };
            csv::write(report, table, out)
        }
        ConvertFormat::Json => shown::write_json(report, out),
        ConvertFormat::Mcpchecker => mcpchecker::write(report, agent, out),
        ConvertFormat::Otlp => otlp::write(report, out),
        ConvertFormat::Html => {
            let limit = args.max_size.map_or(html::MAX_BYTES, |size| size.0);
            shown::write_html(report, limit, out)
        }
    }
}

/// Writes all tables into a folder, each as a whole.
fn tables(report: &Report<'_>, folder: &Path) -> anyhow::Result<()> {
    let failed = || format!("can't create `{}`", folder.display());
    fs::create_dir_all(folder).with_context(failed)?;
    let of_selection = Table::OF_SELECTION.into_iter();
    let has_selection = !SelectionReport::of(report.summary).is_empty();
    let of_selection = of_selection.filter(|_| has_selection);
    for table in Table::ALL.into_iter().chain(of_selection) {
        let target = Target::open(&folder.join(format!("{}.csv", table.name())))?;
        target.write(|out| csv::write(report, table, out))?;
    }
    Ok(())
}

fn to_stdout(render: impl FnOnce(&mut dyn Write) -> Result<(), ReportError>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    render(&mut out).map_err(shown::flattened)?;
    Ok(out.flush()?)
}

/// The index of the agent whose results are written.
fn agent(args: &ConvertArgs, format: ConvertFormat, summary: &Summary) -> anyhow::Result<usize> {
    let agents = &summary.plan.agents;
    let names = || listed(agents.iter().map(|agent| agent.name.as_str()));
    match &args.agent {
        Some(name) => {
            let found = agents.iter().position(|agent| agent.name == *name);
            found.with_context(|| format!("agent `{name}` not found; the run has {}", names()))
        }
        None if agents.len() > 1 && format == ConvertFormat::Mcpchecker => bail!(
            "a result file of mcpchecker holds one agent: choose with `--agent` one of {}",
            names()
        ),
        None => Ok(0),
    }
}
