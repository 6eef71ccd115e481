//! Evals in front of a server on stdin and stdout.
//!
//! Its main function is [`stdio`]: to a client it is the server, its end included.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;
use tokio::time::timeout;

use super::lines::{FromClient, FromServer};
use super::talk::Talk;
use super::{Desk, list_changed};
use proctor_contain::process::{Ended, Process, Spawn, SpawnError};

/// How much is read at a time.
const CHUNK: usize = 64 << 10;
/// How many answers of ours may wait for the end of a server's line, before the client has to wait too.
const ANSWERS: usize = 16;
/// How long a client may take to read the last words of a server that has ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Why a server is not served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Its process could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The system gave no pipes.
    #[error("the pipes of the server could not be opened")]
    NoPipes,
}

/// Starts a server, and is it to a client, until the server ends; gives how it ended. Whenever `changes`
/// changes, the client is told. Each time `stop` comes, the server is asked to end.
pub async fn stdio<R, W, F>(
    spawn: Spawn,
    desk: &Arc<Desk>,
    (input, output): (R, W),
    changes: watch::Receiver<()>,
    stop: impl FnMut() -> F,
) -> Result<Ended, ServeError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = ()>,
{
    let mut process = spawn.start_with_our_stderr()?;
    let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
        return Err(ServeError::NoPipes);
    };
    let talk = Arc::default();
    let (say, said) = channel(ANSWERS);
    let from_client = FromClient::new(desk, &talk);
    let inward = tokio::spawn(pass_in(input, stdin, from_client, say));
    let outward = Outward {
        from_server: FromServer::new(desk, &talk),
        talk,
        said,
        changes,
        output,
    };
    let outward = tokio::spawn(outward.pass(stdout));
    let ended = until_end(&mut process, stop).await;
    // What it said last is still on its way.
    let _ = timeout(LAST_WORDS, outward).await;
    inward.abort();
    Ok(ended)
}

async fn until_end<F: Future<Output = ()>>(
    process: &mut Process,
    mut stop: impl FnMut() -> F,
) -> Ended {
    loop {
        tokio::select! {
            ended = process.wait() => return ended,
            () = stop() => process.end(),
        }
    }
}

/// Passes on what the client says, until it says no more.
async fn pass_in(
    mut input: impl AsyncRead + Unpin,
    stdin: ChildStdin,
    mut from_client: FromClient,
    say: Sender<Vec<u8>>,
) {
    let mut stdin = Some(stdin);
    let mut chunk = vec![0; CHUNK];
    while let Ok(read @ 1..) = input.read(&mut chunk).await {
        let turn = from_client.take(&chunk[..read]);
        if let Some(open) = &mut stdin
            && open.write_all(&turn.on).await.is_err()
        {
            // The server does not listen any more; what is ours is still answered.
            stdin = None;
        }
        for answer in turn.answers {
            // Without a server there is soon nobody left at all.
            let _ = say.send(answer).await;
        }
    }
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(&from_client.end()).await;
    }
}

/// The way to the client.
struct Outward<W> {
    from_server: FromServer,
    talk: Arc<Talk>,
    /// Answers of ours.
    said: Receiver<Vec<u8>>,
    changes: watch::Receiver<()>,
    output: W,
}

enum Next {
    Server(usize),
    Ours(Vec<u8>),
    Changed,
}

impl<W: AsyncWrite + Unpin> Outward<W> {
    /// Passes on what the server says, until it says no more or nobody reads it, and says what is ours
    /// between its lines.
    async fn pass(mut self, mut stdout: ChildStdout) -> std::io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        loop {
            match self.next(&mut stdout, &mut chunk).await? {
                Next::Server(0) => break,
                Next::Server(read) => {
                    let said = self.from_server.take(&chunk[..read]);
                    let (before, after) = said.bytes.split_at(said.gap.unwrap_or_default());
                    self.write(before).await?;
                    // A server that never pauses leaves no other moment for it.
                    if said.gap.is_some() {
                        self.say_what_waits().await?;
                    }
                    self.write(after).await?;
                }
                Next::Ours(answer) => self.write_line(answer).await?,
                Next::Changed => self.tell().await?,
            }
        }
        let may_say = self.from_server.is_between_lines();
        let torn = self.from_server.end();
        if may_say {
            self.say_what_waits().await?;
        }
        self.write(&torn).await
    }

    async fn next(&mut self, stdout: &mut ChildStdout, chunk: &mut [u8]) -> std::io::Result<Next> {
        let may_say = self.from_server.is_between_lines();
        tokio::select! {
            read = stdout.read(chunk) => read.map(Next::Server),
            Some(answer) = self.said.recv(), if may_say => Ok(Next::Ours(answer)),
            Ok(()) = self.changes.changed(), if may_say => Ok(Next::Changed),
        }
    }

    async fn say_what_waits(&mut self) -> std::io::Result<()> {
        while let Ok(answer) = self.said.try_recv() {
            self.write_line(answer).await?;
        }
        if self.changes.has_changed().is_ok_and(|changed| changed) {
            self.changes.mark_unchanged();
            self.tell().await?;
        }
        Ok(())
    }

    async fn tell(&mut self) -> std::io::Result<()> {
        if self.talk.is_told() {
            self.write_line(list_changed()).await?;
        }
        Ok(())
    }

    async fn write_line(&mut self, mut line: Vec<u8>) -> std::io::Result<()> {
        line.push(b'\n');
        self.write(&line).await
    }

    async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.output.write_all(bytes).await?;
        self.output.flush().await
    }
}
