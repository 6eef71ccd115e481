//! A server process with its connection in the record.
//!
//! Its main type is [`ServerProcess`].

use std::sync::Arc;

use proctor_core::suite::Server;
use proctor_core::suite::server::Transport;
use proctor_core::suite::step::values::FillError;
use proctor_record::event::WireKind;
use tokio::net::unix::pipe;

use super::ProxyOptions;
use super::session::{ClientInput, Output};
use crate::edit::Editor;
use crate::edit::stdio::EditedPipes;
use crate::recorder::ConnectionTap;
use proctor_contain::process::{Process, Spawn, SpawnError};

/// A server process that was just started for one client.
pub(crate) struct ServerProcess {
    /// Its connection in the record. The owner closes it with the reason.
    pub(crate) tap: Arc<ConnectionTap>,
    /// The process; dropping it stops it.
    pub(crate) process: Process,
    pub(crate) stdin: Output,
    pub(crate) stdout: ClientInput,
}

/// Why a server process could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerStartError {
    /// The process did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A template has no value.
    #[error(transparent)]
    Template(#[from] FillError),
    /// The server has a URL, not a command.
    #[error("the server `{0}` has a URL, not a command")]
    NoCommand(String),
    /// The system provided no pipes.
    #[error("can't open the pipes of the server `{0}`")]
    NoPipes(String),
}

impl ServerProcess {
    /// Starts a server process. A failure is recorded too.
    pub(crate) fn start(server: &Server, options: &ProxyOptions) -> Result<Self, ServerStartError> {
        let tap = open(server, options);
        let spawned = spawn(server, options).and_then(|spawn| Ok(spawn.start()?));
        Self::of(server, options, tap, spawned)
    }

    /// Starts a server process whose stderr the caller must read.
    pub(crate) fn start_with_stderr(
        server: &Server,
        options: &ProxyOptions,
    ) -> Result<(Self, pipe::Receiver), ServerStartError> {
        let tap = open(server, options);
        let spawned = spawn(server, options).and_then(|spawn| Ok(spawn.start_with_stderr()?));
        let (process, stderr) = match spawned {
            Ok((process, stderr)) => (Ok(process), Some(stderr)),
            Err(error) => (Err(error), None),
        };
        let started = Self::of(server, options, tap, process)?;
        let stderr = stderr.ok_or_else(|| ServerStartError::NoPipes(server.name.clone()))?;
        Ok((started, stderr))
    }

    fn of(
        server: &Server,
        options: &ProxyOptions,
        tap: Arc<ConnectionTap>,
        spawned: Result<Process, ServerStartError>,
    ) -> Result<Self, ServerStartError> {
        let no_pipes = || ServerStartError::NoPipes(server.name.clone());
        let piped = spawned.and_then(|mut process| {
            let pipes = process.stdin.take().zip(process.stdout.take());
            let (stdin, stdout) = pipes.ok_or_else(no_pipes)?;
            Ok((process, edited(options.editor.as_ref(), stdin, stdout)))
        });
        match piped {
            Ok((process, (stdin, stdout))) => Ok(Self {
                tap,
                process,
                stdin,
                stdout,
            }),
            Err(error) => {
                tap.close(error.to_string(), None);
                Err(error)
            }
        }
    }
}

/// Returns the pipes of a server, edited if there is an editor.
fn edited(
    editor: Option<&Arc<dyn Editor>>,
    stdin: pipe::Sender,
    stdout: pipe::Receiver,
) -> (Output, ClientInput) {
    match editor {
        None => (Box::new(stdin), Box::new(stdout)),
        Some(editor) => {
            let EditedPipes { stdin, stdout } = EditedPipes::new(editor, stdin, stdout);
            (Box::new(stdin), Box::new(stdout))
        }
    }
}

fn open(server: &Server, options: &ProxyOptions) -> Arc<ConnectionTap> {
    let ProxyOptions {
        recorder, actor, ..
    } = options;
    let recorder = recorder.clone().writing_through();
    recorder.open(&server.name, *actor, WireKind::Stdio, &server.written)
}

fn spawn(server: &Server, options: &ProxyOptions) -> Result<Spawn, ServerStartError> {
    let Transport::Stdio {
        command,
        args,
        env,
        folder,
        cwd: _,
    } = server.transport.in_trial(options.trial.as_ref())?
    else {
        return Err(ServerStartError::NoCommand(server.name.clone()));
    };
    let spawn = Spawn::server(&command, &args, &folder, &options.guard);
    Ok(spawn.with_environment(&options.inherited, &env, &options.pass))
}
