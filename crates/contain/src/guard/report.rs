//! What Proctor is told about a process, one line each: how a program or a guard ended, and that a
//! guard was stopped.

use crate::exit::ProcessExit;

/// A line about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuardReport {
    Stopped,
    Ended(ProcessExit),
}

impl GuardReport {
    pub(crate) fn render(self) -> String {
        match self {
            Self::Stopped => "stopped\n".to_owned(),
            Self::Ended(ProcessExit::Exited(code)) => format!("exited {code}\n"),
            Self::Ended(ProcessExit::Signalled(signal)) => format!("signalled {signal}\n"),
            Self::Ended(ProcessExit::Unknown) => "ended\n".to_owned(),
        }
    }

    /// Parses a line without its end.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let exit = match line.split_once(' ') {
            None if line == "stopped" => return Some(Self::Stopped),
            None if line == "ended" => ProcessExit::Unknown,
            Some(("exited", code)) => ProcessExit::Exited(code.parse().ok()?),
            Some(("signalled", signal)) => ProcessExit::Signalled(signal.parse().ok()?),
            _ => return None,
        };
        Some(Self::Ended(exit))
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
        for report in exits
            .map(GuardReport::Ended)
            .into_iter()
            .chain([GuardReport::Stopped])
        {
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
        ] {
            assert_eq!(GuardReport::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
