//! Linux: pidfds, a child subreaper, `/proc`.

mod processes;

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, Signal, getpid, getppid,
    getpriority_process, getrlimit, pidfd_open, pidfd_send_signal, set_child_subreaper,
    set_dumpable_behavior, setrlimit,
};
use rustix::thread::{CpuSet, sched_getaffinity};

pub use self::processes::Lookout;
pub(super) use self::processes::{processes, read};

/// The interval at which a guard looks for descendants while its program runs. Not needed here: the
/// kernel reports them.
pub const LOOK_AGAIN: Option<Duration> = None;

/// Whether a guard without children has no descendants at all, and so can run another program.
pub const ADOPTS_ORPHANS: bool = true;

pub(super) const SEND: SendFlags = SendFlags::NOSIGNAL;
pub(super) const RECEIVE: RecvFlags = RecvFlags::CMSG_CLOEXEC.union(RecvFlags::DONTWAIT);

/// A no-op: [`RECEIVE`] has already set the flag.
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
        // One of them was open only for this listing.
        let _ = nix::unistd::close(file);
    }
}

/// Makes every descendant whose parent ends a child of this process.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Variables that mark a program, so that its descendants can be found. `None` here: the kernel finds them.
pub fn mark(_: &[Cow<'_, CStr>]) -> Option<Vec<CString>> {
    None
}

/// Returns a descriptor that becomes readable when the parent of this process ends; `None` if
/// `parent` is no longer its parent.
pub fn watch_parent(parent: Pid) -> io::Result<Option<OwnedFd>> {
    let watched = match pidfd_open(parent, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return Ok(None),
        watched => watched?,
    };
    // It is still our parent, so it was alive when the pidfd was opened and its pid was not reused.
    Ok((getppid() == Some(parent)).then_some(watched))
}

/// A descriptor of a process; `None` if it has ended, or this process may open no more.
pub fn descriptor_of(pid: Pid) -> Option<OwnedFd> {
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Signals the process of a descriptor. Errors are ignored: they mean that it has ended.
pub(super) fn signal_descriptor(process: &OwnedFd, signal: Signal) {
    let _ = pidfd_send_signal(process, signal);
}

/// Keeps this process from writing a core file when it ends. Errors are ignored: they only mean a
/// core file.
pub fn forbid_core_dump() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// What programs inherit of the process that starts them, and what another process of the user can change.
#[derive(Debug, PartialEq)]
pub struct InheritedLimits {
    resources: [Rlimit; RESOURCES.len()],
    nice: Option<i32>,
    cores: Option<CpuSet>,
    killed_first: Option<String>,
}

const RESOURCES: [Resource; 16] = [
    Resource::As,
    Resource::Core,
    Resource::Cpu,
    Resource::Data,
    Resource::Fsize,
    Resource::Locks,
    Resource::Memlock,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Nofile,
    Resource::Nproc,
    Resource::Rss,
    Resource::Rtprio,
    Resource::Rttime,
    Resource::Sigpending,
    Resource::Stack,
];

impl InheritedLimits {
    /// Those of this process.
    pub fn read() -> Self {
        Self {
            resources: RESOURCES.map(getrlimit),
            nice: getpriority_process(None).ok(),
            cores: sched_getaffinity(None).ok(),
            killed_first: fs::read_to_string("/proc/self/oom_score_adj").ok(),
        }
    }
}

/// Keeps other processes of the user from taking the files of this process and of those that it forks, as far as the
/// system can. A program that it starts is not affected. Errors are ignored: they mean that nothing changes.
pub fn forbid_inspection() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Acknowledges what a TCP socket has received, without the usual delay. Applies once: the kernel returns to its own
/// choice. Errors are ignored: they only mean the delay.
pub fn acknowledge_at_once(socket: impl AsFd) {
    let _ = sockopt::set_tcp_quickack(socket, true);
}

/// Whether this process was started with SIGHUP ignored.
pub fn ignores_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit is that of the first signal, which is SIGHUP.
    mask.is_some_and(|mask| mask & 1 == 1)
}

/// Opens the same pipe again, so that its blocking mode is independent of other processes. Returns
/// the shared descriptor if that fails.
pub fn reopen(pipe: OwnedFd, access: OFlags) -> OwnedFd {
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).unwrap_or(pipe)
}
