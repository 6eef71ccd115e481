//! The servers of an `evals` command, and the options to connect to them.

use std::time::Duration;

use anyhow::{Context, bail};
use proctor_core::suite::Server;
use proctor_record::event::Actor;
use proctor_record::redact::Redactor;
use proctor_run::trial_folder::TrialFolder;
use proctor_wire::client::ConnectOptions;
use proctor_wire::recorder::Recorder;

use crate::args::EvalServersArgs;
use crate::commands::engine;
use crate::commands::session::{CommandOutcome, at_url, from_config, named, of_command, speaking};
use crate::commands::stops::StopSignals;
use crate::exit::Exit;
use crate::output;
use crate::threads;

/// The servers that the flags name, with the protocol that `--protocol` pins.
pub(crate) fn servers(args: &EvalServersArgs) -> anyhow::Result<Vec<Server>> {
    let servers = named_servers(args)?.into_iter();
    Ok(servers
        .map(|server| speaking(server, args.protocol))
        .collect())
}

fn named_servers(args: &EvalServersArgs) -> anyhow::Result<Vec<Server>> {
    if let Some(url) = &args.url {
        return Ok(vec![at_url(url, &args.headers)]);
    }
    if let Some(server) = of_command(&args.command)? {
        return Ok(vec![server]);
    }
    let Some(config) = &args.config else {
        bail!("no server given; add `-- COMMAND…`, `--url URL` or `--config FILE`");
    };
    let servers = from_config(config)?;
    if servers.is_empty() {
        bail!("`{}` has no enabled server", config.display());
    }
    if args.names.is_empty() {
        return Ok(servers);
    }
    let mut chosen: Vec<Server> = Vec::new();
    for name in &args.names {
        if !chosen.iter().any(|server| &server.name == name) {
            chosen.push(named(&servers, name, config)?);
        }
    }
    Ok(chosen)
}

/// The servers of a command, with the options to connect to them.
pub(super) struct Visit<'a> {
    pub(super) servers: &'a [Server],
    pub(super) options: &'a ConnectOptions,
    pub(super) redactor: &'a Redactor,
}

/// Runs a command that connects to servers without a record. Ctrl-C stops it.
pub(super) fn visit<F>(args: &EvalServersArgs, run: F) -> anyhow::Result<Exit>
where
    F: AsyncFnOnce(Visit<'_>) -> anyhow::Result<CommandOutcome>,
{
    let servers = servers(args)?;
    let engine = engine()?;
    let redactor = engine.redactor(&servers);
    let folder = TrialFolder::new("evals");
    let options = engine.connect_options(
        Actor::Preflight,
        Recorder::nothing().redacting(&redactor),
        &args.pass_env,
        args.timeouts.timeouts(),
        &folder,
    );
    let runtime = threads::one_worker()?;
    let done = runtime.block_on(async {
        let mut stops = StopSignals::listen().context("can't listen for signals")?;
        let visit = Visit {
            servers: &servers,
            options: &options,
            redactor: &redactor,
        };
        let work = async {
            match folder.prepare(None).await {
                Ok(()) => run(visit).await,
                Err(error) => Ok(CommandOutcome::because(
                    Exit::Inconclusive,
                    error.to_string(),
                )),
            }
        };
        tokio::select! {
            done = work => done,
            () = stops.next() => Ok(CommandOutcome::because(Exit::Interrupted, "interrupted")),
        }
    });
    // Guards end the processes; the runtime waits for them while it shuts down.
    runtime.shutdown_timeout(Duration::from_secs(5));
    let done = done?;
    if let Some(reason) = &done.reason {
        let reason = redactor.text(reason);
        output::message(&format!("error: {}\n", output::printable_lines(&reason)))?;
    }
    Ok(done.exit)
}
