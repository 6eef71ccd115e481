//! The exit codes. They are part of the interface: scripts depend on them.

use std::process::ExitCode;

/// The result of a command, as its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Ok,
    /// A case missed its pass rule, a tool returned an error, or `--strict` found a problem.
    Failed,
    /// Usage or configuration error: no trial was started.
    Usage,
    /// A server could not be reached or did not answer, trials errored, or recording failed.
    Inconclusive,
    /// The selection matches no case, trial or eval.
    NothingSelected,
    /// Ctrl-C, SIGTERM or SIGHUP ended the command.
    Interrupted,
    /// A proxied server ended with this code.
    AsTheServer(u8),
}

impl Exit {
    /// Converts the exit code in the record of a run.
    pub(crate) fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Ok,
            1 => Self::Failed,
            2 => Self::Usage,
            130 => Self::Interrupted,
            // Any other code is not a success.
            _ => Self::Inconclusive,
        }
    }

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

    /// Exits at once: a blocked write can't be cancelled.
    pub(crate) fn at_once(self) -> ! {
        std::process::exit(self.code().into())
    }
}

/// The end of a command that has already shown its error.
#[derive(Debug, thiserror::Error)]
#[error("the command ended with exit code {}", .0.code())]
pub(crate) struct ReportedExit(pub(crate) Exit);

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
