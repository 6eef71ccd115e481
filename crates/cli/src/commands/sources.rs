//! `proctor sources`: shows, fetches and updates the repositories that suites take tasks from.

use proctor_core::printable::printable;
use proctor_core::suite::lock_file::short;
use proctor_core::suite::{SourceState, TaskSource};
use proctor_run::engine::sources::{self, FetchScope};
use serde_json::{Value, json};

use super::attended::InteractiveHost;
use super::{engine, until_stopped};
use crate::args::{OutputFormat, SourcesArgs, SourcesCommand, SourcesListArgs};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(command: &SourcesCommand) -> anyhow::Result<Exit> {
    match command {
        SourcesCommand::List(args) => list(args),
        SourcesCommand::Fetch(args) => fetch(args, FetchScope::Absent),
        SourcesCommand::Update(args) => fetch(args, FetchScope::Newest),
    }
}

fn list(args: &SourcesListArgs) -> anyhow::Result<Exit> {
    let engine = engine()?;
    let host = InteractiveHost::new(engine.redactor(&[]));
    let mut found = Vec::new();
    for file in &args.files {
        match sources::of_file(&engine, file, &host) {
            Ok(sources) => found.extend(sources),
            Err(error) => return host.refuse(error, Some(args.output.output)),
        }
    }
    match args.output.output {
        OutputFormat::Json => {
            let sources: Vec<Value> = found.iter().map(document).collect();
            output::json(&json!({ "sources": sources }))?;
        }
        OutputFormat::Text if found.is_empty() => {
            output::result("no task set takes tasks from a source\n")?;
        }
        OutputFormat::Text => {
            let rows = found.iter().map(|source| {
                [
                    printable(&source.name).into_owned(),
                    printable(&source.repo).into_owned(),
                    source.reference.clone().unwrap_or_else(|| "-".to_owned()),
                    source
                        .pin()
                        .map_or("-", |pin| short(&pin.commit))
                        .to_owned(),
                    state(source).to_owned(),
                ]
            });
            let head = ["NAME", "REPOSITORY", "REF", "COMMIT", "STATE"].map(str::to_owned);
            let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
            output::result(&columns(&rows))?;
        }
    }
    Ok(Exit::Ok)
}

/// Lines with aligned columns.
pub(super) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn state(source: &TaskSource) -> &'static str {
    match source.state {
        SourceState::Given(_) => "given",
        SourceState::Cached { .. } => "cached",
        SourceState::Unpinned => "not pinned",
        SourceState::Missing(_) => "not fetched",
        SourceState::Changed(_) => "changed",
    }
}

fn document(source: &TaskSource) -> Value {
    json!({
        "source": source.name,
        "repo": source.repo,
        "ref": source.reference,
        "commit": source.pin().map(|pin| &pin.commit),
        "state": state(source),
        "folder": source.root(),
    })
}

fn fetch(args: &SourcesArgs, scope: FetchScope) -> anyhow::Result<Exit> {
    let engine = engine()?;
    let host = InteractiveHost::new(engine.redactor(&[]));
    let fetching = sources::fetch(&engine, &args.file, scope, &args.names, &host);
    let fetched = match until_stopped(fetching)? {
        Ok(fetched) => fetched,
        Err(error) => return host.refuse(error, None),
    };
    if fetched.is_empty() {
        output::result("nothing to fetch: every source is in the cache\n")?;
    }
    for source in fetched {
        output::result(&output::printable_lines(&format!("{source}\n")))?;
    }
    Ok(Exit::Ok)
}
