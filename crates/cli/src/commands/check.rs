//! `proctor check`: runs a suite.

mod display;
mod ending;
mod folder;
mod prepare;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use proctor_core::event::{Actor, What};
use proctor_core::suite::Isolation;
use proctor_run::context::RunContext;
use proctor_run::preflight::{self, PreflightError, Seen};
use proctor_run::recorder::Recorder;
use proctor_run::runner::{self, RunnerOptions, Width};
use tokio::sync::mpsc::unbounded_channel;

use self::display::Display;
use self::ending::Over;
use self::folder::Run;
use super::stops::Stops;
use crate::args::CheckArgs;
use crate::exit::Exit;
use crate::output;

/// How often what moves on the screen does.
const TICK: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<Exit> {
    let prepared = match prepare::prepare(args)? {
        Ok(prepared) => prepared,
        Err(exit) => return Ok(exit),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    // Before the first byte is written: a limit on the size of files must be an error, not the end.
    let stops = {
        let _inside = runtime.enter();
        Stops::listen().context("can't listen for signals")?
    };
    let (context, mut run) = folder::open(args, prepared)?;
    let redactor = context.redactor.clone();
    let over = runtime.block_on(carry_out(args, context, &mut run, stops));
    // Processes are ended by their guards, which a runtime that is going away still waits for.
    runtime.shutdown_timeout(Duration::from_secs(5));
    Ok(ending::conclude(args, over?, run, &redactor))
}

/// Looks at the servers, then runs the trials.
async fn carry_out(
    args: &CheckArgs,
    mut context: RunContext,
    run: &mut Run,
    mut stops: Stops,
) -> anyhow::Result<Over> {
    if run.trials.is_empty() {
        return Ok(Over::Finished(runner::Finished::default()));
    }
    let looked = tokio::select! {
        looked = look_at_servers(&mut context) => looked,
        () = stops.next() => return Ok(Over::Interrupted),
    };
    match looked {
        Ok(seen) => {
            for seen in seen {
                let at = run.at();
                if let Err(error) = run.writer.append(at, What::ServerSeen(seen)) {
                    return Ok(Over::Broken(error.into()));
                }
            }
        }
        Err(error) => return Ok(Over::NotStarted(error.to_string())),
    }
    let context = Arc::new(context);
    let over = watch(args, &context, run, &mut stops).await?;
    if let Some(context) = Arc::into_inner(context) {
        for client in context.shared.into_values() {
            client.close().await;
        }
    }
    Ok(over)
}

/// Starts every server once, and keeps those that all trials share.
async fn look_at_servers(
    context: &mut RunContext,
) -> Result<Vec<proctor_core::event::ServerSeen>, PreflightError> {
    let mut all = Vec::new();
    for server in context.suite.servers.clone() {
        let recorder = Recorder::nothing().redacting(&context.redactor);
        let options = context.connect_options(Actor::Preflight, recorder);
        let Seen { seen, era, client } = preflight::look(&server, &options).await?;
        context.eras.insert(server.name.clone(), era);
        if context.suite.isolation == Isolation::Run {
            context.shared.insert(server.name.clone(), client);
        } else {
            client.close().await;
        }
        all.push(seen);
    }
    Ok(all)
}

/// Runs the trials, and shows how that goes.
async fn watch(
    args: &CheckArgs,
    context: &Arc<RunContext>,
    run: &Run,
    stops: &mut Stops,
) -> anyhow::Result<Over> {
    let is_terminal = std::io::stderr().is_terminal() && !is_dumb();
    let names = run.names(context);
    let mut display = Display::new(names, &context.redactor, args.verbose, is_terminal);
    let (progress, mut told) = unbounded_channel();
    let (interrupt, interrupts) = unbounded_channel();
    let options = RunnerOptions {
        width: match args.jobs {
            Some(jobs) => Width::Any(jobs as usize),
            None => Width::Willing(args.parallel as usize),
        },
        fail_fast: args.fail_fast,
        detailed: display.is_detailed(),
    };
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
    let mut tick = tokio::time::interval(TICK);
    let finished = loop {
        tokio::select! {
            finished = &mut running => break finished,
            Some(progress) = told.recv() => display.take(&progress)?,
            () = stops.next() => {
                // The runner hears it as long as it runs.
                let _ = interrupt.send(());
            }
            _ = tick.tick() => display.tick(),
        }
    };
    while let Ok(progress) = told.try_recv() {
        display.take(&progress)?;
    }
    display.finish();
    Ok(match finished {
        Ok(finished) => Over::Finished(finished),
        Err(error) => Over::Broken(error),
    })
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
