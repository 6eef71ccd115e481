//! Evals that a server lists and that are not run.

use serde::{Deserialize, Serialize};

/// An eval that is listed, and not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotRun {
    /// The eval, if it has an id.
    pub eval_id: Option<String>,
    /// The server that ships it.
    pub server: String,
    /// Why it is not run, in a word.
    pub outcome: NotRunOutcome,
    /// Why exactly.
    pub reason: String,
}

/// Why an eval is not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotRunOutcome {
    /// It breaks a rule; the run fails for it.
    Invalid,
    /// It is of a type that is not known here.
    Skipped,
}
