//! One direction of a session.
//!
//! Its main type is [`Pump`]. Every byte goes on as it came, and no line before it is in the record:
//! so a request stands before its answer there.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use proctor_core::event::{Direction, FindingKind};
use proctor_core::record::MAX_FRAME;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::super::framer::{Framer, Passing};
use crate::recorder::Tap;
use crate::transport::stdio::{torn_line, without_noise};

/// How much is passed on at once.
const CHUNK: usize = 64 << 10;

/// Why nothing more is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dry {
    /// There is nothing more to read.
    Ended,
    /// Nobody takes it.
    Unwanted,
}

/// Passes on what comes, and keeps every line of it.
pub(super) struct Pump<R, W> {
    /// Both are gone once nothing more is passed on.
    ends: Option<(R, W)>,
    chunk: Vec<u8>,
    /// What of the chunk is still to be passed on.
    left: Range<usize>,
    kept: Kept,
}

/// What goes into the record.
struct Kept {
    framer: Framer,
    tap: Arc<Tap>,
    direction: Direction,
    /// How many lines there were that were not blank.
    messages: u64,
}

impl<R, W> Pump<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    pub(super) fn new(from: R, to: W, tap: &Arc<Tap>, direction: Direction) -> Self {
        Self {
            ends: Some((from, to)),
            chunk: vec![0; CHUNK],
            left: 0..0,
            kept: Kept {
                framer: Framer::new(MAX_FRAME),
                tap: tap.clone(),
                direction,
                messages: 0,
            },
        }
    }

    /// Passes everything on until there is nothing more: then both streams are closed, or until
    /// nobody takes it. May be dropped and called again.
    pub(super) async fn run(&mut self) -> Dry {
        let dry = self.pass_on().await;
        if dry == Dry::Ended {
            self.close();
        }
        dry
    }

    /// Whether it still passes something on.
    pub(super) fn is_open(&self) -> bool {
        self.ends.is_some()
    }

    /// Closes both streams. What was cut short is recorded.
    pub(super) fn close(&mut self) {
        if self.ends.take().is_some() {
            self.kept.end();
        }
    }

    /// How many messages were passed on.
    pub(super) fn messages(&self) -> u64 {
        self.kept.messages
    }

    async fn pass_on(&mut self) -> Dry {
        let Some((from, to)) = &mut self.ends else {
            return Dry::Ended;
        };
        loop {
            while !self.left.is_empty() {
                match to.write(&self.chunk[self.left.clone()]).await {
                    Ok(written @ 1..) => self.left.start += written,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => return Dry::Unwanted,
                }
            }
            match from.read(&mut self.chunk).await {
                Ok(read @ 1..) => {
                    self.kept.take(&self.chunk[..read]);
                    self.left = 0..read;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A stream that fails has ended.
                Ok(0) | Err(_) => return Dry::Ended,
            }
        }
    }
}

impl<R, W> Pump<R, W>
where
    R: AsyncRead + Unpin,
{
    /// Reads to the end without passing anything on: whoever wanted it is gone. May be dropped and
    /// called again.
    pub(super) async fn last_words(&mut self) {
        if let Some((from, _)) = &mut self.ends {
            while let Ok(read @ 1..) = from.read(&mut self.chunk).await {
                self.kept.take(&self.chunk[..read]);
            }
        }
    }
}

impl Kept {
    fn take(&mut self, chunk: &[u8]) {
        let (tap, direction, messages) = (&self.tap, self.direction, &mut self.messages);
        self.framer.feed(chunk, |passing| {
            *messages += u64::from(keep(tap, direction, &passing));
            if let (Passing::Whole(line), Direction::ToClient) = (&passing, direction) {
                without_noise(line, tap);
            }
        });
    }

    /// Takes in what the end cut short.
    fn end(&mut self) {
        let (tap, direction, messages) = (&self.tap, self.direction, &mut self.messages);
        self.framer.end(|passing| {
            *messages += u64::from(keep(tap, direction, &passing));
            if let (Passing::Whole(line), Direction::ToClient) = (&passing, direction) {
                tap.finding(FindingKind::Noise, torn_line(line, tap));
            }
        });
    }
}

/// Records a line; `false` if it is blank.
fn keep(tap: &Tap, direction: Direction, passing: &Passing<'_>) -> bool {
    match passing {
        Passing::Whole(line) => {
            tap.frame(None, direction, line);
            !line.trim_ascii().is_empty()
        }
        Passing::Oversized(cut) => {
            tap.cut_frame(None, direction, cut);
            true
        }
    }
}
