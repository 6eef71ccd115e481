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
pub mod contract;
pub mod coverage;
pub mod decode;
pub mod document;
pub mod draft;
pub mod estimate;
pub mod evals;
pub mod gate;
pub mod grades;
pub mod grading;
pub mod history;
pub mod import;
pub mod lint;
pub mod matcher;
pub mod merge;
pub mod overview;
pub mod pack;
pub mod pass_rule;
pub mod pattern;
pub mod plan;
pub mod price;
pub mod printable;
pub mod profile;
pub mod provider;
pub mod regrade;
pub mod replay;
pub mod runs;
pub mod script;
pub mod selection;
pub mod shard;
pub mod statistics;
pub mod suite;
pub mod summary;
pub mod transcript_file;
pub mod trial_names;
pub mod typed_arguments;
