//! A guard that its host forked: it runs the programs that Proctor requests, one after another.
//!
//! A request arrives on the guard's channel, a socket whose other end only Proctor has, with the streams
//! of the program. When the program and everything that it started have ended, the guard reports that on
//! the channel. It runs another program only if it is certain that nothing of the last one is left: the
//! kernel says so, the program ended by itself, and the guard got no signal and has its own limits still. Otherwise it
//! ends, and Proctor takes another guard.

use std::env;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::order::{LONGEST, Order};
use super::report::GuardReport;
use super::watch::{GuardOutcome, Lifeline, readable};
use super::{FAILED, Guard, GuardError, conclude, system};
use crate::exit::ProcessExit;
use crate::os;

/// A process that was forked to become a guard.
pub struct ForkedGuard {
    channel: UnixStream,
    null: File,
    limits: os::InheritedLimits,
}

/// The standard streams of a program.
type Streams = [OwnedFd; 3];

impl ForkedGuard {
    pub fn new(channel: UnixStream, null: File) -> Self {
        Self {
            channel,
            null,
            limits: os::InheritedLimits::read(),
        }
    }

    /// Runs programs until Proctor closes the channel or asks the guard to end. Returns the exit code.
    pub fn run(&self) -> u8 {
        let mut request = Vec::new();
        // Set with the first program, whose stderr gets the reason if this process can't be a guard.
        let mut guard = None;
        loop {
            let streams = match self.next_request(guard.as_ref(), &mut request) {
                Ok(Some(streams)) => streams,
                Ok(None) => return 0,
                Err(_) => {
                    self.report(GuardReport::Ended(ProcessExit::Exited(FAILED.into())));
                    return FAILED;
                }
            };
            let outcome = self.serve(&mut guard, &request, streams);
            // No later program can find the variables of this one.
            request.fill(0);
            let is_clean = outcome.as_ref().is_ok_and(GuardOutcome::is_clean);
            let exit = conclude(outcome);
            // Proctor reads stderr to its end.
            let is_ready = dup2_stderr(&self.null).is_ok()
                && is_clean
                && os::ADOPTS_ORPHANS
                && os::InheritedLimits::read() == self.limits
                && env::set_current_dir("/").is_ok();
            if !is_ready {
                self.report(GuardReport::Ended(exit));
                return 0;
            }
            self.report(GuardReport::Ready(exit));
        }
    }

    fn report(&self, report: GuardReport) {
        // A failed write means that Proctor has ended.
        let _ = rustix::io::write(&self.channel, report.render().as_bytes());
    }

    /// Waits for a request, and returns its streams; `None` if the guard has to end.
    fn next_request(
        &self,
        guard: Option<&Guard<'_>>,
        request: &mut Vec<u8>,
    ) -> io::Result<Option<Streams>> {
        loop {
            let asked = guard.map(|guard| &guard.signals.asked);
            let channel = PollFd::new(&self.channel, PollFlags::IN);
            let mut sources: Vec<PollFd<'_>> =
                [channel].into_iter().chain(asked.map(readable)).collect();
            match poll(&mut sources, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            // Nothing is started for a Proctor that has ended.
            let is_over = sources[0]
                .revents()
                .intersects(PollFlags::HUP | PollFlags::ERR);
            let is_asked = sources[1..].iter().any(|s| !s.revents().is_empty());
            return if is_over || is_asked {
                Ok(None)
            } else {
                self.receive(request)
            };
        }
    }

    fn receive(&self, request: &mut Vec<u8>) -> io::Result<Option<Streams>> {
        let mut length = [0; 4];
        let (read, descriptors) = os::receive_descriptors(&self.channel, &mut length)?;
        if read == 0 {
            return Ok(None);
        }
        let length = u32::from_le_bytes(length);
        if read != 4 || length > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        request.resize(length as usize, 0);
        (&self.channel).read_exact(request)?;
        // The system passes fewer if this process may open no more.
        let streams = Streams::try_from(descriptors);
        streams.map(Some).map_err(|_| Errno::MFILE.into())
    }

    /// Runs the program of a request to its end.
    fn serve<'a>(
        &'a self,
        guard: &mut Option<Guard<'a>>,
        request: &[u8],
        [stdin, stdout, stderr]: Streams,
    ) -> Result<GuardOutcome, GuardError> {
        // First the stream on which a guard reports its own failure.
        dup2_stderr(&stderr)
            .and_then(|()| dup2_stdin(&stdin))
            .and_then(|()| dup2_stdout(&stdout))
            .map_err(system("set the standard streams"))?;
        drop((stdin, stdout, stderr));
        let (folder, order) = Order::from_request(request)?;
        env::set_current_dir(folder).map_err(system("enter the working folder"))?;
        let guard = match guard {
            Some(guard) => guard,
            None => guard.insert(Guard::open(&self.null, Lifeline::socket(&self.channel))?),
        };
        guard.run(&order, |exit| self.report(GuardReport::Left(exit)))
    }
}
