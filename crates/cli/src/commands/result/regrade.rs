//! `proctor result regrade`: grades a recorded run again, and shows what changed.
//!
//! Trials are shown as they are graded, so that memory does not grow with their number.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use proctor_core::regrade::GradedTrial;
use proctor_report::regrade::{self, RegradeReport};
use proctor_report::terminal::TerminalStyle;
use proctor_run::engine::regrade::{JudgeOption, RegradeOptions, RegradeResult};

use super::source;
use crate::args::{OutputFormat, RegradeArgs};
use crate::commands::attended::InteractiveHost;
use crate::commands::stops::StopSignals;
use crate::commands::{counted, engine};
use crate::exit::Exit;
use crate::{output, threads};

/// How many changed trials the text shows.
const SHOWN: usize = 100;

pub(crate) fn run(args: &RegradeArgs) -> anyhow::Result<Exit> {
    let source = source::open(&args.run)?;
    if source.is_copy() && args.name.is_some() {
        bail!("`--name` needs the folder of a run: grades are not written into a file");
    }
    let options = RegradeOptions {
        folder: source.run().folder().to_owned(),
        with: args.with.clone(),
        judge: match &args.judge {
            None => JudgeOption::Recorded,
            Some(None) => JudgeOption::OfSuite,
            Some(Some(model)) => JudgeOption::Model(model.clone()),
        },
        source_roots: args.loading.source_roots(),
        mcp_config: args.loading.mcp_config_file.clone(),
        name: args.name.clone(),
        // A copy is removed at the end, and its grades with it.
        write: !args.dry_run && !source.is_copy(),
    };
    let engine = engine()?;
    let host = InteractiveHost::new(engine.redactor(&[]));
    let format = args.output.output;
    let mut screen = Screen::new(format);
    let runtime = threads::one_worker()?;
    let done = runtime.block_on(async {
        let mut stops = StopSignals::listen().context("can't listen for signals")?;
        let mut each = |trial: &GradedTrial| screen.trial(trial);
        tokio::select! {
            done = engine.regrade(&options, &host, &mut each) => anyhow::Ok(Some(done)),
            () = stops.next() => Ok(None),
        }
    });
    // Guards end a judge that is a program; the runtime waits for them while it shuts down.
    runtime.shutdown_timeout(Duration::from_secs(5));
    match done? {
        None => Ok(Exit::Interrupted),
        Some(Ok(result)) => match screen.end(&result) {
            Err(error) if !output::is_broken_pipe(&error) => Err(error),
            Ok(()) | Err(_) => Ok(Exit::from_code(result.exit)),
        },
        Some(Err(error)) => host.refuse(error, Some(format)),
    }
}

/// Shows trials and totals. A closed stdout changes neither the grades nor the exit code.
enum Screen {
    Text {
        /// The first changed trials.
        changed: Vec<GradedTrial>,
        /// The number of changed trials that are not shown.
        more: usize,
    },
    Json {
        out: BufWriter<StdoutLock<'static>>,
        is_first: bool,
        failed: Option<io::Error>,
    },
}

impl Screen {
    fn new(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Text => Self::Text {
                changed: Vec::new(),
                more: 0,
            },
            OutputFormat::Json => Self::Json {
                out: BufWriter::new(io::stdout().lock()),
                is_first: true,
                failed: None,
            },
        }
    }

    fn trial(&mut self, trial: &GradedTrial) {
        match self {
            Self::Text { changed, more } if trial.is_changed() => {
                if changed.len() < SHOWN {
                    changed.push(trial.clone());
                } else {
                    *more += 1;
                }
            }
            Self::Text { .. } => {}
            Self::Json {
                out,
                is_first,
                failed,
            } => {
                let start = if *is_first { "{\"results\":[\n" } else { ",\n" };
                *is_first = false;
                let entry = output::inert_json(&regrade::entry(trial).to_string());
                let written = write!(out, "{start}{entry}");
                *failed = failed.take().or(written.err());
            }
        }
    }

    fn end(self, result: &RegradeResult) -> anyhow::Result<()> {
        let several_agents = result.summary.plan.agents.len() > 1;
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let (eval, grades) = (path(&result.eval), path(&result.grades));
        let run = result.run.folder().display().to_string();
        let report = RegradeReport {
            totals: result.totals,
            eval: eval.as_deref(),
            run: &run,
            summary: &result.summary,
            before: &result.before,
            gate: &result.gate,
            exit: result.exit,
            changed_cases: result.changed_cases,
            removed: &result.removed,
            added: &result.added,
            unplanned: &result.unplanned,
            hash: &result.hash,
            grades: grades.as_deref(),
        };
        match self {
            Self::Text { changed, more } => {
                let style = TerminalStyle {
                    width: output::width(),
                    colour: true,
                };
                let mut text = String::new();
                for trial in &changed {
                    text.push_str(&regrade::change(trial, several_agents, style));
                }
                if more > 0 {
                    let more = counted(more, "more trial");
                    text.push_str(&format!("… and {more}; `-o json` has all of them\n"));
                }
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&regrade::totals(&report, style));
                output::report(&text)
            }
            Self::Json {
                mut out,
                is_first,
                failed,
            } => {
                if let Some(error) = failed {
                    return Err(error.into());
                }
                let start = if is_first { "{\"results\":[" } else { "\n" };
                let end = output::inert_json(&regrade::document_end(&report).to_string());
                writeln!(out, "{start}],\n\"proctor\":{end}}}")?;
                out.flush()?;
                Ok(())
            }
        }
    }
}
