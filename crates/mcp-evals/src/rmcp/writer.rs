//! A stdout writer that adds the top-level key of the capability.
//!
//! Its main type is [`DeclaringWriter`]. It changes only responses that declare evals in `experimental`, as
//! [`Evals`](super::Evals) makes them; every other line stays unchanged.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use serde_json::Value;
use tokio::io::{AsyncWrite, Stdin, Stdout};

use crate::capability::{CAPABILITY, Capability};
use crate::fields::ShapeFault;
use crate::splice;

/// Standard input and output, for servers with evals.
pub fn stdio() -> (Stdin, DeclaringWriter<Stdout>) {
    (
        tokio::io::stdin(),
        DeclaringWriter::new(tokio::io::stdout()),
    )
}

/// A writer of JSON lines that copies the capability from `experimental` to the top level.
#[derive(Debug)]
pub struct DeclaringWriter<W> {
    inner: W,
    /// A line that is not complete.
    line: Vec<u8>,
    /// Finished lines, and how much of them is written.
    out: Vec<u8>,
    written: usize,
}

impl<W> DeclaringWriter<W> {
    /// Wraps the writer that gets the edited messages.
    pub fn new(inner: W) -> Self {
        Self {
            inner,
            line: Vec::new(),
            out: Vec::new(),
            written: 0,
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.out.extend(declared(line));
            }
        }
    }
}

impl<W: AsyncWrite + Unpin> DeclaringWriter<W> {
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let rest = &self.out[self.written..];
            let count = ready!(Pin::new(&mut self.inner).poll_write(cx, rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += count;
        }
        self.out.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for DeclaringWriter<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // Nothing new before the old is gone, so that a slow reader slows the server.
        ready!(self.poll_drain(cx))?;
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

fn declared(line: Vec<u8>) -> Vec<u8> {
    capability_in(&line)
        .and_then(|capability| splice::declare(&line, &capability).ok())
        .unwrap_or(line)
}

/// The capability in `experimental` of a response to `initialize` or `server/discover`.
fn capability_in(line: &[u8]) -> Option<Capability> {
    let mark = br#""experimental""#;
    if !line.windows(mark.len()).any(|part| part == mark) {
        return None;
    }
    let mut message: Value = serde_json::from_slice(line).ok()?;
    let result = message.get_mut("result")?.as_object_mut()?;
    if !result.contains_key("protocolVersion") && !result.contains_key("supportedVersions") {
        return None;
    }
    let declared = result
        .get_mut("capabilities")?
        .get_mut("experimental")?
        .get_mut(CAPABILITY)?
        .take();
    let mut faults: Vec<ShapeFault> = Vec::new();
    Capability::read(declared, "", &mut faults)
}
