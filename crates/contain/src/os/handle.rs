//! A process that can be signalled and waited for, though it is not a child.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};

use super::Descendant;
use super::system::{descriptor_of, read, signal_descriptor};

/// The interval at which a process without a descriptor is polled.
const LOOK: Duration = Duration::from_millis(10);

/// A process, and never a later one with the same pid.
#[derive(Debug)]
pub enum ProcessHandle {
    Descriptor(OwnedFd),
    /// Identified by the start time in the list of processes.
    Listed(Descendant),
    Ended,
}

impl ProcessHandle {
    /// A process whose parent passed its pid a moment ago, and its descriptor if there is one.
    pub fn new(pid: Pid, descriptor: Option<OwnedFd>) -> Self {
        match descriptor {
            Some(descriptor) => Self::Descriptor(descriptor),
            None => read(pid).map_or(Self::Ended, Self::Listed),
        }
    }

    /// The process that has this pid now.
    pub fn open(pid: Pid) -> Self {
        Self::new(pid, descriptor_of(pid))
    }

    /// Signals the process, if it has not ended.
    pub fn signal(&self, signal: Signal) {
        match self {
            Self::Descriptor(process) => signal_descriptor(process, signal),
            Self::Listed(process) => process.signal(signal),
            Self::Ended => {}
        }
    }

    /// Waits until the process has ended, but not longer than `limit`.
    pub fn wait(&self, limit: Duration) {
        match self {
            Self::Descriptor(process) => {
                // An error ends the wait.
                let _ = poll(
                    &mut [PollFd::new(process, PollFlags::IN)],
                    Timespec::try_from(limit).ok().as_ref(),
                );
            }
            Self::Listed(process) => {
                let end = Instant::now() + limit;
                while lives(process) && Instant::now() < end {
                    thread::sleep(LOOK);
                }
            }
            Self::Ended => {}
        }
    }
}

fn lives(process: &Descendant) -> bool {
    let now = read(process.pid());
    now.is_some_and(|now| now.identity() == process.identity() && !now.is_zombie)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a test of how programs are started"
    )]
    fn a_process_is_waited_for_until_it_ends_and_no_longer_than_the_limit() {
        let handles: [fn(Pid) -> ProcessHandle; 2] =
            [ProcessHandle::open, |pid| ProcessHandle::new(pid, None)];
        for handle in handles {
            let mut child = Command::new("sleep")
                .arg("1000")
                .process_group(0)
                .spawn()
                .unwrap();
            let process = handle(Pid::from_child(&child));
            process.wait(Duration::from_millis(30));
            assert!(child.try_wait().unwrap().is_none());
            process.signal(Signal::KILL);
            process.wait(Duration::from_secs(1000));
            assert!(child.try_wait().unwrap().is_some());
            // It is gone, and a signal reaches no other.
            process.signal(Signal::KILL);
            process.wait(Duration::from_secs(1000));
        }
    }
}
