//! `proctor validate`: shows all problems of all files at once.

use std::collections::BTreeMap;
use std::path::Path;

use proctor_core::printable::printable;
use proctor_core::profile::{self, PROFILES_FILE};
use proctor_core::suite::{Inputs, LoadedFile, load_any};
use proctor_record::problem::{Code, Problem, Problems};
use serde_json::json;

use super::{counted, drawn, environment, tally};
use crate::args::{OutputFormat, ValidateArgs};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &ValidateArgs) -> anyhow::Result<Exit> {
    let env = environment();
    let roots = args.loading.source_roots();
    let inputs = Inputs {
        env: &env,
        source_roots: &roots,
        runs: None,
        mcp_config: args.loading.mcp_config_file.as_deref(),
        judge_given: false,
    };
    let mut problems = Problems::default();
    let mut lines = Vec::new();
    let mut names: BTreeMap<String, &Path> = BTreeMap::new();
    for path in &args.files {
        if path.file_name().is_some_and(|name| name == PROFILES_FILE) {
            let profiles = profile::check(path, &mut problems);
            lines.extend(profiles.map(|count| (path, counted(count, "profile"))));
            continue;
        }
        let Some(loaded) = load_any(path, &inputs, &mut problems) else {
            continue;
        };
        if let LoadedFile::Suite(suite) = &loaded
            && let Some(first) = names.insert(suite.name.clone(), path)
            && first != path
        {
            problems.push(
                Problem::warning(
                    Code::Conflict,
                    format!("duplicate suite name `{}`", suite.name),
                )
                .in_file(path)
                .hint(format!("the other one is `{}`", first.display())),
            );
        }
        lines.push((path, describe(&loaded)));
    }
    if args.strict {
        problems.promote(Code::UnknownKey);
    }
    match args.output.output {
        OutputFormat::Json => output::json(&json!({
            "files": args.files,
            "errors": problems.errors(),
            "warnings": problems.warnings(),
            "problems": problems.iter().collect::<Vec<_>>(),
        }))?,
        OutputFormat::Text => {
            let mut text = drawn(&problems);
            for (path, line) in lines {
                let path = path.display().to_string();
                text.push_str(&format!("{}: {line}\n", printable(&path)));
            }
            let files = counted(args.files.len(), "file");
            text.push_str(&format!("{files}: {}\n", tally(&problems)));
            output::result(&text)?;
        }
    }
    Ok(if problems.has_errors() {
        Exit::Usage
    } else {
        Exit::Ok
    })
}

fn describe(loaded: &LoadedFile) -> String {
    match loaded {
        LoadedFile::Suite(suite) => {
            let mut line = format!(
                "suite `{}`, {}, {}",
                printable(&suite.name),
                counted(suite.cases.len(), "case"),
                counted(suite.servers.len(), "server"),
            );
            if !suite.shipped.is_empty() {
                line.push_str(", plus shipped evals");
            }
            line
        }
        LoadedFile::Case(case, 1) => format!("task `{}`", printable(&case.name)),
        LoadedFile::Case(case, rows) => {
            format!(
                "task `{}`, {}",
                printable(&case.name),
                counted(*rows, "row")
            )
        }
        LoadedFile::Selection(cases) => format!("selection, {}", counted(cases.len(), "row")),
        LoadedFile::Agent(agent) => format!("agent `{}`", printable(&agent.name)),
        LoadedFile::Script(script) => format!("script, {}", counted(script.rules(), "rule")),
        LoadedFile::Servers(servers) => format!("MCP config, {}", counted(servers.len(), "server")),
    }
}
