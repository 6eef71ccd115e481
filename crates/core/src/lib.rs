//! The pure part of Proctor: suites, plans, transcripts, checks, summaries.
//!
//! This crate never awaits, spawns, prints, or reads the clock or the environment: callers pass in
//! everything from outside.

pub mod asks;
pub mod assignment;
pub mod builtin_agent;
pub mod calibration;
pub mod causes;
pub mod check;
pub mod compare;
pub mod coverage;
pub mod decision;
pub mod decode;
pub mod document;
pub mod duration;
pub mod evals;
pub mod event;
mod excerpt;
pub mod fold;
pub mod gate;
pub mod grades;
pub mod grading;
pub mod hint;
pub mod import;
pub mod index;
pub mod json;
pub mod matcher;
pub mod message;
pub mod model;
pub mod overview;
pub mod pack;
pub mod pass_rule;
pub mod pattern;
pub mod phase;
pub mod plan;
pub mod price;
pub mod printable;
pub mod problem;
pub mod provider;
pub mod record;
pub mod redact;
pub mod regrade;
pub mod replay;
pub mod runs;
pub mod script;
pub mod statistics;
pub mod suite;
pub mod summary;
pub mod transcript;
pub mod trial_names;
pub mod typed_arguments;
pub mod verdict;
