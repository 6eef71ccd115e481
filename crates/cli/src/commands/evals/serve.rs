//! `proctor evals serve`: a proxy that adds evals to a server.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use proctor_contain::process::{GRACE, ProcessExit, Spawn};
use proctor_core::printable::printable;
use proctor_record::problem::Problems;
use proctor_wire::evals::serve::{EvalsResponder, ServeNotice, http, load, stamp, stdio, watch};
use proctor_wire::proxy::{Admission, ProxyError};
use serde_json::json;
use tokio::sync::Mutex;

use crate::args::{EvalsServeArgs, OutputFormat};
use crate::commands::engine;
use crate::commands::session::at_url;
use crate::commands::stops::StopSignals;
use crate::commands::{counted, drawn, environment, tally};
use crate::exit::Exit;
use crate::output;
use crate::threads;

pub(super) fn run(args: &EvalsServeArgs) -> anyhow::Result<Exit> {
    let path = args.evals.clone();
    // Before the file is read, so that no later change is missed.
    let read = stamp(&path);
    let mut problems = Problems::default();
    let suite = load(&path, &mut problems);
    output::message(&sorted(&mut problems))?;
    let Some(suite) = suite else {
        output::message(&format!("{}: {}\n", shown(&path), tally(&problems)))?;
        return Ok(Exit::Usage);
    };
    let responder = Arc::new(EvalsResponder::new(suite, Box::new(teller(&path))));
    let runtime = threads::one_worker()?;
    let done = runtime.block_on(async {
        let stops = Mutex::new(StopSignals::listen().context("can't listen for signals")?);
        tokio::spawn(watch(path, read, responder.clone()));
        let mut stop = async || stops.lock().await.next().await;
        if let Some(url) = &args.url {
            return at(url, args, &responder, &mut stop).await;
        }
        let Some(spawn) = spawn(args)? else {
            bail!("no server given; add `-- COMMAND…` or `--url URL`");
        };
        let streams = (tokio::io::stdin(), tokio::io::stdout());
        let ended = stdio(spawn, &responder, streams, stop).await?;
        Ok(as_the_server(ended))
    });
    // A thread that waits for stdin can't be stopped.
    runtime.shutdown_background();
    done
}

/// Serves evals in front of a server with a URL.
async fn at(
    url: &str,
    args: &EvalsServeArgs,
    responder: &Arc<EvalsResponder>,
    stop: &mut impl AsyncFnMut(),
) -> anyhow::Result<Exit> {
    let admission = if args.no_token {
        Admission::Open
    } else {
        Admission::Path
    };
    let server = at_url(url, &args.headers);
    let open = match http(&server, responder, args.port, admission).await {
        Ok(open) => open,
        Err(error @ ProxyError::Listen { .. }) => {
            output::message(&format!("error: {error}\n"))?;
            return Ok(Exit::Inconclusive);
        }
        Err(error) => {
            // The error may contain the URL, with a password.
            let redactor = engine()?.redactor(std::slice::from_ref(&server));
            output::error(&error.into(), &redactor);
            return Ok(Exit::Usage);
        }
    };
    match args.output.output {
        OutputFormat::Text => output::result(&format!("{}\n", open.url()))?,
        OutputFormat::Json => output::json(&json!({"url": open.url()}))?,
    }
    stop().await;
    open.close().await;
    Ok(Exit::Ok)
}

/// The command of the server, with the environment and working directory of this process.
fn spawn(args: &EvalsServeArgs) -> anyhow::Result<Option<Spawn>> {
    let Some((program, rest)) = args.command.split_first() else {
        return Ok(None);
    };
    let guard =
        std::env::current_exe().context("can't determine the path of the proctor executable")?;
    Ok(Some(Spawn {
        // `proctor` is this executable, which has a demo server.
        program: match program.as_str() {
            "proctor" => guard.clone().into(),
            other => other.into(),
        },
        args: rest.iter().map(Into::into).collect(),
        env: environment(),
        folder: std::env::current_dir().context("can't determine the working directory")?,
        guard,
        grace: GRACE,
    }))
}

fn as_the_server(ended: ProcessExit) -> Exit {
    let code = match ended {
        ProcessExit::Exited(code) => code,
        ProcessExit::Signalled(signal) => 128 + signal,
        ProcessExit::Unknown => return Exit::Inconclusive,
    };
    Exit::AsTheServer(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
}

/// Prints notices to stderr.
fn teller(path: &Path) -> impl Fn(&ServeNotice) + Send + Sync + use<> {
    let path = shown(path);
    move |notice| {
        let text = match notice {
            ServeNotice::OwnEvals => {
                format!("warning: the server ships its own evals; `{path}` replaces them\n")
            }
            ServeNotice::Undeclared(error) => format!(
                "warning: can't declare evals in the server's handshake response: {error}\n"
            ),
            ServeNotice::Unreachable(why) => {
                format!("warning: the server does not answer: {}\n", printable(why))
            }
            ServeNotice::Replaced { evals, problems } => {
                let mut text = drawn(problems);
                text.push_str(&format!("{path}: reloaded, {}\n", counted(*evals, "eval")));
                text
            }
            ServeNotice::Kept(problems) => {
                let mut text = drawn(problems);
                text.push_str(&format!(
                    "{path}: {}; still serving the old evals\n",
                    tally(problems)
                ));
                text
            }
        };
        // A closed stderr is no reason to fail.
        let _ = output::message(&text);
    }
}

fn sorted(problems: &mut Problems) -> String {
    problems.sort();
    drawn(problems)
}

fn shown(path: &Path) -> String {
    printable(&path.display().to_string()).into_owned()
}
