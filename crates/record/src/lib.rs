//! What happened in a run: events, their record on disk, and the transcript that they fold into.
//!
//! This crate knows neither suites nor checks, so a record can be read without them. It never awaits, prints, or reads
//! the clock or the environment; its only threads write and sync a record. It runs for each message, and is built for
//! speed.

pub mod decision;
pub mod duration;
pub mod event;
pub mod excerpt;
pub mod fold;
pub mod hint;
pub mod index;
pub mod json;
pub mod message;
pub mod model;
pub mod phase;
pub mod problem;
pub mod record;
pub mod redact;
pub mod tool_choice;
pub mod transcript;
pub mod verdict;
