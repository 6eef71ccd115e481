//! Starts programs, contains them, and ends them with everything that they started.
//!
//! Knows nothing of MCP, of models, or of records: whatever speaks to a program is above this crate. It is
//! the only place in Proctor that starts a process.

pub mod ended;
pub mod environment;
pub mod guard;
pub mod os;
pub mod process;
pub mod program;
pub mod scratch;
pub mod tail;
