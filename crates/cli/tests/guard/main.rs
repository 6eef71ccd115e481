//! The guard of the real binary, with programs that do all they can to outlive it. Most of them need
//! `/proc` or `setsid`, which only Linux has.

#![expect(clippy::disallowed_methods, reason = "the binary itself has no guard")]

#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod lingers;
#[cfg(target_os = "linux")]
mod parent;
#[cfg(all(target_os = "linux", not(feature = "posix")))]
mod reuse;
mod stage;
#[cfg(target_os = "linux")]
mod starts;
mod staying;
#[cfg(target_os = "linux")]
mod streams;
#[cfg(target_os = "linux")]
mod trees;
