//! Linux: pidfds, a child subreaper, `/proc`.

mod processes;

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process::Command;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, getpid, getppid, pidfd_open,
    set_child_subreaper, set_dumpable_behavior, setrlimit,
};

pub use self::processes::Lookout;
pub(super) use self::processes::{processes, read};

/// How often a guard looks for descendants while its program runs: never, since the kernel tells.
pub const LOOK_AGAIN: Option<Duration> = None;

pub(super) const SEND: SendFlags = SendFlags::NOSIGNAL;
pub(super) const RECEIVE: RecvFlags = RecvFlags::CMSG_CLOEXEC.union(RecvFlags::DONTWAIT);

/// [`RECEIVE`] has done so already.
#[expect(clippy::unnecessary_wraps, reason = "`posix` can fail here")]
pub(super) fn close_on_exec(_: &OwnedFd) -> io::Result<()> {
    Ok(())
}

/// Closes all files that this process was started with, beyond the standard streams.
pub fn close_inherited() {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten();
    let names = entries.flatten().map(|entry| entry.file_name());
    let open: Vec<RawFd> = names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect();
    for file in open.into_iter().filter(|file| *file > 2) {
        // One of them was open for this look only.
        let _ = nix::unistd::close(file);
    }
}

/// Makes every descendant whose parent ends a child of this process.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Marks a program, so that what it starts can be found. The kernel finds it without.
pub fn mark(_: &mut Command) {}

/// Gives a descriptor that is readable once the parent of this process has ended; `None` if `parent` is
/// not its parent any more.
pub fn watch_parent(parent: Pid) -> io::Result<Option<OwnedFd>> {
    let watched = match pidfd_open(parent, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return Ok(None),
        watched => watched?,
    };
    // Still our parent, so it was alive when the pidfd was opened, and no other process has its pid.
    Ok((getppid() == Some(parent)).then_some(watched))
}

/// Waits until a child of this process has ended, or for as long as that may take.
pub fn wait_for(child: Pid, limit: Duration) {
    let Ok(process) = pidfd_open(child, PidfdFlags::empty()) else {
        return;
    };
    let timeout = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: 0,
    };
    // What can't be waited for is not.
    let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout));
}

/// Keeps the end of this process from writing a core file. Without these the worst is a core file.
pub fn forbid_core_dump() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Whether this process was started with SIGHUP ignored.
pub fn ignores_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit is that of the first signal, which is SIGHUP.
    mask.is_some_and(|mask| mask & 1 == 1)
}

/// The same pipe, opened anew: whether it blocks is then nobody else's business. Who can't have that
/// shares it.
pub fn reopen(pipe: OwnedFd, access: OFlags) -> OwnedFd {
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).unwrap_or(pipe)
}
