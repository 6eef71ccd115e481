//! How many trials of a case must pass, and whether they do.
//!
//! Its main type is [`PassThreshold`]. It knows outcomes, and nothing of runs.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

use std::fmt;

use crate::event::Outcome;

/// Whether a case reached what it must, by one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseVerdict {
    /// It did.
    Met,
    /// It did not.
    Missed,
    /// It depends on trials that are open.
    Open,
}

/// How many trials of a case must pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassThreshold {
    /// Every one, and at least one.
    All,
    /// At least so many of so many.
    AtLeast {
        /// How many.
        passed: u32,
        /// Of how many.
        of: u32,
    },
}

/// What the trials of a case by one agent came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrialCounts {
    /// How many passed.
    pub passed: u32,
    /// How many failed or timed out.
    pub not_passed: u32,
    /// How many errored, were cancelled or were not run.
    pub open: u32,
}

impl TrialCounts {
    /// Of trials that ended so; `None` is one that was not run.
    pub fn of(outcomes: impl IntoIterator<Item = Option<Outcome>>) -> Self {
        let mut standing = Self::default();
        for outcome in outcomes {
            match outcome {
                Some(Outcome::Passed) => standing.passed += 1,
                Some(Outcome::Failed | Outcome::TimedOut) => standing.not_passed += 1,
                Some(Outcome::Errored | Outcome::Cancelled) | None => standing.open += 1,
            }
        }
        standing
    }
}

impl PassThreshold {
    /// The rule that a plan says.
    pub fn of(pass: Option<(u32, u32)>) -> Self {
        match pass {
            Some((passed, of)) => Self::AtLeast { passed, of },
            None => Self::All,
        }
    }

    /// Whether it is kept. With fewer trials than a rule speaks of, the missing ones are open; with
    /// more, the same share of them must pass.
    pub fn verdict(self, standing: TrialCounts) -> CaseVerdict {
        let TrialCounts {
            passed,
            not_passed,
            open,
        } = standing;
        let there = passed + not_passed + open;
        let (needed, trials) = match self {
            Self::All => (there, there),
            Self::AtLeast { passed, of } => {
                let trials = there.max(of);
                let needed = (u64::from(passed) * u64::from(trials)).div_ceil(u64::from(of.max(1)));
                (u32::try_from(needed).unwrap_or(u32::MAX), trials)
            }
        };
        // Nothing passes by default.
        let needed = needed.max(1);
        let best = trials - not_passed;
        if passed >= needed {
            CaseVerdict::Met
        } else if best < needed && trials > 0 {
            CaseVerdict::Missed
        } else {
            CaseVerdict::Open
        }
    }
}

impl fmt::Display for PassThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("every trial"),
            Self::AtLeast { passed, of } => write!(f, "{passed}/{of}"),
        }
    }
}
