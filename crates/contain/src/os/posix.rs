//! The implementation for POSIX systems with a process list. macOS uses it, and so does Linux in
//! tests with the feature `posix`.

mod processes;

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal, getpid, getppid, getrlimit, setrlimit};
use sysinfo::System;

pub use self::processes::Lookout;
pub(super) use self::processes::{processes, read};
use super::COOKIE;

/// The interval at which a guard looks for descendants, to remember them, while its program runs.
pub const LOOK_AGAIN: Option<Duration> = Some(Duration::from_secs(1));

/// Whether a guard without children has no descendants at all, and so can run another program.
pub const ADOPTS_ORPHANS: bool = false;

/// The interval at which a guard checks whether its parent still runs.
const PARENT: Duration = Duration::from_millis(100);

/// Every Rust program ignores SIGPIPE, so a lost peer is an error even without a flag.
pub(super) const SEND: SendFlags = SendFlags::empty();
pub(super) const RECEIVE: RecvFlags = RecvFlags::DONTWAIT;

pub(super) fn close_on_exec(descriptor: &OwnedFd) -> io::Result<()> {
    Ok(fcntl_setfd(descriptor, FdFlags::CLOEXEC)?)
}

/// Closes all files that this process was started with, beyond the standard streams.
pub fn close_inherited() {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let open: Vec<RawFd> = match fs::read_dir("/dev/fd") {
        Ok(entries) => entries.flatten().filter_map(number).collect(),
        Err(_) => (0..file_limit()).collect(),
    };
    for file in open.into_iter().filter(|file| *file > 2) {
        // One of them was open only for this listing.
        let _ = nix::unistd::close(file);
    }
}

fn file_limit() -> RawFd {
    const MOST: RawFd = 65_536;
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(MOST, |limit| RawFd::try_from(limit).unwrap_or(MOST))
}

/// Without a subreaper, orphans become children of the system's first process: [`Lookout`] finds
/// them. A guard that can't list processes starts no program.
pub fn adopt_orphans() -> io::Result<()> {
    System::new().map(drop).map_err(io::Error::other)
}

/// The variables of a program with the cookie of this guard, after those of the guards that this one is
/// below.
pub fn mark(env: &[Cow<'_, CStr>]) -> Option<Vec<CString>> {
    let own = getpid().as_raw_pid().to_string();
    let prefix = format!("{COOKIE}=");
    let is_cookie = |entry: &&Cow<'_, CStr>| entry.to_bytes().starts_with(prefix.as_bytes());
    let cookie = match env.iter().find(is_cookie) {
        Some(outer) => format!("{}:{own}", outer.to_string_lossy()),
        None => format!("{prefix}{own}"),
    };
    let others = env.iter().filter(|entry| !is_cookie(entry));
    let others = others.map(|entry| entry.clone().into_owned());
    // No entry contains a zero byte, so neither does the cookie.
    Some(others.chain(CString::new(cookie).ok()).collect())
}

/// Returns a descriptor that becomes readable when the parent of this process ends; `None` if
/// `parent` is no longer its parent.
pub fn watch_parent(parent: Pid) -> io::Result<Option<OwnedFd>> {
    // A process changes its parent only once, when the parent ends, and never to one with the same
    // pid.
    let lives = move || getppid() == Some(parent);
    if !lives() {
        return Ok(None);
    }
    let (reader, writer) = io::pipe()?;
    thread::Builder::new().spawn(move || {
        while lives() {
            thread::sleep(PARENT);
        }
        drop(writer);
    })?;
    Ok(Some(reader.into()))
}

/// A descriptor of a process: the system has none.
pub fn descriptor_of(_: Pid) -> Option<OwnedFd> {
    None
}

/// A no-op: there is no descriptor.
pub(super) fn signal_descriptor(_: &OwnedFd, _: Signal) {}

/// Keeps this process from writing a core file when it ends. Errors are ignored: they only mean a
/// core file.
pub fn forbid_core_dump() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
}

/// Nothing: guards run one program each.
#[derive(Debug, PartialEq)]
pub struct InheritedLimits;

impl InheritedLimits {
    pub fn read() -> Self {
        Self
    }
}

/// A no-op: POSIX has no such setting.
pub fn forbid_inspection() {}

/// A no-op: the system has no such setting.
pub fn acknowledge_at_once(_: impl AsFd) {}

/// Whether this process was started with SIGHUP ignored. A child inherits that and a shell can't
/// undo it, so a shell that survives its own SIGHUP proves it. Without a shell, the answer is no.
#[expect(clippy::disallowed_methods, reason = "a shell that ends at once")]
pub fn ignores_hangup() -> bool {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "kill -HUP $$"]).env_clear();
    shell.stdin(Stdio::null()).stdout(Stdio::null());
    let ended = shell.stderr(Stdio::null()).status();
    ended.is_ok_and(|status| status.success())
}

/// The same pipe. POSIX can't open it again, so the process that passed it shares its blocking
/// mode.
pub fn reopen(pipe: OwnedFd, _: OFlags) -> OwnedFd {
    pipe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_not_the_parent_is_refused() {
        let parent = getppid().unwrap();
        assert!(watch_parent(parent).unwrap().is_some());
        assert!(watch_parent(getpid()).unwrap().is_none());
    }
}
