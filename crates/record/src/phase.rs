//! The phases of a trial and their names.
//!
//! Its main type is [`Phase`].

use std::fmt;

use serde::{Deserialize, Serialize};

/// A phase of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// Steps before the agent works.
    Setup,
    Serve,
    Drive,
    /// Checks, verify steps and the judge.
    Grade,
    /// Steps that always run.
    Cleanup,
}

impl Phase {
    /// The word in records, reports and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Serve => "serve",
            Self::Drive => "drive",
            Self::Grade => "grade",
            Self::Cleanup => "cleanup",
        }
    }

    /// The name of its steps in task files and in the extension protocol.
    pub const fn step_word(self) -> &'static str {
        match self {
            Self::Grade => "verify",
            Self::Setup | Self::Serve | Self::Drive | Self::Cleanup => self.name(),
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_reports_spell_a_phase_alike() {
        for phase in [
            Phase::Setup,
            Phase::Serve,
            Phase::Drive,
            Phase::Grade,
            Phase::Cleanup,
        ] {
            assert_eq!(serde_json::to_value(phase).unwrap(), phase.name());
        }
    }
}
