//! The guard host: one process that forks the guards of a run.
//!
//! To fork a small process takes a tenth of the time that it takes to start a program, and every
//! program under test needs a guard. Proctor starts the host with its first program, and sends it a
//! `StartRequest` for each one through a socket, with the streams of the program. The host answers
//! with the pid of the new guard, and reports the guard's end through a pipe of its own.
//!
//! The host has one thread, so a forked guard may use the whole of the library. It ends when Proctor
//! closes the socket. A guard keeps the socket too, and ends its program when Proctor's end is
//! closed: that needs neither the host nor a pid.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use fork::Fork;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use signal_hook::low_level;

use super::order::StartRequest;
use super::report::GuardReport;
use super::signals::{self, ChildSignal, take};
use super::watch::Lifeline;
use super::{FAILED, conclude, guard, lead_a_session, null, say};
use crate::os;

/// The first argument that makes the binary run as a guard host.
pub const COMMAND: &str = "__guards";

/// The descriptors of a request: the standard streams of the program, and the pipe for reports.
pub(crate) const DESCRIPTORS: usize = 4;

/// The maximum length of a request, which is more than the system passes to a program.
pub(crate) const LONGEST: u32 = 64 * 1024 * 1024;

/// Forks guards until Proctor closes the socket, which is the stdin of this process.
///
/// Must be called first in a process: it closes all files that the process inherited.
pub fn run() -> ExitCode {
    os::close_inherited();
    match GuardHost::open().and_then(GuardHost::serve) {
        // Whatever would still run belongs to the host.
        Ok(Some(guard)) => low_level::exit(guard.run()),
        // Proctor ended.
        Ok(None) => ExitCode::SUCCESS,
        Err(_) => FAILED.into(),
    }
}

struct GuardHost {
    control: UnixStream,
    null: File,
    child_changed: ChildSignal,
    /// Where the state of each guard is reported.
    reports: HashMap<Pid, File>,
}

/// A process that was forked to become a guard.
struct ForkedGuard {
    control: UnixStream,
    null: File,
    streams: [OwnedFd; 3],
    request: Vec<u8>,
}

impl GuardHost {
    fn open() -> io::Result<Self> {
        signals::shield()?;
        let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let null = null()?;
        dup2_stdin(&null)?;
        // Guards start their sessions from here.
        lead_a_session()?;
        Ok(Self {
            control: control.into(),
            null,
            child_changed: ChildSignal::install()?,
            reports: HashMap::new(),
        })
    }

    /// Returns a guard in the process that was forked for it, and `None` in the host, when Proctor
    /// has closed the socket.
    fn serve(mut self) -> io::Result<Option<ForkedGuard>> {
        let mut request = Vec::new();
        loop {
            let mut sources = [
                PollFd::new(&self.control, PollFlags::IN),
                PollFd::new(self.child_changed.pipe(), PollFlags::IN),
            ];
            match poll(&mut sources, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let [control, children] = sources.map(|source| source.revents());
            if !children.is_empty() {
                take(self.child_changed.pipe());
                self.report_changes();
            }
            // Nothing is started for a Proctor that has ended.
            if control.intersects(PollFlags::HUP | PollFlags::ERR) {
                return Ok(None);
            }
            if control.is_empty() {
                continue;
            }
            let Some(descriptors) = self.receive(&mut request)? else {
                return Ok(None);
            };
            let Ok([stdin, stdout, stderr, report]) =
                <[OwnedFd; DESCRIPTORS]>::try_from(descriptors)
            else {
                // The system passes fewer if this process may open no more. Other guards go on.
                self.refuse(Errno::MFILE)?;
                continue;
            };
            let streams = [stdin, stdout, stderr];
            if self.fork(report.into())? {
                return Ok(Some(self.into_guard(streams, request)));
            }
            // No later guard has the variables of this program.
            request.fill(0);
        }
    }

    /// Receives a request. Returns its descriptors, or `None` if Proctor closed the socket.
    fn receive(&mut self, request: &mut Vec<u8>) -> io::Result<Option<Vec<OwnedFd>>> {
        let mut length = [0; 4];
        let (read, descriptors) = os::receive_descriptors(&self.control, &mut length)?;
        if read == 0 {
            return Ok(None);
        }
        let length = u32::from_le_bytes(length);
        if read != 4 || length > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        request.clear();
        (&mut self.control)
            .take(length.into())
            .read_to_end(request)?;
        Ok((request.len() == length as usize).then_some(descriptors))
    }

    /// Tells Proctor why no guard was started.
    fn refuse(&self, error: Errno) -> io::Result<()> {
        let answer = (-error.raw_os_error()).to_le_bytes();
        Ok(os::send_descriptors(&self.control, &answer, &[])?)
    }

    /// Forks, and tells Proctor the pid. Returns whether this is the new process.
    fn fork(&mut self, report: File) -> io::Result<bool> {
        match fork::fork() {
            Ok(Fork::Child) => return Ok(true),
            Ok(Fork::Parent(pid)) => {
                let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
                let handle = os::descriptor_of(pid);
                let handle: Vec<_> = handle.iter().map(AsFd::as_fd).collect();
                let answer = pid.as_raw_pid().to_le_bytes();
                os::send_descriptors(&self.control, &answer, &handle)?;
                self.reports.insert(pid, report);
            }
            Err(error) => self.refuse(Errno::from_io_error(&error).unwrap_or(Errno::IO))?,
        }
        Ok(false)
    }

    /// Reports the guards that have stopped or ended.
    fn report_changes(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            let report = GuardReport::from(status).render();
            let ended = !status.stopped();
            if let Some(to) = self.reports.get(&pid) {
                // Proctor may have stopped to listen.
                let _ = rustix::io::write(to, report.as_bytes());
            }
            if ended {
                self.reports.remove(&pid);
            }
        }
    }

    /// Keeps nothing of the host but the socket.
    fn into_guard(self, streams: [OwnedFd; 3], request: Vec<u8>) -> ForkedGuard {
        self.child_changed.remove();
        ForkedGuard {
            control: self.control,
            null: self.null,
            streams,
            request,
        }
    }
}

impl ForkedGuard {
    /// Returns the exit code.
    fn run(self) -> i32 {
        let Self {
            control,
            null,
            streams: [stdin, stdout, stderr],
            request,
        } = self;
        // First the stream on which a guard reports its own failure.
        let set = dup2_stderr(&stderr)
            .and_then(|()| dup2_stdin(&stdin))
            .and_then(|()| dup2_stdout(&stdout));
        drop((stdin, stdout, stderr));
        if let Err(error) = set {
            say(&format_args!(
                "could not set the standard streams: {}",
                io::Error::from(error)
            ));
            return FAILED.into();
        }
        let guarded = StartRequest::parse(&request).and_then(|request| {
            request.enter_folder()?;
            guard(&request.order, &null, || {
                Ok(Lifeline::socket(control.into()))
            })
        });
        conclude(guarded).into()
    }
}

impl From<WaitStatus> for GuardReport {
    fn from(status: WaitStatus) -> Self {
        if status.stopped() {
            Self::Stopped
        } else {
            Self::Ended(super::exit_of(status))
        }
    }
}
