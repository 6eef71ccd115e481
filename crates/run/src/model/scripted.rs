//! The scripted model: rules instead of an LLM.

use proctor_core::model::{Reply, Request};

use super::ModelError;

/// A model that follows a file of rules.
#[derive(Debug)]
pub struct Scripted {
    name: String,
}

impl Scripted {
    /// The model, as `scripted:FILE`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks once.
    #[expect(clippy::unused_async, reason = "rules can make it wait")]
    pub async fn ask(&self, _request: &Request) -> Result<Reply, ModelError> {
        Err(ModelError::Rejected {
            detail: format!("`{}` has no rules", self.name),
        })
    }
}
