//! `proctor record`: stands between a client and a server, and keeps every message.
//!
//! On stdio, stdout carries the protocol and nothing else. Whatever becomes of the record, the session
//! goes on.

mod conclusion;
mod web;

use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use proctor_contain::process::ProcessExit;
use proctor_core::event::{Actor, Blame, Outcome, TrialEnded};
use proctor_core::redact::Redactor;
use proctor_core::suite::Server;
use proctor_core::suite::server::Transport;
use proctor_run::engine::Engine;
use proctor_run::engine::recording::{SessionRecording, well};
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

/// How long what was written to stderr last may take to leave.
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
    let kept = begin(&engine, args.out.as_deref(), &name, &redactor);
    let options = ProxyOptions {
        recorder: kept
            .as_ref()
            .map_or_else(Recorder::nothing, |kept| kept.recorder.clone()),
        actor: Actor::Agent,
        inherited: environment(),
        pass: Vec::new(),
        guard: std::env::current_exe().context("can't tell where Proctor is")?,
        editor: None,
    };
    let exit = if args.url.is_none() && !args.http {
        on_stdio(&runtime, &server, &options, stops, kept, &redactor)
    } else if let Some(kept) = kept {
        let serving = web::serve(&server, &options, args, stops, kept, &redactor);
        runtime.block_on(serving)
    } else {
        // Here nobody waits for an answer yet.
        Ok(Exit::Inconclusive.into())
    };
    runtime.shutdown_timeout(LAST_WORDS);
    exit
}

/// What a recording is called.
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

/// The server, which gets all that this process has.
fn server_of(args: &RecordArgs, name: &str) -> anyhow::Result<Server> {
    let mut server = match (&args.url, session::of_command(&args.command)?) {
        (Some(url), _) => session::at_url(url, &args.headers),
        (None, Some(server)) => server,
        (None, None) => anyhow::bail!("which server? give `-- COMMAND…` or `--url URL`"),
    };
    name.clone_into(&mut server.name);
    if let Transport::Stdio { env, .. } = &mut server.transport {
        *env = environment();
    }
    Ok(server)
}

/// Starts the record. A session without one is better than none.
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
            let error = anyhow::Error::new(error).context("the session is not recorded");
            complain(error, redactor);
            None
        }
    }
}

/// A line that is no part of the server's own stderr.
fn say(line: &str, redactor: &Redactor) {
    let line = redactor.text(line);
    let line = proctor_core::printable::printable(&line).into_owned();
    let say = move || drop(output::message(&format!("proctor record: {line}\n")));
    within_bounds(say);
}

/// Why the record is not what it should be.
fn complain(error: anyhow::Error, redactor: &Redactor) {
    let redactor = redactor.clone();
    within_bounds(move || output::error(&error, &redactor));
}

/// Writes to stderr, but does not wait for ever: a client that does not read its server's stderr must
/// not keep the session from ending.
fn within_bounds(write: impl FnOnce() + Send + 'static) {
    let (done, is_done) = std::sync::mpsc::channel();
    // Without a thread it is not said: the session matters more.
    let _ = std::thread::Builder::new().spawn(move || {
        write();
        // Nobody waits any more if it took too long.
        let _ = done.send(());
    });
    // There is nowhere left to say that even this failed.
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
        let serving = pin!(serve(server, options, streams, leave));
        until_the_end(serving, stops, tell).await
    });
    if let Some(leaving) = leaving {
        // What the server wrote last is on its way to a file or a terminal.
        let _ = leaving.join();
    }
    Ok(conclude(&end, kept, redactor))
}

/// The first signal ends the server, the second one everything.
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

/// Ends the record, says how all went, and gives the exit code.
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
        &format!("{line}; see it with `proctor result view {folder}`"),
        redactor,
    );
    match written {
        Ok(()) => exit.into(),
        Err(error) => {
            let error = anyhow::Error::new(error).context("the record is not complete");
            complain(error, redactor);
            Exit::Inconclusive.into()
        }
    }
}

/// Only a server that went wrong by itself makes a session one that failed; what it owes its client is in
/// the record.
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
