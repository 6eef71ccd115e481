//! Errors that prevent a run from starting.

use std::error::Error;
use std::path::PathBuf;

use proctor_core::plan::Selection;
use proctor_core::suite::Suite;
use proctor_record::problem::Problems;
use proctor_record::record::RecordError;

use super::consent::{ConsentDifference, ConsentPurpose};

/// Why a run did not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A file has errors, which the host has received.
    #[error("`{}` has errors", .file.display())]
    InvalidFile {
        file: PathBuf,
        problems: Box<Problems>,
    },
    /// The options contradict each other or name something unknown.
    #[error("{0}")]
    Usage(String),
    /// Something that the run needs is unusable.
    #[error("{what}")]
    Unusable {
        what: String,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// An agent or a model is unusable.
    #[error(transparent)]
    Missing(Box<dyn Error + Send + Sync>),
    #[error("no case of `{}` is selected", .suite.name)]
    NothingSelected {
        suite: Box<Suite>,
        selection: Box<Selection>,
    },
    /// No case of the latest run has to run again, or there is no such run.
    #[error("nothing to rerun: {0}")]
    NothingToRerun(String),
    #[error("no evals to run")]
    NoEvals {
        /// Whether an eval is invalid, which fails a run.
        any_invalid: bool,
    },
    /// Consent is required, and the host can't ask for it.
    #[error("consent is required, and this host can't ask for it")]
    NoConsent {
        purpose: ConsentPurpose,
        /// Whether an earlier consent expired.
        expired: bool,
    },
    /// The user refused consent.
    #[error("consent was refused")]
    Refused,
    /// The servers changed since consent was given.
    #[error(transparent)]
    Changed(ConsentDifference),
    /// A server can't be reached.
    #[error("{0}")]
    Unreachable(String),
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl EngineError {
    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }

    pub(super) fn unusable(
        what: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Unusable {
            what: what.into(),
            source: source.into(),
        }
    }
}
