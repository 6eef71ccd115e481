//! `proctor check`: runs a suite.

mod config;
pub(super) mod context;
mod display;
mod ending;
mod folder;
pub(super) mod prepare;
mod screen;
mod servers;
mod shipped;
mod signals;
mod target;
mod width;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use proctor_core::event::{Actor, What};
use proctor_core::suite::Isolation;
use proctor_run::context::RunContext;
use proctor_run::preflight::{self, PreflightError, Seen};
use proctor_run::runner::{self, RunnerOptions};
use proctor_wire::recorder::Recorder;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use self::display::Display;
use self::ending::{Ending, Over};
use self::folder::Run;
use self::prepare::Prepared;
use self::screen::Screen;
use self::servers::Looked;
use self::signals::{Signals, Stage};
use self::target::Targets;
use crate::args::{CheckArgs, RunArgs};
use crate::exit::Exit;
use crate::output;
use crate::threads;

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<Exit> {
    let mut prepared = match prepare::prepare(args)? {
        Ok(prepared) => prepared,
        Err(exit) => return Ok(exit),
    };
    let timeouts = &mut prepared.context.timeouts;
    timeouts.request = args.call_timeout;
    timeouts.total = timeouts.total.max(args.call_timeout);
    let resumed = match (&args.resume, &args.retry_errors) {
        (Some(folder), _) => Some((folder.as_path(), false)),
        (None, Some(folder)) => Some((folder.as_path(), true)),
        (None, None) => None,
    };
    run_prepared(&args.run, prepared, resumed, Shape::Suite)
}

/// The shape of the JSON document that a run comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// That of a suite.
    Suite,
    /// That of evals which servers ship.
    Evals,
}

/// Runs what was prepared, in a folder of its own or in that of a run that is gone on with (and
/// whether errors are tried again), and shows what came of it.
pub(super) fn run_prepared(
    flags: &RunArgs,
    prepared: Prepared,
    resumed: Option<(&Path, bool)>,
    shape: Shape,
) -> anyhow::Result<Exit> {
    let targets = Targets::resolve(flags)?;
    let servers = prepared.context.suite.servers.len();
    let (width, said) = width::settle(flags, &prepared.trials, servers);
    for text in said {
        say(&text)?;
    }
    let runtime = threads::many_workers(None)?;
    // Before the first byte is written: a limit on the size of files must be an error, not the end.
    let (signals, mut heard) = Signals::listen().context("can't listen for signals")?;
    let (context, not_run, mut run) = folder::open(flags, prepared, resumed)?;
    if resumed.is_some() && run.trials.is_empty() {
        say("nothing is left to be run: every trial of the run has an end")?;
    }
    // From here on there is a run, and whatever happens, it is ended in order.
    let redactor = context.redactor.clone();
    let is_terminal = std::io::stderr().is_terminal() && !is_dumb();
    let names = run.names(&context);
    let mut screen = Screen::start(Display::new(names, &redactor, flags.verbose, is_terminal));
    let options = RunnerOptions {
        width,
        fail_fast: flags.fail_fast,
        detailed: screen.is_detailed(),
    };
    let going_on = carry_out(options, context, &mut run, &mut screen, &mut heard);
    let over = runtime.block_on(going_on);
    signals.come_to(Stage::Ending);
    // Processes are ended by their guards, which a runtime that is going away still waits for.
    runtime.shutdown_timeout(Duration::from_secs(5));
    let ending = Ending {
        flags,
        targets,
        over,
        redactor: &redactor,
        signals,
        screen,
        not_run,
        shape,
    };
    Ok(ending.conclude(run))
}

/// Looks at the servers, then runs the trials.
async fn carry_out(
    options: RunnerOptions,
    mut context: RunContext,
    run: &mut Run,
    screen: &mut Screen,
    heard: &mut UnboundedReceiver<()>,
) -> Over {
    if run.trials.is_empty() {
        return Over::Finished(runner::Finished::default());
    }
    let looked = tokio::select! {
        looked = look_at_servers(&mut context) => looked,
        Some(()) = heard.recv() => return Over::Interrupted,
    };
    let looked = match looked {
        Ok(looked) => looked,
        Err(error) => return Over::NotStarted(error.to_string()),
    };
    for Looked { seen, .. } in &looked {
        if let Some(reason) = servers::change(&run.seen, seen, &context.redactor) {
            return Over::NotStarted(reason);
        }
    }
    for text in servers::unknown_names(&context.suite, &run.trials, &looked) {
        // A warning that can't be shown stops nothing.
        let _ = say(&context.redactor.text(&text));
    }
    for Looked { seen, .. } in looked {
        let at = run.at();
        if let Err(error) = run.writer.append(at, What::ServerSeen(seen)) {
            return Over::Broken(error.into());
        }
    }
    let context = Arc::new(context);
    let over = watch(options, &context, run, screen, heard).await;
    if let Some(context) = Arc::into_inner(context) {
        let shared = context.shared.into_values();
        let close = async {
            for client in shared {
                client.close().await;
            }
        };
        // Nobody has to wait for servers that don't end by themselves.
        tokio::select! {
            () = close => {}
            Some(()) = heard.recv() => {}
        }
    }
    over
}

/// Starts every server once, and keeps those that all trials share.
async fn look_at_servers(context: &mut RunContext) -> Result<Vec<Looked>, PreflightError> {
    let mut all = Vec::new();
    for server in context.suite.servers.clone() {
        let recorder = Recorder::nothing().redacting(&context.redactor);
        let options = context.connect_options(Actor::Preflight, recorder);
        let found = preflight::look(&server, &options).await?;
        let Seen {
            seen,
            offered,
            era,
            client,
        } = found;
        context.eras.insert(server.name.clone(), era);
        let tools = offered.tools.clone();
        context.tools.insert(server.name.clone(), tools);
        if context.suite.isolation == Isolation::Run {
            context.shared.insert(server.name.clone(), client);
        } else {
            client.close().await;
        }
        all.push(Looked { seen, offered });
    }
    Ok(all)
}

/// Runs the trials, and shows how that goes.
async fn watch(
    options: RunnerOptions,
    context: &Arc<RunContext>,
    run: &Run,
    screen: &mut Screen,
    heard: &mut UnboundedReceiver<()>,
) -> Over {
    let (progress, mut told) = unbounded_channel();
    let (interrupt, interrupts) = unbounded_channel();
    let running = runner::run(
        context.clone(),
        &run.writer,
        run.started,
        &run.trials,
        options,
        progress,
        interrupts,
    );
    let mut running = std::pin::pin!(running);
    let finished = loop {
        tokio::select! {
            finished = &mut running => break finished,
            Some(progress) = told.recv() => screen.take(progress),
            Some(()) = heard.recv() => {
                // The runner hears it as long as it runs.
                let _ = interrupt.send(());
            }
        }
    };
    while let Ok(progress) = told.try_recv() {
        screen.take(progress);
    }
    match finished {
        Ok(finished) => Over::Finished(finished),
        Err(error) => Over::Broken(error),
    }
}

/// Whether the terminal can't move its cursor, or is somebody's log.
fn is_dumb() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set("CI") || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Says something that is no result.
fn say(text: &str) -> anyhow::Result<()> {
    output::message(&format!("{text}\n"))
}
