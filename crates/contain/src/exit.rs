//! The exit status of a process.

use std::fmt;

use proctor_record::event::ProcessEnd;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessExit {
    /// It exited with this code.
    Exited(i32),
    Signalled(i32),
    /// The host of the guards was killed, so Proctor did not learn it.
    Unknown,
}

impl From<ProcessExit> for ProcessEnd {
    fn from(ended: ProcessExit) -> Self {
        match ended {
            ProcessExit::Exited(code) => Self::Exited(code),
            ProcessExit::Signalled(signal) => Self::Signalled(signal),
            ProcessExit::Unknown => Self::Unknown,
        }
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Signalled(signal) => match signal_hook::low_level::signal_name(*signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
            Self::Unknown => f.write_str("ended for an unknown reason"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_described() {
        let check = |ended: ProcessExit, expected: &str| assert_eq!(ended.to_string(), expected);
        check(ProcessExit::Exited(1), "exited with code 1");
        check(
            ProcessExit::Signalled(9),
            "was killed by signal 9 (SIGKILL)",
        );
        check(ProcessExit::Signalled(40), "was killed by signal 40");
        check(ProcessExit::Unknown, "ended for an unknown reason");
    }
}
