//! `proctor evals run`: runs the evals that servers ship, with consent.

use proctor_run::engine::offers::EvalSelection;
use proctor_run::engine::options::{ConsentTerms, EvalsOptions};

use super::servers;
use crate::args::EvalsRunArgs;
use crate::commands::attended::InteractiveHost;
use crate::commands::check::{run_options, run_prepared};
use crate::commands::{engine, prepare_with, refused};
use crate::exit::Exit;

pub(super) fn run(args: &EvalsRunArgs) -> anyhow::Result<Exit> {
    start(args).map_err(|error| refused::report(&args.run, "evals", error))
}

fn start(args: &EvalsRunArgs) -> anyhow::Result<Exit> {
    let servers = servers::servers(&args.servers)?;
    let engine = engine()?;
    let host = InteractiveHost::new(engine.redactor(&servers));
    let (run, base) = run_options(&args.run)?;
    let options = EvalsOptions {
        servers,
        own_evals: args.evals.clone(),
        choice: EvalSelection {
            level: args.level.map(Into::into),
            ids: args.ids.clone(),
            only_read_only: args.only_read_only,
        },
        model: args.model.clone(),
        judge: args.judge.clone(),
        pass_env: args.servers.pass_env.clone(),
        runs: args.runs,
        max_turns: args.max_turns,
        task_timeout: args.task_timeout,
        timeouts: args.servers.timeouts.timeouts(),
        consent: ConsentTerms {
            yes: args.yes,
            file: args.consent.clone(),
        },
        run,
    };
    let format = args.run.output.output;
    let prepared = prepare_with(&host, format, engine.prepare_evals(&options, &host))?;
    // The plan holds the verdicts of the base.
    drop(base);
    run_prepared(&args.run, &engine, prepared, None, &host)
}
