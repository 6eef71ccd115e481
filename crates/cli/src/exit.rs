//! What the exit codes mean. They are part of the interface: scripts depend on them.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Ok,
    /// Usage or configuration is wrong, and nothing was started.
    Usage,
    /// The selection matches nothing.
    NothingSelected,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Ok => 0,
            Exit::Usage => 2,
            Exit::NothingSelected => 4,
        })
    }
}
