//! Runs trials: the built-in agent loop, external agents, steps, the judge, and the runner above them.
//!
//! The crates below handle wire formats, process containment and provider APIs. This crate never
//! prints or exits.

pub mod agent;
pub mod context;
mod decider;
pub mod engine;
pub mod external;
pub mod judge;
pub mod preflight;
pub mod progress;
mod replies;
pub mod runner;
mod secrets;
pub mod steps;
mod stop;
#[cfg(feature = "store")]
pub mod store;
mod together;
mod trial;
pub mod trial_folder;
