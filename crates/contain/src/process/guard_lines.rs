//! What a guard and its host report while a program runs.

use std::io;

use super::ProcessExit;
use super::hosts::GuardLink;
use crate::guard::GuardReport;

/// A report about a program or its guard.
#[derive(Clone, Copy, Debug)]
pub(super) enum GuardLine {
    /// From the guard itself.
    Guard(GuardReport),
    /// The guard was stopped.
    Stopped,
    /// The guard has ended without a report of its own.
    Ended(ProcessExit),
    HostKilled,
}

/// Reads the reports of a guard and its host.
pub(super) struct GuardLines<'a> {
    link: &'a GuardLink,
    from_guard: LineBuffer,
    from_host: LineBuffer,
    /// How the guard ended, once the host has reported it.
    ended: Option<ProcessExit>,
}

impl<'a> GuardLines<'a> {
    pub(super) fn new(link: &'a GuardLink) -> Self {
        Self {
            link,
            from_guard: LineBuffer::default(),
            from_host: LineBuffer::default(),
            ended: None,
        }
    }

    pub(super) async fn next(&mut self) -> GuardLine {
        let GuardLink {
            channel, report, ..
        } = self.link;
        loop {
            if let Some(report) = self.from_guard.next() {
                return GuardLine::Guard(report);
            }
            if let Some(exit) = self.ended {
                return GuardLine::Ended(exit);
            }
            match self.from_host.next() {
                Some(GuardReport::Stopped) => return GuardLine::Stopped,
                Some(GuardReport::Ended(exit)) => {
                    self.ended = Some(exit);
                    // What the guard reported before its end is there, even if the runtime does not know yet.
                    self.from_guard
                        .fill(|bytes| Ok(rustix::io::read(channel, bytes)?));
                    continue;
                }
                Some(GuardReport::Left(_) | GuardReport::Ready(_)) | None => {}
            }
            if self.from_host.is_closed {
                return GuardLine::HostKilled;
            }
            tokio::select! {
                biased;
                _ = channel.readable(), if !self.from_guard.is_closed => {
                    self.from_guard.fill(|bytes| channel.try_read(bytes));
                }
                _ = report.readable() => {
                    self.from_host.fill(|bytes| report.try_read(bytes));
                }
            }
        }
    }
}

/// Bytes that were read, and not parsed yet.
#[derive(Debug, Default)]
struct LineBuffer {
    bytes: Vec<u8>,
    is_closed: bool,
}

impl LineBuffer {
    fn fill(&mut self, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) {
        let mut bytes = [0; 64];
        match read(&mut bytes) {
            Ok(0) => self.is_closed = true,
            Ok(count) => self.bytes.extend(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.is_closed = true,
        }
    }

    /// The next report. Other lines are ignored.
    fn next(&mut self) -> Option<GuardReport> {
        while let Some(end) = memchr::memchr(b'\n', &self.bytes) {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            if let Some(report) = GuardReport::parse(&line[..end]) {
                return Some(report);
            }
        }
        None
    }
}
