//! Black-box tests of the real binary: exit code, stdout, stderr, files.

#![expect(clippy::disallowed_methods, reason = "the binary itself has no guard")]

mod broken;
mod commands;
mod docs;
mod evals;
mod examples;
mod hostile;
mod judge;
mod loading;
mod proctor;
mod shells;
