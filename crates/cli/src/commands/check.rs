//! `proctor check`: runs a suite.

mod display;
mod ending;
mod github;
mod profile;
mod screen;
mod shard;
mod signals;
mod suites;
mod watch;

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Context, bail};
use proctor_record::record::RunReader;
use proctor_run::engine::options::{
    ConsentTerms, GateOptions, RerunOption, RunOptions, WidthOption,
};
use proctor_run::engine::{
    CheckOptions, Engine, Host, PreparedRun, RunCompletion, RunInProgress, RunSource,
};
use proctor_run::trial_folder::KeepOption;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use self::display::Display;
use self::ending::RunFinisher;
use self::github::GitHubJob;
use self::screen::RunScreen;
use self::signals::{RunSignals, RunStage};
use super::attended::InteractiveHost;
use super::store::ShardStore;
use super::target::Targets;
use super::{counted, engine, prepare_with, refused, result};
use crate::args::{CheckArgs, GateArgs, KeepArg, RunArgs};
use crate::exit::Exit;
use crate::output;
use crate::threads;

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<Exit> {
    if args.watch {
        return watch::run(args);
    }
    run_once(args)
}

/// Runs the suites once.
fn run_once(args: &CheckArgs) -> anyhow::Result<Exit> {
    let runs = [&args.resume, &args.retry_errors, &args.replay];
    let paths = args.files.iter().chain(runs.into_iter().flatten());
    let names: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    let name = names.join(", ");
    let done = match &args.profile {
        Some(profile) => profile::apply(args, profile).and_then(|args| start(&args)),
        None => start(args),
    };
    done.map_err(|error| refused::report(&args.run, &name, error))
}

fn start(args: &CheckArgs) -> anyhow::Result<Exit> {
    // A folder may hold any number of suites, and the output must not depend on it.
    if args.files.len() > 1 || args.files.iter().any(|path| path.is_dir()) {
        return suites::start(args);
    }
    let engine = engine()?;
    let host = InteractiveHost::new(engine.redactor(&[]));
    let (run, base) = run_options(&args.run)?;
    let shard = shard::option(args, engine.environment())?;
    let mut store = ShardStore::open(args, shard.as_ref(), engine.environment())?;
    let options = check_options(args, source(args)?, RunOptions { shard, ..run });
    let format = args.run.output.output;
    let mut prepared = prepare_with(&host, format, engine.prepare(&options, &host))?;
    if let Some(store) = &mut store {
        store.restore(&mut prepared)?;
    }
    // The plan holds the verdicts of the base.
    drop(base);
    run_prepared(&args.run, &engine, prepared, store, &host)
}

fn check_options(args: &CheckArgs, source: RunSource, run: RunOptions) -> CheckOptions {
    CheckOptions {
        plan: args.plan.is_given().then(|| args.plan.options()),
        source_roots: args.loading.source_roots(),
        locked: args.locked,
        mcp_config: args.loading.mcp_config_file.clone(),
        agents: args.agents.clone(),
        model_tap: args.model_tap,
        model: args.model.clone(),
        judge: args.judge.clone(),
        pass_env: args.pass_env.clone(),
        max_turns: args.max_turns,
        protocol: args.protocol,
        call_timeout: args.call_timeout,
        consent: ConsentTerms {
            yes: args.yes,
            file: args.consent.clone(),
        },
        run: RunOptions {
            profile: args.applied_profile.clone(),
            ..run
        },
        ..CheckOptions::of(source)
    }
}

/// The run that the flags name: a new one, a resumed one, or a replay.
fn source(args: &CheckArgs) -> anyhow::Result<RunSource> {
    let resume = |run: &std::path::Path, retry_errors| {
        let folder = result::run_folder(run)?;
        anyhow::Ok(RunSource::Resume {
            folder,
            retry_errors,
        })
    };
    let file = args.files.first();
    match (&args.resume, &args.retry_errors, &args.replay, file) {
        (Some(run), ..) => resume(run, false),
        (None, Some(run), ..) => resume(run, true),
        (None, None, Some(run), file) => Ok(RunSource::Replay {
            folder: result::run_folder(run)?,
            file: file.cloned(),
            strict: args.replay_strict,
        }),
        (None, None, None, Some(file)) => Ok(RunSource::File(file.clone())),
        (None, None, None, None) => bail!("no suite given; name an eval file"),
    }
}

/// The run options of the flags that `check` and `evals run` share, and the base that its gates are read from.
pub(super) fn run_options(
    flags: &RunArgs,
) -> anyhow::Result<(RunOptions, Option<result::source::RunSource>)> {
    let (gates, base) = gate_options(&flags.gates)?;
    let options = RunOptions {
        gates,
        ..run_options_without_base(flags)
    };
    Ok((options, base))
}

/// The same without the base of `--no-regression`, which means another thing for several suites.
fn run_options_without_base(flags: &RunArgs) -> RunOptions {
    RunOptions {
        strict: flags.strict,
        budget_usd: flags.budget_usd,
        budget_tokens: flags.budget_tokens,
        prices: flags.prices.clone(),
        folder: flags.record.clone(),
        width: match flags.jobs {
            Some(jobs) => WidthOption::Jobs(jobs),
            None => WidthOption::Parallel(flags.parallel),
        },
        fail_fast: flags.fail_fast,
        keep: match flags.keep {
            KeepArg::Failed => KeepOption::Failed,
            KeepArg::All => KeepOption::All,
            KeepArg::None => KeepOption::None,
        },
        no_context: flags.no_context,
        rerun: RerunOption {
            failed: flags.last_failed,
            errors: flags.rerun_errors,
        },
        gates: gates_without_base(&flags.gates),
        max_estimate_usd: flags.max_estimate_usd,
        stop_when_decided: flags.stop_when_decided,
        profile: None,
        shard: None,
    }
}

/// The gates of the flags, and the base that they are read from: the copy of a pack lives as long as it is open.
pub(super) fn gate_options(
    flags: &GateArgs,
) -> anyhow::Result<(GateOptions, Option<result::source::RunSource>)> {
    let base = flags.no_regression.as_deref();
    let base = base.map(result::source::open).transpose();
    let base = base.context("can't read the base of `--no-regression`")?;
    let options = GateOptions {
        no_regression: base.as_ref().map(|base| base.run().folder().to_owned()),
        ..gates_without_base(flags)
    };
    Ok((options, base))
}

fn gates_without_base(flags: &GateArgs) -> GateOptions {
    GateOptions {
        min_pass_rate: flags.min_pass_rate,
        min_lower_bound: flags.min_lower_bound,
        pass_hat: flags.pass_hat,
        max_errors: flags.max_errors,
        no_regression: None,
    }
}

/// Runs a prepared run and shows its report.
pub(super) fn run_prepared(
    flags: &RunArgs,
    engine: &Engine,
    prepared: PreparedRun,
    store: Option<ShardStore>,
    host: &dyn Host,
) -> anyhow::Result<Exit> {
    let heading = prepared.estimate().map_or(String::new(), |estimate| {
        let trials = usize::try_from(estimate.trials).unwrap_or(usize::MAX);
        format!("{}; estimate: {estimate}", counted(trials, "trial"))
    });
    let (out, junit) = (flags.out.as_deref(), flags.junit.as_deref());
    let targets = Targets::resolve(out, junit, flags.report.as_deref())?;
    let runtime = threads::for_trials(flags.jobs.unwrap_or(flags.parallel))?;
    // Before the first byte is written: a file size limit must be an error, not end the process.
    let (signals, mut heard) = RunSignals::listen().context("can't listen for signals")?;
    let mut run = engine.open(prepared)?;
    let uploads = store.map(|store| store.start(&mut run)).transpose()?;
    if run.is_resumed() && run.trials() == 0 {
        let record = RunReader::open(run.folder());
        let started = record.map_or(String::new(), |record| {
            format!("; it started at {}", record.started().started)
        });
        let done = "nothing to resume: every trial of the run has finished";
        output::message(&format!("{done}{started}\n"))?;
    }
    // From here on the run exists; whatever happens, its record gets an end.
    let redactor = run.redactor().clone();
    let is_terminal = shows_progress_bars();
    let mut screen = if flags.quiet {
        RunScreen::quiet()
    } else {
        let display = Display::new(run.labels(), vec![redactor.clone()], flags, is_terminal);
        RunScreen::start(display.with_heading(heading))
    };
    let over = runtime.block_on(follow(&mut run, &mut screen, &mut heard, host));
    signals.come_to(RunStage::Ending);
    // Guards end the processes; the runtime waits for them while it shuts down.
    runtime.shutdown_timeout(Duration::from_secs(5));
    let ending = RunFinisher {
        flags,
        targets,
        redactor: &redactor,
        signals,
        screen,
        uploads,
        job: GitHubJob::of_environment().filter(|_| !flags.no_github),
    };
    Ok(ending.conclude(run, over))
}

/// Runs the trials and shows their progress.
async fn follow(
    run: &mut RunInProgress,
    screen: &mut RunScreen,
    heard: &mut UnboundedReceiver<()>,
    host: &dyn Host,
) -> RunCompletion {
    let (progress, mut updates) = unbounded_channel();
    let detailed = screen.is_detailed();
    let mut running = std::pin::pin!(run.carry_out(progress, detailed, heard, host));
    let over = tokio::select! {
        over = &mut running => over,
        never = screen.follow(&mut updates) => match never {},
    };
    screen.take_all(&mut updates);
    over
}

/// Whether stderr is a terminal that can show progress bars.
fn shows_progress_bars() -> bool {
    std::io::stderr().is_terminal() && !is_dumb()
}

/// Whether the terminal can't move its cursor, or is the log of a CI job.
fn is_dumb() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set("CI") || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
