//! What Proctor knows without doing anything: suites, plans, transcripts, checks.
//!
//! Nothing here awaits, spawns, prints, or reads the clock or the environment:
//! whatever comes from outside is handed in.

pub mod pattern;
