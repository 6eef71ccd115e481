//! One direction of a session.
//!
//! Its main type is [`Pump`]. Bytes pass unchanged, but only after their line is recorded, so that
//! a request precedes its response in the record. An incomplete line waits for its end for a moment.
//! A line that takes longer, or exceeds the buffer, is forwarded in parts: some readers take a message
//! without its newline.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use proctor_record::event::Direction;
use proctor_record::record::MAX_FRAME;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use super::super::framer::{FramedLine, Framer};
use super::pending_calls::PendingCallIds;
use crate::recorder::ConnectionTap;
use crate::transport::lines;

/// The size of the buffer, and so the maximum number of bytes in one read.
const CHUNK: usize = 64 << 10;

/// How long an incomplete line waits for its end. Programs that write a line in parts write them at once.
const MOMENT: Duration = Duration::from_millis(50);

/// Why a pump has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PumpEnd {
    /// The input has ended.
    Ended,
    /// The output is closed.
    Unwanted,
}

/// Forwards bytes, and records every line.
pub(super) struct Pump<R, W> {
    /// `None` once the pump has stopped.
    ends: Option<(R, W)>,
    chunk: Vec<u8>,
    /// The recorded part of the chunk that is not forwarded yet.
    left: Range<usize>,
    /// The end of the bytes in the chunk. Those after `left` are an incomplete line.
    end: usize,
    /// Since when the incomplete line waits.
    waits_since: Option<Instant>,
    kept: LineRecorder,
}

/// Records the lines of one direction.
struct LineRecorder {
    framer: Framer,
    tap: Arc<ConnectionTap>,
    direction: Direction,
    /// The number of lines that are not blank.
    messages: u64,
    awaited: Option<Arc<PendingCallIds>>,
}

impl<R, W> Pump<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    pub(super) fn new(from: R, to: W, tap: &Arc<ConnectionTap>, direction: Direction) -> Self {
        Self {
            ends: Some((from, to)),
            chunk: vec![0; CHUNK],
            left: 0..0,
            end: 0,
            waits_since: None,
            kept: LineRecorder {
                framer: Framer::new(MAX_FRAME),
                tap: tap.clone(),
                direction,
                messages: 0,
                awaited: None,
            },
        }
    }

    /// Also tracks pending calls.
    pub(super) fn watched(mut self, awaited: &Arc<PendingCallIds>) -> Self {
        self.kept.awaited = Some(awaited.clone());
        self
    }

    /// Forwards everything until the input ends, which closes both streams, or until the output is
    /// closed. Cancel-safe.
    pub(super) async fn run(&mut self) -> PumpEnd {
        let dry = self.pass_on().await;
        if dry == PumpEnd::Ended {
            self.close();
        }
        dry
    }

    /// Whether the pump still forwards.
    pub(super) fn is_open(&self) -> bool {
        self.ends.is_some()
    }

    /// Closes both streams, and records the incomplete last line.
    pub(super) fn close(&mut self) {
        if self.ends.take().is_some() {
            self.kept.end();
        }
    }

    /// Returns the number of forwarded messages.
    pub(super) fn messages(&self) -> u64 {
        self.kept.messages
    }

    /// Records the incomplete line and forwards it as well, before the pump is closed. Cancel-safe.
    pub(super) async fn flush(&mut self) {
        self.kept.end();
        self.left.end = self.end;
        // If the output is closed, the caller closes the pump next.
        let _ = self.write_left().await;
    }

    async fn pass_on(&mut self) -> PumpEnd {
        loop {
            if self.write_left().await.is_err() {
                return PumpEnd::Unwanted;
            }
            self.kept.tap.room().await;
            self.make_room();
            let Some((from, _)) = &mut self.ends else {
                return PumpEnd::Ended;
            };
            let reading = from.read(&mut self.chunk[self.end..]);
            // No timer without an incomplete line.
            let read = if self.end == 0 {
                self.waits_since = None;
                reading.await
            } else {
                let since = *self.waits_since.get_or_insert_with(Instant::now);
                let Ok(read) = timeout_at(since + MOMENT, reading).await else {
                    self.left = 0..self.end;
                    continue;
                };
                read
            };
            match read {
                Ok(read @ 1..) => self.take(read).await,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A failed read counts as the end.
                Ok(0) | Err(_) if self.end == 0 => return PumpEnd::Ended,
                Ok(0) | Err(_) => {
                    self.kept.end();
                    self.left = 0..self.end;
                }
            }
        }
    }

    /// Records the bytes that were just read, and decides which ones can be forwarded.
    async fn take(&mut self, read: usize) {
        let new = self.end..self.end + read;
        self.kept.take(&self.chunk[new.clone()]);
        self.end = new.end;
        let is_full = self.end == CHUNK;
        let line_end = memchr::memrchr(b'\n', &self.chunk[new.clone()]);
        self.left = match line_end {
            Some(line_end) => 0..new.start + line_end + 1,
            None if is_full => 0..self.end,
            None => 0..0,
        };
        if is_full {
            breathe().await;
        }
    }

    /// Moves the incomplete line to the start of the chunk.
    fn make_room(&mut self) {
        if self.left.end > 0 {
            self.chunk.copy_within(self.left.end..self.end, 0);
            self.end -= self.left.end;
            self.left = 0..0;
            self.waits_since = None;
        }
    }

    async fn write_left(&mut self) -> io::Result<()> {
        let Some((_, to)) = &mut self.ends else {
            return Ok(());
        };
        while !self.left.is_empty() {
            match to.write(&self.chunk[self.left.clone()]).await {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.left.start += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl<R, W> Pump<R, W>
where
    R: AsyncRead + Unpin,
{
    /// Reads to the end without forwarding, because the output is closed. Cancel-safe.
    pub(super) async fn last_words(&mut self) {
        (self.left, self.end) = (0..0, 0);
        if let Some((from, _)) = &mut self.ends {
            while let Ok(read @ 1..) = from.read(&mut self.chunk).await {
                self.kept.take(&self.chunk[..read]);
                if read == CHUNK {
                    breathe().await;
                }
            }
        }
    }
}

/// Yields to other tasks after a full chunk. It may hold many lines that take time to record, and a
/// flood of them must not delay the handling of a signal.
async fn breathe() {
    tokio::task::yield_now().await;
}

impl LineRecorder {
    fn take(&mut self, chunk: &[u8]) {
        let (tap, direction, messages) = (&self.tap, self.direction, &mut self.messages);
        let awaited = self.awaited.as_deref();
        self.framer.feed(chunk, |passing| {
            if let (Some(awaited), FramedLine::Whole(line)) = (awaited, &passing) {
                awaited.take(direction, line);
            }
            *messages += u64::from(keep(tap, direction, &passing));
            if let (FramedLine::Whole(line), Direction::ToClient) = (&passing, direction) {
                lines::message_in(line, &mut |noise| noise.note(tap));
            }
        });
    }

    /// Records the incomplete last line.
    fn end(&mut self) {
        let (tap, direction, messages) = (&self.tap, self.direction, &mut self.messages);
        let awaited = self.awaited.as_deref();
        self.framer.end(|passing| {
            if let (Some(awaited), FramedLine::Whole(line)) = (awaited, &passing) {
                awaited.take(direction, line);
            }
            *messages += u64::from(keep(tap, direction, &passing));
            if let (FramedLine::Whole(line), Direction::ToClient) = (&passing, direction) {
                lines::torn(line).note(tap);
            }
        });
    }
}

/// Records a line; `false` if it is blank.
fn keep(tap: &ConnectionTap, direction: Direction, passing: &FramedLine<'_>) -> bool {
    match passing {
        FramedLine::Whole(line) => {
            tap.frame(None, direction, line);
            !line.trim_ascii().is_empty()
        }
        FramedLine::Oversized(cut) => {
            tap.cut_frame(None, direction, cut);
            true
        }
    }
}

#[cfg(test)]
mod tests;
