//! `proctor evals serve`: evals in front of a server that ships none.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use proctor_contain::process::{GRACE, ProcessExit, Spawn};
use proctor_core::printable::printable;
use proctor_core::problem::Problems;
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
    // Before the file is read: what changes from now on is seen.
    let read = stamp(&path);
    let mut problems = Problems::default();
    let suite = load(&path, &mut problems);
    output::message(&sorted(&mut problems))?;
    let Some(suite) = suite else {
        output::message(&format!("{}: {}\n", shown(&path), tally(&problems)))?;
        return Ok(Exit::Usage);
    };
    let desk = Arc::new(EvalsResponder::new(suite, Box::new(teller(&path))));
    let runtime = threads::one_worker()?;
    let done = runtime.block_on(async {
        let stops = Mutex::new(StopSignals::listen().context("can't listen for signals")?);
        tokio::spawn(watch(path, read, desk.clone()));
        let mut stop = async || stops.lock().await.next().await;
        if let Some(url) = &args.url {
            return at(url, args, &desk, &mut stop).await;
        }
        let Some(spawn) = spawn(args)? else {
            bail!("which server? give `-- COMMAND…` or `--url URL`");
        };
        let streams = (tokio::io::stdin(), tokio::io::stdout());
        let ended = stdio(spawn, &desk, streams, stop).await?;
        Ok(as_the_server(ended))
    });
    // A thread that waits for more input can't be told to end.
    runtime.shutdown_background();
    done
}

/// Serves evals in front of a server that listens.
async fn at(
    url: &str,
    args: &EvalsServeArgs,
    desk: &Arc<EvalsResponder>,
    stop: &mut impl AsyncFnMut(),
) -> anyhow::Result<Exit> {
    let admission = if args.no_token {
        Admission::Open
    } else {
        Admission::Path
    };
    let server = at_url(url, &args.headers);
    let open = match http(&server, desk, args.port, admission).await {
        Ok(open) => open,
        Err(error @ ProxyError::Listen { .. }) => {
            output::message(&format!("error: {error}\n"))?;
            return Ok(Exit::Inconclusive);
        }
        Err(error) => {
            // The address may be in it, with a password.
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

/// The server, as whoever starts us would have started it.
fn spawn(args: &EvalsServeArgs) -> anyhow::Result<Option<Spawn>> {
    let Some((program, rest)) = args.command.split_first() else {
        return Ok(None);
    };
    let guard = std::env::current_exe().context("can't tell where Proctor is")?;
    Ok(Some(Spawn {
        // The Proctor that is running, wherever it is: it has a server of its own.
        program: match program.as_str() {
            "proctor" => guard.clone().into(),
            other => other.into(),
        },
        args: rest.iter().map(Into::into).collect(),
        env: environment(),
        folder: std::env::current_dir().context("can't tell the working folder")?,
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

/// Says on stderr what whoever serves evals should know.
fn teller(path: &Path) -> impl Fn(&ServeNotice) + Send + Sync + use<> {
    let path = shown(path);
    move |notice| {
        let text = match notice {
            ServeNotice::OwnEvals => {
                format!("warning: the server ships evals of its own; `{path}` takes their place\n")
            }
            ServeNotice::Undeclared(error) => format!(
                "warning: the server's answer to the handshake can't declare evals: {error}\n"
            ),
            ServeNotice::Unreachable(why) => {
                format!("warning: the server does not answer: {}\n", printable(why))
            }
            ServeNotice::Replaced { evals, problems } => {
                let mut text = drawn(problems);
                text.push_str(&format!(
                    "{path}: {} from now on\n",
                    counted(*evals, "eval")
                ));
                text
            }
            ServeNotice::Kept(problems) => {
                let mut text = drawn(problems);
                text.push_str(&format!(
                    "{path}: {}; the evals stay as they were\n",
                    tally(problems)
                ));
                text
            }
        };
        // Nothing depends on whether somebody reads it.
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
