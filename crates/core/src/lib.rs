//! What Proctor knows without doing anything: suites, plans, transcripts, checks.
//!
//! Nothing here awaits, spawns, prints, or reads the clock or the environment:
//! whatever comes from outside is handed in.

pub mod assignment;
pub mod check;
mod excerpt;
pub mod json;
pub mod matcher;
pub mod pattern;
pub mod transcript;
pub mod verdict;
