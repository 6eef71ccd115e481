//! What a check answers.
//!
//! Its main type is [`Verdict`]. It has no default: a pass is always somebody's decision.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

use serde::{Deserialize, Serialize};

/// A check's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// What must hold, holds.
    Pass,
    /// It does not hold.
    Fail {
        /// What was expected and what happened instead.
        reason: String,
    },
    /// It can't be told.
    Unknown {
        /// What stands in the way.
        reason: String,
    },
}

impl Verdict {
    /// A failure with its reason.
    pub fn fail(reason: impl Into<String>) -> Self {
        Self::Fail {
            reason: reason.into(),
        }
    }

    /// No answer, with its reason.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown {
            reason: reason.into(),
        }
    }
}
