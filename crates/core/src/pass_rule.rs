//! Pass rules: how many trials of a case must pass.
//!
//! Its main type is [`PassThreshold`]. It depends on outcomes only, not on runs.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

use std::fmt;

use proctor_record::event::Outcome;

/// Whether a case meets its pass rule with one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseVerdict {
    Met,
    Missed,
    /// Inconclusive: the result depends on trials without a verdict.
    Open,
    /// It misses its pass rule, as its entry in `knownFailures` says.
    KnownFailure,
}

/// How many trials of a case must pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassThreshold {
    /// Every one, and at least one.
    All,
    /// At least `least` of `of` trials.
    AtLeast { passed: u32, of: u32 },
}

/// The results of the trials of a case by one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrialCounts {
    pub passed: u32,
    /// The number of trials that failed or timed out.
    pub not_passed: u32,
    /// The number of trials that errored, were cancelled or did not run.
    pub open: u32,
}

impl TrialCounts {
    /// Counts trials by outcome; `None` is a trial that did not run.
    pub fn of(outcomes: impl IntoIterator<Item = Option<Outcome>>) -> Self {
        let mut counts = Self::default();
        for outcome in outcomes {
            match outcome {
                Some(Outcome::Passed) => counts.passed += 1,
                Some(Outcome::Failed | Outcome::TimedOut) => counts.not_passed += 1,
                Some(Outcome::Errored | Outcome::Cancelled) | None => counts.open += 1,
            }
        }
        counts
    }

    /// The number of trials with a verdict.
    pub fn counted(&self) -> u32 {
        self.passed + self.not_passed
    }

    pub fn total(&self) -> u32 {
        self.counted() + self.open
    }
}

impl PassThreshold {
    /// The pass rule of a plan.
    pub fn of(pass: Option<(u32, u32)>) -> Self {
        match pass {
            Some((passed, of)) => Self::AtLeast { passed, of },
            None => Self::All,
        }
    }

    /// Whether the trials meet the rule. With fewer trials than the rule names, the missing ones have no verdict; with
    /// more, the same share of them must pass.
    pub fn verdict(self, counts: TrialCounts) -> CaseVerdict {
        let TrialCounts {
            passed,
            not_passed,
            open,
        } = counts;
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
