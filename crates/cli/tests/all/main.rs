//! Black-box tests of the real binary: exit code, stdout, stderr, files.

mod broken;
mod commands;
mod examples;
mod hostile;
mod loading;
mod proctor;
