//! Everything in Proctor that depends on the operating system: the only module that may call an API
//! which POSIX doesn't define. All other modules and crates come through here.
//!
//! | what | function |
//! |---|---|
//! | start a contained program | [`close_inherited`], [`adopt_orphans`], [`ADOPTS_ORPHANS`], [`mark`], [`forbid_core_dump`], [`forbid_inspection`], [`InheritedLimits`] |
//! | signal a process, notice its end | [`ProcessHandle`], [`descriptor_of`], [`watch_parent`] |
//! | list and end descendants | [`Lookout`], [`is_below`], [`kill_below`], [`kill_session`], in words [`SEARCH`] |
//! | identify a socket's peer | [`peer`] |
//! | pass descriptors | [`send_descriptors`], [`receive_descriptors`], [`reopen`] |
//! | acknowledge what a socket received | [`acknowledge_at_once`] |
//! | limits and settings of this process | [`raise_file_limit`], [`ignores_hangup`], [`is_system_path`] |
//! | open a file for the user | [`FILE_OPENER`] |
//!
//! There are two implementations of the same functions:
//!
//! - `linux` uses pidfds, a child subreaper and `/proc`. The kernel tells when no descendant is left.
//! - `posix` is what macOS uses, and Linux in tests with the feature `posix`. Without a subreaper, a
//!   process whose parent ended is no longer below its guard, so `posix` also looks for members of the
//!   guard's session, for processes that carry the guard's [`COOKIE`], and for processes that an earlier
//!   look found. A program that detaches itself and clears its environment between two looks is missed.
//!   [`Lookout::cleared`] names the processes that were seen without the cookie.
//!
//! Only [`peer`] has a version for each system, which the feature doesn't change.

mod descendants;
mod descriptors;
mod handle;
#[cfg(not(any(target_os = "macos", feature = "posix")))]
mod linux;
mod peer;
#[cfg(any(target_os = "macos", feature = "posix"))]
mod posix;

use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub use self::descendants::{Descendant, ProcessIdentity, is_below, kill_below, kill_session};
pub(crate) use self::descriptors::send_start as start_sending_descriptors;
pub use self::descriptors::{receive as receive_descriptors, send as send_descriptors};
pub use self::handle::ProcessHandle;
pub use self::peer::{Peer, peer};

/// The program that opens a file as the desktop would.
pub const FILE_OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

#[cfg(not(any(target_os = "macos", feature = "posix")))]
use self::linux as system;
#[cfg(any(target_os = "macos", feature = "posix"))]
use self::posix as system;

pub use self::system::{
    ADOPTS_ORPHANS, InheritedLimits, LOOK_AGAIN, Lookout, acknowledge_at_once, adopt_orphans,
    close_inherited, descriptor_of, forbid_core_dump, forbid_inspection, ignores_hangup, mark,
    reopen, watch_parent,
};

/// How a guard finds the processes that a program left running, in words.
pub const SEARCH: &str = if LOOK_AGAIN.is_some() {
    "by a search for its descendants, see docs/platforms.md"
} else {
    "by a child subreaper"
};

/// The environment variable by which `posix` finds detached processes: the pids of the guards that a
/// process is below, separated by `:`. `linux` never sets it.
pub const COOKIE: &str = "PROCTOR_GUARDS";

/// A soft limit of open files that every macOS accepts.
const SAFE_FILES: u64 = 10_240;

/// Raises the limit of open files of this process to `enough`, or as far as the system allows. Returns
/// the limit; `None` means that there is none.
pub fn raise_file_limit(enough: u64) -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let now = current?;
    let most = maximum.map_or(enough, |most| most.min(enough));
    // macOS refuses more than its own constant even where the hard limit is infinite.
    let mut wanted = [most, most.min(SAFE_FILES)].into_iter();
    let raised = wanted.find(|wanted| {
        let limit = Rlimit {
            current: Some(*wanted),
            maximum,
        };
        now < *wanted && setrlimit(Resource::Nofile, limit).is_ok()
    });
    Some(raised.unwrap_or(now))
}

/// Whether a path is a name that the system gives to a file which is somewhere else, as `/dev/stdout` is.
pub fn is_system_path(path: &Path) -> bool {
    path.starts_with("/dev") || path.starts_with("/proc")
}
