//! Starts programs, contains them, and ends them with everything that they started.
//!
//! This crate knows neither MCP nor models nor records. No other crate starts a process.

pub mod environment;
pub mod exit;
pub mod guard;
pub mod os;
pub mod process;
pub mod program;
pub mod scratch;
pub mod tail;
