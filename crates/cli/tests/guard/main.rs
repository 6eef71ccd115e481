//! The guard of the real binary, with programs that do all they can to outlive it.

#![expect(clippy::disallowed_methods, reason = "the binary itself has no guard")]

mod ends;
mod lingers;
mod parent;
mod stage;
mod starts;
mod streams;
mod trees;
