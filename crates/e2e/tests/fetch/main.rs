//! What a suite fetches from outside: sources from git repositories, and extension packages from releases.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on panics, helpers included"
)]

mod extensions;
mod hostile;
mod releases;
mod repository;
mod signatures;
mod sigstore;
mod sources;
