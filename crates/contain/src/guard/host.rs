//! The guard host: one process that forks the guards of a run.
//!
//! To fork a small process takes a tenth of the time that it takes to start a program. Proctor starts the
//! host with its first program, and sends it a message through a socket whenever it has more programs to
//! run than guards, with the channel of the new guard. The host answers with the pid of the guard, and
//! reports through a pipe that the guard was stopped or ended.
//!
//! The host has one thread, so a forked guard may use the whole of the library. It ends when Proctor
//! closes the socket and all guards have ended.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use fork::Fork;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};
use rustix::stdio::dup2_stdin;
use signal_hook::low_level;

use super::forked::ForkedGuard;
use super::report::GuardReport;
use super::signals::{self, ChildSignal, take};
use super::{FAILED, lead_a_session, null};
use crate::os;

/// The first argument that makes the binary run as a guard host.
pub const COMMAND: &str = "__guards";

/// The message that asks for a guard.
pub(crate) const FORK: &[u8] = b"fork";

/// The descriptors of that message: the channel of the guard, and the pipe for reports.
pub(crate) const DESCRIPTORS: usize = 2;

/// Forks guards until Proctor closes the socket, which is the stdin of this process.
///
/// Must be called first in a process: it closes all files that the process inherited.
pub fn run() -> ExitCode {
    os::close_inherited();
    match GuardHost::open().and_then(GuardHost::serve) {
        // Whatever would still run belongs to the host.
        Ok(Some(guard)) => low_level::exit(guard.run().into()),
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

impl GuardHost {
    fn open() -> io::Result<Self> {
        signals::shield()?;
        // A program could take the channel of a guard, and report for it.
        os::forbid_inspection();
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
                wait_for_guards();
                return Ok(None);
            }
            if control.is_empty() {
                continue;
            }
            let mut message = [0; FORK.len()];
            let (read, descriptors) = os::receive_descriptors(&self.control, &mut message)?;
            if read == 0 {
                wait_for_guards();
                return Ok(None);
            }
            let Ok([channel, report]) = <[OwnedFd; DESCRIPTORS]>::try_from(descriptors) else {
                // The system passes fewer if this process may open no more. Other guards go on.
                self.refuse(Errno::MFILE)?;
                continue;
            };
            if self.fork(report.into())? {
                // Keeps nothing of the host but `/dev/null`.
                self.child_changed.remove();
                return Ok(Some(ForkedGuard::new(channel.into(), self.null)));
            }
        }
    }

    /// Tells Proctor why no guard was started.
    fn refuse(&self, error: Errno) -> io::Result<()> {
        self.answer(-error.raw_os_error(), &[])
    }

    fn answer(&self, code: i32, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        Ok(os::send_descriptors(
            &self.control,
            &code.to_le_bytes(),
            descriptors,
        )?)
    }

    /// Forks, and tells Proctor the pid. Returns whether this is the new process.
    fn fork(&mut self, report: File) -> io::Result<bool> {
        match fork::fork() {
            Ok(Fork::Child) => return Ok(true),
            Ok(Fork::Parent(pid)) => {
                let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
                let handle = os::descriptor_of(pid);
                let handle: Vec<_> = handle.iter().map(AsFd::as_fd).collect();
                self.answer(pid.as_raw_pid(), &handle)?;
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
}

/// Their channels are closed too, so they end.
fn wait_for_guards() {
    while !matches!(wait(WaitOptions::empty()), Err(error) if error != Errno::INTR) {}
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
