//! Serves evals in front of a server on stdin and stdout.
//!
//! Its main function is [`stdio`]. A client can't tell it from the server, including its exit.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

use super::EvalsResponder;
use crate::edit::Editor;
use crate::edit::stdio::Lanes;
use proctor_contain::process::{Process, ProcessExit, Spawn, SpawnError};

/// How long a client may take to read the last messages of a server that has ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Why a server can't be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The process did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The system provided no pipes.
    #[error("can't open the pipes of the server")]
    NoPipes,
}

/// Starts a server and serves it to a client until the server ends; returns how it ended. Each time
/// `stop` resolves, the server is asked to end.
pub async fn stdio<R, W, F>(
    spawn: Spawn,
    responder: &Arc<EvalsResponder>,
    client: (R, W),
    stop: impl FnMut() -> F,
) -> Result<ProcessExit, ServeError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = ()>,
{
    let mut process = spawn.start_with_our_stderr()?;
    let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
        return Err(ServeError::NoPipes);
    };
    let editor: Arc<dyn Editor> = responder.clone();
    let lanes = Lanes::start(&editor, client, (stdin, stdout));
    let ended = until_end(&mut process, stop).await;
    // The last messages of the server may not be forwarded yet.
    lanes.finish(LAST_WORDS).await;
    Ok(ended)
}

async fn until_end<F: Future<Output = ()>>(
    process: &mut Process,
    mut stop: impl FnMut() -> F,
) -> ProcessExit {
    loop {
        tokio::select! {
            ended = process.wait() => return ended,
            () = stop() => process.end(),
        }
    }
}
