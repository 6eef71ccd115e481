//! The result file of mcpchecker: the JSON report without Proctor's own objects.
//!
//! Main function: [`write()`]. The format has one agent, so a run of several agents becomes several files.

use std::io::Write;

use crate::{Report, ReportError, json};

/// Writes the result file of the agent with this index in the plan.
pub fn write(report: &Report<'_>, agent: usize, out: &mut dyn Write) -> Result<(), ReportError> {
    json::document(report, Some(agent), out)
}
