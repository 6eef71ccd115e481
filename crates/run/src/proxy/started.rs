//! A process of a server, with its place in the record.
//!
//! Its main type is [`Started`].

use std::sync::Arc;

use proctor_core::event::Wire;
use proctor_core::suite::Server;
use proctor_core::suite::server::Transport;
use tokio::process::{ChildStdin, ChildStdout};

use super::ProxyOptions;
use crate::process::{Process, Spawn, SpawnError};
use crate::recorder::Tap;

/// A server that was just started for one client.
pub(crate) struct Started {
    /// Its connection in the record. Whoever has it closes it, with the reason.
    pub(crate) tap: Arc<Tap>,
    /// The process; dropping it ends it.
    pub(crate) process: Process,
    /// What it reads.
    pub(crate) stdin: ChildStdin,
    /// What it writes.
    pub(crate) stdout: ChildStdout,
}

/// Why there is no process.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The server is none that is started.
    #[error("the server `{0}` is reached by an address, not started")]
    NoCommand(String),
    /// The system gave no pipes.
    #[error("the pipes of the server `{0}` could not be opened")]
    NoPipes(String),
}

impl Started {
    /// Starts a process of the server. A failure is in the record too.
    pub(crate) fn start(server: &Server, options: &ProxyOptions) -> Result<Self, StartError> {
        let ProxyOptions {
            recorder, actor, ..
        } = options;
        let tap = recorder.open(&server.name, *actor, Wire::Stdio, &server.written);
        let started = spawn(server, options);
        match started {
            Ok((process, stdin, stdout)) => Ok(Self {
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

fn spawn(
    server: &Server,
    options: &ProxyOptions,
) -> Result<(Process, ChildStdin, ChildStdout), StartError> {
    let Transport::Stdio {
        command,
        args,
        env,
        folder,
    } = &server.transport
    else {
        return Err(StartError::NoCommand(server.name.clone()));
    };
    let spawn = Spawn::server(command, args, folder, &options.guard);
    let mut process = spawn
        .with_environment(&options.inherited, env, &options.pass)
        .start()?;
    match (process.stdin.take(), process.stdout.take()) {
        (Some(stdin), Some(stdout)) => Ok((process, stdin, stdout)),
        _ => Err(StartError::NoPipes(server.name.clone())),
    }
}
