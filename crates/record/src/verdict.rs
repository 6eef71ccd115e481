//! The verdict of a check.
//!
//! The main type is [`Verdict`]. It has no default: every pass is an explicit decision.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Pass,
    Fail {
        /// What was expected and what happened instead.
        reason: String,
    },
    /// The record proves neither success nor failure.
    Unknown {
        /// Why the check could not decide.
        reason: String,
    },
}

impl Verdict {
    pub fn fail(reason: impl Into<String>) -> Self {
        Self::Fail {
            reason: reason.into(),
        }
    }

    pub fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown {
            reason: reason.into(),
        }
    }
}
