//! What the exit codes mean. They are part of the interface: scripts depend on them.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Ok,
    /// What was tried did not succeed.
    Failed,
    /// Usage or configuration is wrong, and nothing was started.
    Usage,
    /// It could not be told: a server was not there or did not answer, or the record could not be kept.
    Inconclusive,
    /// The selection matches nothing.
    NothingSelected,
    /// Somebody pressed Ctrl-C or closed the terminal, or sent SIGTERM.
    Interrupted,
    /// A server that it stood for ended with this code.
    AsTheServer(u8),
}

impl Exit {
    /// What a run's record names as its exit code.
    pub(crate) fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Ok,
            1 => Self::Failed,
            130 => Self::Interrupted,
            // Whatever else it is, it is not well.
            _ => Self::Inconclusive,
        }
    }

    /// The number that scripts see.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Inconclusive => 3,
            Self::NothingSelected => 4,
            Self::Interrupted => 130,
            Self::AsTheServer(code) => code,
        }
    }

    /// Ends the program now: a write that nobody reads can't be told to end.
    pub(crate) fn at_once(self) -> ! {
        std::process::exit(self.code().into())
    }
}

/// The end of a command whose reason was shown already: nothing is left but to exit.
#[derive(Debug, thiserror::Error)]
#[error("the command ended with exit code {}", .0.code())]
pub(crate) struct ReportedExit(pub(crate) Exit);

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
