//! One direction of a session.
//!
//! Its main type is [`Pump`]. Every byte goes on as it came, and no line before it is in the record:
//! so a request stands before its answer there.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use proctor_core::event::Direction;
use proctor_core::record::MAX_FRAME;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::super::framer::{FramedLine, Framer};
use super::awaited::PendingCallIds;
use crate::recorder::ConnectionTap;
use crate::transport::lines;

/// How much is passed on at once.
const CHUNK: usize = 64 << 10;

/// Why nothing more is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PumpEnd {
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
    kept: LineRecorder,
}

/// What goes into the record.
struct LineRecorder {
    framer: Framer,
    tap: Arc<ConnectionTap>,
    direction: Direction,
    /// How many lines there were that were not blank.
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
            kept: LineRecorder {
                framer: Framer::new(MAX_FRAME),
                tap: tap.clone(),
                direction,
                messages: 0,
                awaited: None,
            },
        }
    }

    /// The same, which notes what is asked and answered.
    pub(super) fn watched(mut self, awaited: &Arc<PendingCallIds>) -> Self {
        self.kept.awaited = Some(awaited.clone());
        self
    }

    /// Passes everything on until there is nothing more: then both streams are closed, or until
    /// nobody takes it. May be dropped and called again.
    pub(super) async fn run(&mut self) -> PumpEnd {
        let dry = self.pass_on().await;
        if dry == PumpEnd::Ended {
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

    async fn pass_on(&mut self) -> PumpEnd {
        let Some((from, to)) = &mut self.ends else {
            return PumpEnd::Ended;
        };
        loop {
            while !self.left.is_empty() {
                match to.write(&self.chunk[self.left.clone()]).await {
                    Ok(written @ 1..) => self.left.start += written,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => return PumpEnd::Unwanted,
                }
            }
            self.kept.tap.room().await;
            match from.read(&mut self.chunk).await {
                Ok(read @ 1..) => {
                    self.kept.take(&self.chunk[..read]);
                    self.left = 0..read;
                    breathe(read).await;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A stream that fails has ended.
                Ok(0) | Err(_) => return PumpEnd::Ended,
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
                breathe(read).await;
            }
        }
    }
}

/// Lets others go on after much has come at once: it may be many lines, each of which takes its time
/// to be kept, and a flood of them must not keep a signal from being heard.
async fn breathe(read: usize) {
    if read == CHUNK {
        tokio::task::yield_now().await;
    }
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

    /// Takes in what the end cut short.
    fn end(&mut self) {
        let (tap, direction, messages) = (&self.tap, self.direction, &mut self.messages);
        self.framer.end(|passing| {
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
mod tests {
    use std::time::Instant;

    use proctor_core::event::{
        Actor, EventKind, RECORD_VERSION, RunStarted, TrialStarted, WireKind,
    };
    use proctor_core::record::{RunWriter, TrialWriter};
    use proctor_core::redact::Redactor;
    use proptest::prelude::*;

    use super::*;
    use crate::recorder::Recorder;

    fn trial(folder: &std::path::Path) -> (RunWriter, TrialWriter) {
        let run = RunWriter::create(
            folder,
            Redactor::default(),
            RunStarted {
                record: RECORD_VERSION,
                proctor: String::new(),
                started: String::new(),
                name: String::new(),
                command: Vec::new(),
                context: None,
            },
        );
        let run = run.expect("a run starts");
        let started = TrialStarted {
            case: "pump".to_owned(),
            agent: None,
            repeat: 1,
            attempt: 1,
        };
        let trial = run.trial(0, "pump", started).expect("a trial starts");
        (run, trial)
    }

    /// What came out at the other end, and the lines in the record.
    async fn pumped(chunks: Vec<Vec<u8>>, width: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
        let folder = tempfile::tempdir().expect("a folder");
        let (_run, trial) = trial(folder.path());
        let recorder = Recorder::new(trial, Instant::now());
        let tap = recorder.open("s", Actor::Agent, WireKind::Stdio, "s");
        let (mut client, from) = tokio::io::duplex(width);
        let (to, mut server) = tokio::io::duplex(width);
        let sending = tokio::spawn(async move {
            for chunk in chunks {
                client.write_all(&chunk).await.expect("it is taken");
            }
        });
        let mut pump = Pump::new(from, to, &tap, Direction::ToClient);
        let mut out = Vec::new();
        let reading = server.read_to_end(&mut out);
        let (dry, read) = tokio::join!(pump.run(), reading);
        read.expect("all is read");
        assert_eq!(dry, PumpEnd::Ended);
        sending.await.expect("all is sent");
        let trial = recorder.take_trial().expect("the trial");
        let written = trial.written();
        let blobs = written.blobs();
        let events = written.open().expect("events");
        let lines = events.filter_map(|event| match event.expect("an event").event {
            EventKind::Frame(frame) => {
                let bytes = blobs.body_bytes(&frame.body).expect("a body");
                Some(bytes.expect("its bytes").into_owned())
            }
            _ => None,
        });
        (out, lines.collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn all_bytes_come_out_as_they_went_in_and_every_line_is_kept(
            chunks in prop::collection::vec(
                prop::collection::vec(prop_oneof![5 => any::<u8>(), 1 => Just(b'\n')], 0..200),
                0..8,
            ),
            width in 1_usize..300,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (out, lines) = runtime.block_on(pumped(chunks.clone(), width));
            let text = chunks.concat();
            let mut expected: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
            if expected.last().is_some_and(|line| line.is_empty()) {
                expected.pop();
            }
            prop_assert_eq!(lines, expected);
            prop_assert_eq!(out, text);
        }
    }

    #[tokio::test]
    async fn what_nobody_takes_is_still_read_to_its_end() {
        let recorder = Recorder::nothing();
        let tap = recorder.open("s", Actor::Agent, WireKind::Stdio, "s");
        let (mut server, from) = tokio::io::duplex(100);
        let (to, client) = tokio::io::duplex(100);
        drop(client);
        let mut pump = Pump::new(from, to, &tap, Direction::ToClient);
        server.write_all(b"one\n\ntwo").await.unwrap();
        assert_eq!(pump.run().await, PumpEnd::Unwanted);
        server.write_all(b"\nthree").await.unwrap();
        drop(server);
        pump.last_words().await;
        pump.close();
        assert!(!pump.is_open());
        assert_eq!(pump.messages(), 3, "a blank line is no message");
    }
}
