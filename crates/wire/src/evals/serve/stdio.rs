//! Evals in front of a server on stdin and stdout.
//!
//! Its main function is [`stdio`]: to a client it is the server, its end included.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

use super::EvalsResponder;
use crate::edit::Editor;
use crate::edit::stdio::Lanes;
use proctor_contain::process::{Process, ProcessExit, Spawn, SpawnError};

/// How long a client may take to read the last words of a server that has ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Why a server is not served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Its process could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The system gave no pipes.
    #[error("can't open the pipes of the server")]
    NoPipes,
}

/// Starts a server, and is it to a client, until the server ends; gives how it ended. Each time `stop`
/// comes, the server is asked to end.
pub async fn stdio<R, W, F>(
    spawn: Spawn,
    desk: &Arc<EvalsResponder>,
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
    let editor: Arc<dyn Editor> = desk.clone();
    let lanes = Lanes::start(&editor, client, (stdin, stdout));
    let ended = until_end(&mut process, stop).await;
    // What it said last is still on its way.
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
