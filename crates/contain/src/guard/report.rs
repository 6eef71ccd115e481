//! What Proctor is told about a program and its guard, one line each.

use crate::exit::ProcessExit;

/// A line from a guard or its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuardReport {
    /// The guard was stopped.
    Stopped,
    /// The program has ended, and processes that it left keep running.
    Left(ProcessExit),
    /// The program and everything that it started have ended, and the guard can run another.
    Ready(ProcessExit),
    /// The program has ended, and its guard ends too.
    Ended(ProcessExit),
}

impl GuardReport {
    pub(crate) fn render(self) -> String {
        match self {
            Self::Stopped => "stopped\n".to_owned(),
            Self::Left(exit) => format!("left {}\n", words(exit)),
            Self::Ready(exit) => format!("ready {}\n", words(exit)),
            Self::Ended(exit) => format!("{}\n", words(exit)),
        }
    }

    /// Parses a line without its end.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        match line.split_once(' ') {
            None if line == "stopped" => Some(Self::Stopped),
            Some(("left", exit)) => parse_exit(exit).map(Self::Left),
            Some(("ready", exit)) => parse_exit(exit).map(Self::Ready),
            _ => parse_exit(line).map(Self::Ended),
        }
    }
}

fn words(exit: ProcessExit) -> String {
    match exit {
        ProcessExit::Exited(code) => format!("exited {code}"),
        ProcessExit::Signalled(signal) => format!("signalled {signal}"),
        ProcessExit::Unknown => "ended".to_owned(),
    }
}

fn parse_exit(words: &str) -> Option<ProcessExit> {
    match words.split_once(' ') {
        None if words == "ended" => Some(ProcessExit::Unknown),
        Some(("exited", code)) => Some(ProcessExit::Exited(code.parse().ok()?)),
        Some(("signalled", signal)) => Some(ProcessExit::Signalled(signal.parse().ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rendered_reports_parse_back() {
        let exits = [
            ProcessExit::Exited(-1),
            ProcessExit::Signalled(9),
            ProcessExit::Unknown,
        ];
        let kinds = [GuardReport::Left, GuardReport::Ready, GuardReport::Ended];
        let about_exits = kinds.iter().flat_map(|kind| exits.map(kind));
        for report in about_exits.chain([GuardReport::Stopped]) {
            let line = report.render();
            assert_eq!(GuardReport::parse(line.trim_end().as_bytes()), Some(report));
        }
        for wrong in [
            "",
            "exited",
            "exited x",
            "signalled",
            "stopped 1",
            "started",
            "ready",
            "left ",
            "ready stopped",
            "left ready ended",
        ] {
            assert_eq!(GuardReport::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
