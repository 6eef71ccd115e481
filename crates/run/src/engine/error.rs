//! Why a run did not start.

use std::error::Error;
use std::path::PathBuf;

use proctor_core::problem::Problems;
use proctor_core::record::RecordError;
use proctor_core::suite::Suite;

use super::consent::{ConsentDifference, ConsentPurpose};

/// Why a run did not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A file has errors; the host was given all of them.
    #[error("`{}` has errors", .file.display())]
    InvalidFile {
        file: PathBuf,
        problems: Box<Problems>,
    },
    /// The options contradict each other, or name what is not there.
    #[error("{0}")]
    Usage(String),
    /// Something that the run needs can't be used.
    #[error("{what}")]
    Unusable {
        what: String,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// An agent or a model can't be used.
    #[error(transparent)]
    Missing(Box<dyn Error + Send + Sync>),
    /// The selection matches no case.
    #[error("no case of `{}` is selected", .0.name)]
    NothingSelected(Box<Suite>),
    /// No eval that a server ships is left to run.
    #[error("no evals to run")]
    NoEvals {
        /// Whether one of them is invalid, which fails a run.
        any_invalid: bool,
    },
    /// Consent is needed, and the host can't ask anybody.
    #[error("consent is required, and this host can't ask for it")]
    NoConsent {
        purpose: ConsentPurpose,
        /// Whether an earlier consent no longer holds.
        expired: bool,
    },
    /// The answer to the question for consent was no.
    #[error("consent was refused")]
    Refused,
    /// The servers are no longer what consent was given to.
    #[error(transparent)]
    Changed(ConsentDifference),
    /// A server can't be reached, so nothing is known of it.
    #[error("{0}")]
    Unreachable(String),
    /// A run's folder can't be read or written.
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
