//! `proctor record`: a proxy between a client and a server that records every message.
//!
//! On stdio, stdout carries only the protocol. If recording fails, the session continues.

mod conclusion;
mod web;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use proctor_contain::process::ProcessExit;
use proctor_core::suite::Server;
use proctor_core::suite::server::Transport;
use proctor_record::event::{Actor, Blame, Outcome, TrialEnded};
use proctor_record::redact::Redactor;
use proctor_run::engine::Engine;
use proctor_run::engine::recording::{SessionRecording, well};
use proctor_run::trial_folder::TrialFolder;
use proctor_wire::proxy::{
    Cause, ProxyOptions, ServerStartError, SessionEnd, SessionEndReason, serve, standard,
};
use proctor_wire::recorder::Recorder;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::stops::StopSignals;
use super::{engine, environment, session};
use crate::args::RecordArgs;
use crate::exit::Exit;
use crate::output;
use crate::threads;

/// The maximum wait for the last lines on stderr.
const LAST_WORDS: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &RecordArgs) -> anyhow::Result<ExitCode> {
    let name = name_of(args);
    let server = server_of(args, &name)?;
    let engine = engine()?;
    let redactor = engine.redactor(std::slice::from_ref(&server));
    let runtime = threads::one_worker()?;
    let stops = {
        let _inside = runtime.enter();
        StopSignals::listen().context("can't listen for signals")?
    };
    let folder = TrialFolder::new(&name);
    let kept = begin(&engine, args.out.as_deref(), &name, &redactor);
    let options = ProxyOptions {
        recorder: kept
            .as_ref()
            .map_or_else(Recorder::nothing, |kept| kept.recorder.clone()),
        actor: Actor::Agent,
        inherited: environment(),
        pass: Vec::new(),
        guard: std::env::current_exe()
            .context("can't determine the path of the proctor executable")?,
        trial: folder.is_there().then(|| folder.values().clone()),
        credentials: engine.credentials().clone(),
        editor: None,
    };
    let exit = if args.url.is_none() && !args.http {
        on_stdio(&runtime, &server, &options, stops, kept, &redactor)
    } else if let Some(kept) = kept {
        let serving = web::serve(&server, &options, args, stops, kept, &redactor);
        runtime.block_on(serving)
    } else {
        // No client is connected yet, so there is no session to save.
        Ok(Exit::Inconclusive.into())
    };
    runtime.shutdown_timeout(LAST_WORDS);
    exit
}

/// The name of the recording.
fn name_of(args: &RecordArgs) -> String {
    let command = args.command.first().map(Path::new);
    let program = command.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let host = args.url.as_deref().map(|url| {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let place = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        place.rsplit('@').next().unwrap_or(place).to_owned()
    });
    let given = args.name.clone();
    given
        .or(program)
        .or(host)
        .unwrap_or_else(|| "server".to_owned())
}

/// The server, with the whole environment of this process.
fn server_of(args: &RecordArgs, name: &str) -> anyhow::Result<Server> {
    let mut server = match (&args.url, session::of_command(&args.command)?) {
        (Some(url), _) => session::at_url(url, &args.headers),
        (None, Some(server)) => server,
        (None, None) => anyhow::bail!("no server given; add `-- COMMAND…` or `--url URL`"),
    };
    name.clone_into(&mut server.name);
    if args.no_token {
        // Every local user could use the login through the proxy.
        server.auth = None;
    }
    if let Transport::Stdio { env, .. } = &mut server.transport {
        *env = environment();
    }
    Ok(server)
}

/// Starts the record. If that fails, the session runs without one.
fn begin(
    engine: &Engine,
    out: Option<&Path>,
    name: &str,
    redactor: &Redactor,
) -> Option<SessionRecording> {
    match SessionRecording::start(engine, out, name, redactor) {
        Ok(kept) => {
            say(
                &format!("recording to {}", kept.folder().display()),
                redactor,
            );
            Some(kept)
        }
        Err(error) => {
            let error = anyhow::Error::new(error).context("can't record the session");
            complain(error, redactor);
            None
        }
    }
}

/// Prints a line of Proctor itself, between those of the server's stderr.
fn say(line: &str, redactor: &Redactor) {
    let line = redactor.text(line);
    let line = proctor_core::printable::printable(&line).into_owned();
    let say = move || drop(output::message(&format!("proctor record: {line}\n")));
    within_bounds(say);
}

/// Prints an error of the recording.
fn complain(error: anyhow::Error, redactor: &Redactor) {
    let redactor = redactor.clone();
    within_bounds(move || output::error(&error, &redactor));
}

/// Writes to stderr with a timeout: a client that does not read its server's stderr must not block the
/// end of the session.
fn within_bounds(write: impl FnOnce() + Send + 'static) {
    let (done, is_done) = std::sync::mpsc::channel();
    // Without a thread the line is lost: the session matters more.
    let _ = std::thread::Builder::new().spawn(move || {
        write();
        // After the timeout, the receiver is gone.
        let _ = done.send(());
    });
    // If stderr is closed, there is no other place to report it.
    let _ = is_done.recv_timeout(LAST_WORDS);
}

fn on_stdio(
    runtime: &Runtime,
    server: &Server,
    options: &ProxyOptions,
    stops: StopSignals,
    kept: Option<SessionRecording>,
    redactor: &Redactor,
) -> anyhow::Result<ExitCode> {
    let (streams, leaving) = {
        let _inside = runtime.enter();
        let standard = standard().context("can't use stdin and stdout")?;
        (standard.client, standard.leaving)
    };
    let end = runtime.block_on(async {
        let (tell, told) = oneshot::channel();
        let leave = async {
            if told.await.is_err() {
                std::future::pending::<()>().await;
            }
            SessionEndReason::Proctor
        };
        let serving = serve(server, options, streams, Box::pin(leave));
        until_the_end(serving, stops, tell).await
    });
    if let Some(leaving) = leaving {
        // The last output of the server may still be in the pipe.
        let _ = leaving.join();
    }
    Ok(conclude(&end, kept, redactor))
}

/// Serves until the session ends. The first signal stops the server, the second ends the process.
async fn until_the_end<T>(
    mut serving: impl Future<Output = T> + Unpin,
    mut stops: StopSignals,
    tell: oneshot::Sender<()>,
) -> T {
    let mut tell = Some(tell);
    loop {
        tokio::select! {
            end = &mut serving => return end,
            () = stops.next() => match tell.take() {
                Some(tell) => drop(tell.send(())),
                None => Exit::Interrupted.at_once(),
            },
        }
    }
}

/// Ends the record, prints a summary, and gives the exit code.
fn conclude(
    end: &Result<SessionEnd, ServerStartError>,
    kept: Option<SessionRecording>,
    redactor: &Redactor,
) -> ExitCode {
    let (exit, ended, line) = match end {
        Ok(end) => {
            let (sent, received) = (end.to_server, end.to_client);
            let line = format!("{sent} messages sent, {received} received; the server {end}");
            (
                conclusion::exit_code(end.how.into()),
                trial_ended(end, kept.as_ref()),
                line,
            )
        }
        Err(error) => {
            let ended = TrialEnded {
                outcome: Outcome::Errored,
                reason: Some(error.to_string()),
                blame: Some(Blame::Server),
            };
            (Exit::Inconclusive.code(), ended, error.to_string())
        }
    };
    let Some(kept) = kept else {
        say(&line, redactor);
        return Exit::Inconclusive.into();
    };
    let folder = kept.folder().display().to_string();
    let written = kept.end(ended, exit);
    say(
        &format!("{line}; show it with `proctor result view {folder}`"),
        redactor,
    );
    match written {
        Ok(()) => exit.into(),
        Err(error) => {
            let error = anyhow::Error::new(error).context("the record is incomplete");
            complain(error, redactor);
            Exit::Inconclusive.into()
        }
    }
}

/// The outcome of the session. It failed only if the server itself ended with an error; unanswered requests
/// are in the record.
fn trial_ended(end: &SessionEnd, kept: Option<&SessionRecording>) -> TrialEnded {
    match (end.cause, end.how) {
        (Cause::Server | Cause::Closed, ProcessExit::Signalled(_) | ProcessExit::Exited(1..)) => {
            TrialEnded {
                outcome: Outcome::Failed,
                reason: Some(format!("the server {end}")),
                blame: Some(Blame::Server),
            }
        }
        _ => kept.map_or_else(well, |kept| conclusion::of(&kept.recorder).0),
    }
}
