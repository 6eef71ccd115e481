//! `proctor check` with several suites: shows one plan, one progress display and one table.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use proctor_core::suite::find::eval_files;
use proctor_record::hint::counted;
use proctor_record::problem::Problems;
use proctor_report::suites::{self, SkippedSuite, SuitesReport};
use proctor_report::terminal::TerminalStyle;
use proctor_report::{ReportError, markdown};
use proctor_run::engine::host::HostNotice;
use proctor_run::engine::suites::SuitePlan;
use proctor_run::engine::{
    CheckOptions, Engine, EngineError, Host, PreparedSuites, RunSource, SuitesInProgress,
    SuitesResult,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::display::Display;
use super::ending::{report, tell};
use super::github::GitHubJob;
use super::screen::RunScreen;
use super::signals::{RunSignals, RunStage};
use crate::args::{CheckArgs, ReportFormat, RunArgs};
use crate::commands::attended::InteractiveHost;
use crate::commands::refused::RefusedRun;
use crate::commands::shown::{InertJson, flattened};
use crate::commands::target::Targets;
use crate::commands::{engine, known_secrets, refused, tally, until_stopped};
use crate::exit::Exit;
use crate::{output, threads};

/// Runs the suites that the command line names.
pub(super) fn start(args: &CheckArgs) -> anyhow::Result<Exit> {
    let engine = engine()?;
    let host = InteractiveHost::new(engine.redactor(&[]));
    let mut problems = Problems::default();
    let files = eval_files(&args.files, &mut problems);
    if problems.has_errors() {
        host.notice(HostNotice::Problems(&problems));
        return Err(RefusedRun {
            exit: Exit::Usage,
            message: format!("the eval files can't be found: {}", tally(&problems)),
            problems: problems
                .iter()
                .filter_map(|problem| serde_json::to_value(problem).ok())
                .collect(),
            is_documented: false,
        }
        .into());
    }
    anyhow::ensure!(
        args.shard.is_none(),
        "`--shard` splits one suite; name one eval file"
    );
    anyhow::ensure!(
        args.replay.is_none(),
        "`--replay` replays one suite; name one eval file"
    );
    anyhow::ensure!(
        args.run.report.is_none(),
        "`--report` writes the report of one suite; use `proctor result convert RUN --to html` after the runs"
    );
    let options = options(args, files);
    let prepared = until_stopped(engine.prepare_suites(&options, &host))?;
    let prepared = prepared.map_err(|errors| refused_all(&host, errors))?;
    run(&args.run, &engine, prepared, &host)
}

/// The options of each suite. They differ only in the eval file.
fn options(args: &CheckArgs, files: Vec<PathBuf>) -> Vec<CheckOptions> {
    let mut flags = super::run_options_without_base(&args.run);
    flags
        .gates
        .no_regression
        .clone_from(&args.run.gates.no_regression);
    let options = files
        .into_iter()
        .map(|file| super::check_options(args, RunSource::File(file), flags.clone()));
    options.collect()
}

/// Shows why the suites don't start, all errors at once.
fn refused_all(host: &InteractiveHost, errors: Vec<EngineError>) -> anyhow::Error {
    let mut all = RefusedRun {
        exit: Exit::NothingSelected,
        message: String::new(),
        problems: Vec::new(),
        is_documented: false,
    };
    let mut messages = Vec::new();
    for error in errors {
        // Several JSON documents would not be one.
        let one = match refused(host, ReportFormat::Text, error).downcast::<RefusedRun>() {
            Ok(refused) => refused,
            Err(error) => {
                output::error(&error, &known_secrets());
                let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
                RefusedRun {
                    exit: Exit::Usage,
                    message: host.redacted(&causes.join(": ")),
                    problems: Vec::new(),
                    is_documented: false,
                }
            }
        };
        let rank = |exit: Exit| match exit {
            Exit::Usage => 0,
            Exit::NothingSelected => 2,
            _ => 1,
        };
        if rank(one.exit) < rank(all.exit) {
            all.exit = one.exit;
        }
        messages.push(one.message);
        all.problems.extend(one.problems);
    }
    all.message = messages.join("; ");
    all.into()
}

/// What will run, before anything starts.
fn plan(prepared: &PreparedSuites) -> String {
    let plans = prepared.plans();
    let sum = |count: fn(&SuitePlan) -> usize| plans.iter().map(count).sum::<usize>();
    let mut out = format!(
        "{}, {}, {}\n",
        counted(plans.len(), "suite"),
        counted(sum(|plan| plan.cases), "case"),
        counted(sum(|plan| plan.trials), "trial")
    );
    for plan in &plans {
        out.push_str(&format!(
            "  {}: {}, {} by {} ({})\n",
            plan.name,
            counted(plan.cases, "case"),
            counted(plan.trials, "trial"),
            plan.agents.join(", "),
            plan.file
        ));
    }
    for skipped in prepared.skipped() {
        out.push_str(&format!(
            "  {}: not run: {}\n",
            skipped.name, skipped.reason
        ));
    }
    out.push_str(&format!("estimate: {}\n", prepared.estimate()));
    output::printable_lines(&out)
}

fn run(
    flags: &RunArgs,
    engine: &Engine,
    prepared: PreparedSuites,
    host: &dyn Host,
) -> anyhow::Result<Exit> {
    let targets = Targets::resolve(flags.out.as_deref(), flags.junit.as_deref(), None)?;
    let runtime = threads::for_trials(flags.jobs.unwrap_or(flags.parallel))?;
    // Before the first byte is written: a file size limit must be an error, not end the process.
    let (signals, mut heard) = RunSignals::listen().context("can't listen for signals")?;
    let heading = plan(&prepared);
    let mut runs = engine.open_suites(prepared)?;
    // From here on the runs exist; whatever happens, their records get an end.
    let mut screen = if flags.quiet {
        RunScreen::quiet()
    } else {
        let is_terminal = super::shows_progress_bars();
        let display = Display::new(runs.labels(), runs.redactors(), flags, is_terminal);
        RunScreen::start(display.with_heading(heading))
    };
    runtime.block_on(follow(&mut runs, &mut screen, &mut heard, host));
    signals.come_to(RunStage::Ending);
    // Guards end the processes; the runtime waits for them while it shuts down.
    runtime.shutdown_timeout(Duration::from_secs(5));
    Ok(conclude(flags, &targets, runs.end(), &signals, screen))
}

/// Runs the suites and shows their progress.
async fn follow(
    runs: &mut SuitesInProgress,
    screen: &mut RunScreen,
    heard: &mut UnboundedReceiver<()>,
    host: &dyn Host,
) {
    let (progress, mut updates) = unbounded_channel();
    let detailed = screen.is_detailed();
    {
        let mut running = std::pin::pin!(runs.carry_out(progress, detailed, heard, host));
        tokio::select! {
            () = &mut running => {}
            never = screen.follow(&mut updates) => match never {},
        }
    }
    screen.take_all(&mut updates);
}

/// Writes the files, shows the reports and the table, and gives the exit code.
fn conclude(
    flags: &RunArgs,
    targets: &Targets,
    results: SuitesResult,
    signals: &RunSignals,
    screen: RunScreen,
) -> Exit {
    let exit = results.exit();
    let shown = suites_report(&results);
    let mut errors = write_files(targets, &shown);
    signals.come_to(RunStage::Showing);
    screen.finish();
    if let Err(error) = show(flags, &shown)
        // The reader closed the pipe.
        && !output::is_broken_pipe(&error)
    {
        errors.push(error);
    }
    if let Some(job) = GitHubJob::of_environment().filter(|_| !flags.no_github) {
        shown.reports.iter().for_each(|report| job.show(report));
    }
    for result in results.suites.iter().flatten() {
        tell(result.stopped.as_ref());
    }
    for result in results.suites {
        let kept = result.context("can't read a run").and_then(|result| {
            let folder = result.record.folder().display().to_string();
            result
                .kept
                .with_context(|| format!("the record in `{folder}` is incomplete"))
        });
        errors.extend(kept.err());
    }
    for error in &errors {
        output::error(error, &known_secrets());
    }
    match Exit::from_code(exit) {
        // A requested file is missing, so the command did not succeed.
        Exit::Ok if !errors.is_empty() => Exit::Inconclusive,
        exit => exit,
    }
}

fn suites_report(results: &SuitesResult) -> SuitesReport<'_> {
    let unreadable = results
        .suites
        .iter()
        .filter_map(|suite| suite.as_ref().err());
    let skipped = results.skipped.iter().map(|skipped| SkippedSuite {
        name: &skipped.name,
        reason: &skipped.reason,
    });
    SuitesReport {
        reports: results.suites.iter().flatten().map(report).collect(),
        skipped: skipped.collect(),
        unreadable: unreadable.map(ToString::to_string).collect(),
        exit: results.exit(),
    }
}

/// Writes the files of `--out` and `--junit`, and returns the errors.
fn write_files(targets: &Targets, shown: &SuitesReport<'_>) -> Vec<anyhow::Error> {
    let out = targets.out.as_ref();
    let out = out.map(|target| target.write(|out| suites::write_json(shown, out)));
    let junit = targets.junit.as_ref();
    let junit = junit.map(|target| target.write(|out| suites::write_junit(shown, out)));
    let written = [out, junit].into_iter().flatten();
    written.filter_map(Result::err).collect()
}

fn show(flags: &RunArgs, shown: &SuitesReport<'_>) -> anyhow::Result<()> {
    match flags.output.output {
        ReportFormat::Json => {
            let mut out = InertJson::new(BufWriter::new(io::stdout().lock()));
            suites::write_json(shown, &mut out).map_err(flattened)?;
            out.flush()?;
        }
        ReportFormat::Text => {
            let look = TerminalStyle {
                width: output::width(),
                colour: true,
            };
            output::report(&suites::render(shown, look).map_err(ReportError::from)?)?;
        }
        ReportFormat::Markdown => {
            output::result(&suites::markdown(shown, markdown::COMMENT))?;
        }
    }
    Ok(())
}
