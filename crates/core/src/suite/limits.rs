//! The limits of a trial, and their precedence.

use std::time::Duration;

use serde::Serialize;

use super::eval_file::LimitsFile;

/// The limits of a trial. Absent means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The timeout for setup, agent and verification together.
    #[serde(serialize_with = "super::serialize_optional_duration")]
    pub timeout: Option<Duration>,
    /// The timeout for the cleanup.
    #[serde(serialize_with = "super::serialize_optional_duration")]
    pub cleanup_timeout: Option<Duration>,
    /// Turns of the agent.
    pub max_turns: Option<u32>,
    /// Tokens, in and out.
    pub max_tokens: Option<u64>,
    /// Cost in US dollars.
    pub max_cost_usd: Option<f64>,
}

/// The limits from the command line.
#[derive(Debug, Clone, Copy, Default)]
pub struct LimitFlags {
    /// `--task-timeout`: takes precedence over everything.
    pub timeout: Option<Duration>,
    /// `--default-task-timeout`: takes precedence over the suite's defaults.
    pub default_timeout: Option<Duration>,
    /// `--cleanup-timeout`: takes precedence over everything.
    pub cleanup_timeout: Option<Duration>,
    /// `--default-cleanup-timeout`: takes precedence over the suite's defaults.
    pub default_cleanup_timeout: Option<Duration>,
}

impl Limits {
    /// The limits of a trial: the command line's, else the case's own, else the command line's
    /// defaults, else the suite's defaults, else none.
    #[must_use]
    pub fn settle(flags: &LimitFlags, own: &Self, suite: &Self) -> Self {
        Self {
            timeout: flags
                .timeout
                .or(own.timeout)
                .or(flags.default_timeout)
                .or(suite.timeout),
            cleanup_timeout: flags
                .cleanup_timeout
                .or(own.cleanup_timeout)
                .or(flags.default_cleanup_timeout)
                .or(suite.cleanup_timeout),
            max_turns: own.max_turns.or(suite.max_turns),
            max_tokens: own.max_tokens.or(suite.max_tokens),
            max_cost_usd: own.max_cost_usd.or(suite.max_cost_usd),
        }
    }
}

impl From<&LimitsFile> for Limits {
    fn from(file: &LimitsFile) -> Self {
        Self {
            timeout: file.timeout,
            cleanup_timeout: file.cleanup_timeout,
            max_turns: file.max_turns.map(|n| n.0),
            max_tokens: file.max_tokens.map(|n| u64::from(n.0)),
            max_cost_usd: file.max_cost_usd,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_a_precedence() {
        let seconds = |n| Some(Duration::from_secs(n));
        // In the order of precedence: flag, own, default flag, suite.
        for first in 0..=4 {
            let from = |place: u64| seconds(place).filter(|_| place >= first);
            let flags = LimitFlags {
                timeout: from(0),
                default_timeout: from(2),
                cleanup_timeout: from(0),
                default_cleanup_timeout: from(2),
            };
            let at = |place| Limits {
                timeout: from(place),
                cleanup_timeout: from(place),
                ..Limits::default()
            };
            let expected = seconds(first).filter(|_| first < 4);
            let settled = Limits::settle(&flags, &at(1), &at(3));
            assert_eq!(settled.timeout, expected, "from place {first}");
            assert_eq!(settled.cleanup_timeout, expected, "from place {first}");
        }
    }

    #[test]
    fn counts_come_from_the_case_before_the_suite() {
        let own = Limits {
            max_turns: Some(3),
            ..Limits::default()
        };
        let suite = Limits {
            max_turns: Some(9),
            max_tokens: Some(100),
            max_cost_usd: Some(0.5),
            ..Limits::default()
        };
        let settled = Limits::settle(&LimitFlags::default(), &own, &suite);
        assert_eq!(
            (settled.max_turns, settled.max_tokens, settled.max_cost_usd),
            (Some(3), Some(100), Some(0.5))
        );
    }
}
