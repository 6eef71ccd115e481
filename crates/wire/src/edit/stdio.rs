//! Hosts an editor between a client and a server on stdio.
//!
//! Its main type is [`Lanes`]. A client can't tell it from the server, including the end of its
//! output.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::Editor;
use super::conversation::Conversation;
use super::lines::{ClientLines, ServerLines, one_line};
use super::output::Part;

/// The maximum number of bytes in one read.
const CHUNK: usize = 64 << 10;
/// How many of our responses may wait for the end of a server line before the client has to wait.
const ANSWERS: usize = 16;

/// Both directions of a conversation. Each ends with its input stream.
pub(crate) struct Lanes {
    inward: JoinHandle<()>,
    outward: JoinHandle<std::io::Result<()>>,
}

/// The edited streams that replace a server's stdin and stdout.
pub(crate) struct EditedPipes {
    pub(crate) stdin: DuplexStream,
    pub(crate) stdout: DuplexStream,
}

impl EditedPipes {
    /// Puts an editor between a server's pipes and their user, such as a recorder. Must be called
    /// within a tokio runtime.
    pub(crate) fn new(
        editor: &Arc<dyn Editor>,
        stdin: impl AsyncWrite + Unpin + Send + 'static,
        stdout: impl AsyncRead + Unpin + Send + 'static,
    ) -> Self {
        let (near_stdin, input) = duplex(CHUNK);
        let (near_stdout, output) = duplex(CHUNK);
        // Each lane ends when its input has ended, or when its output is closed.
        Lanes::start(editor, (input, output), (stdin, stdout));
        Self {
            stdin: near_stdin,
            stdout: near_stdout,
        }
    }
}

impl Lanes {
    /// Forwards the messages of a client and a server as the editor decides. Must be called within
    /// a tokio runtime.
    pub(crate) fn start(
        editor: &Arc<dyn Editor>,
        (input, output): (
            impl AsyncRead + Unpin + Send + 'static,
            impl AsyncWrite + Unpin + Send + 'static,
        ),
        (stdin, stdout): (
            impl AsyncWrite + Unpin + Send + 'static,
            impl AsyncRead + Unpin + Send + 'static,
        ),
    ) -> Self {
        let conversation = Conversation::begin(editor);
        let (say, ours) = channel(ANSWERS);
        let lines = ClientLines::new(&conversation);
        let outward = ClientWriter {
            lines: ServerLines::new(&conversation),
            conversation,
            ours,
            changes: editor.changes(),
            output,
        };
        Self {
            inward: tokio::spawn(pass_in(input, stdin, lines, say)),
            outward: tokio::spawn(outward.pass(stdout)),
        }
    }

    /// Waits until the server's last messages are forwarded, at most for `patience`, and ends.
    pub(crate) async fn finish(self, patience: Duration) {
        let _ = timeout(patience, self.outward).await;
        self.inward.abort();
    }
}

/// Forwards the client's input until its end.
async fn pass_in(
    mut input: impl AsyncRead + Unpin,
    stdin: impl AsyncWrite + Unpin,
    mut lines: ClientLines,
    say: Sender<Vec<u8>>,
) {
    let mut stdin = Some(stdin);
    let mut chunk = vec![0; CHUNK];
    while let Ok(read @ 1..) = input.read(&mut chunk).await {
        let output = lines.take(&chunk[..read]);
        if let Some(open) = &mut stdin
            && write_parts(open, output.on.parts()).await.is_err()
        {
            // The server no longer reads; requests that we answer still get a response.
            stdin = None;
        }
        for answer in output.answers {
            // Without a server, the client will leave soon too.
            let _ = say.send(answer).await;
        }
    }
    if let Some(mut stdin) = stdin {
        let _ = write(&mut stdin, &lines.end()).await;
    }
}

async fn write_parts(to: &mut (impl AsyncWrite + Unpin), parts: Vec<Part>) -> std::io::Result<()> {
    for part in parts {
        match part {
            Part::Bytes(bytes) => write(to, &bytes).await?,
            Part::Wait(time) => sleep(time).await,
            Part::Gap => {}
        }
    }
    Ok(())
}

async fn write(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> std::io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    to.write_all(bytes).await?;
    to.flush().await
}

/// Writes the server's messages and our own to the client.
struct ClientWriter<W> {
    lines: ServerLines,
    conversation: Arc<Conversation>,
    /// Responses of the editor, which the server never sees.
    ours: Receiver<Vec<u8>>,
    changes: Option<watch::Receiver<()>>,
    output: W,
}

enum StdioEvent {
    Server(usize),
    Ours(Vec<u8>),
    Changed,
}

impl<W: AsyncWrite + Unpin> ClientWriter<W> {
    /// Forwards the server's output until its end or until the client stops reading, and inserts
    /// our own messages between its lines.
    async fn pass(mut self, mut stdout: impl AsyncRead + Unpin) -> std::io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        loop {
            match self.next(&mut stdout, &mut chunk).await? {
                StdioEvent::Server(0) => break,
                StdioEvent::Server(read) => {
                    for part in self.lines.take(&chunk[..read]).parts() {
                        match part {
                            Part::Bytes(bytes) => write(&mut self.output, &bytes).await?,
                            Part::Wait(time) => sleep(time).await,
                            // A server that never pauses leaves no other opportunity.
                            Part::Gap => self.say_what_waits().await?,
                        }
                    }
                }
                StdioEvent::Ours(answer) => self.write_line(answer).await?,
                StdioEvent::Changed => self.tell().await?,
            }
        }
        let may_say = self.lines.is_between_lines();
        let torn = self.lines.end();
        if may_say {
            self.say_what_waits().await?;
        }
        write(&mut self.output, &torn).await
    }

    async fn next(
        &mut self,
        stdout: &mut (impl AsyncRead + Unpin),
        chunk: &mut [u8],
    ) -> std::io::Result<StdioEvent> {
        let may_say = self.lines.is_between_lines();
        tokio::select! {
            read = stdout.read(chunk) => read.map(StdioEvent::Server),
            Some(answer) = self.ours.recv(), if may_say => Ok(StdioEvent::Ours(answer)),
            true = changed(&mut self.changes), if may_say => Ok(StdioEvent::Changed),
        }
    }

    async fn say_what_waits(&mut self) -> std::io::Result<()> {
        while let Ok(answer) = self.ours.try_recv() {
            self.write_line(answer).await?;
        }
        if let Some(changes) = &mut self.changes
            && changes.has_changed().is_ok_and(|changed| changed)
        {
            changes.mark_unchanged();
            self.tell().await?;
        }
        Ok(())
    }

    async fn tell(&mut self) -> std::io::Result<()> {
        match self.conversation.news() {
            Some(news) => self.write_line(news).await,
            None => Ok(()),
        }
    }

    async fn write_line(&mut self, message: Vec<u8>) -> std::io::Result<()> {
        let mut line = one_line(message);
        line.push(b'\n');
        write(&mut self.output, &line).await
    }
}

/// Waits for a change, and returns whether there was one. Never returns without a sender.
async fn changed(changes: &mut Option<watch::Receiver<()>>) -> bool {
    match changes {
        Some(changes) => changes.changed().await.is_ok(),
        None => false,
    }
}

#[cfg(test)]
mod tests;
