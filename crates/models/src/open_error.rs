//! Errors of opening a model, reported before anything starts.

use proctor_core::provider::Provider;
use proctor_record::hint::listed;

/// Why a model can't be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelOpenError {
    #[error("the model `{model}` needs a key: set {}", .variables.iter().map(|v| format!("`{v}`")).collect::<Vec<_>>().join(" or "))]
    MissingKey {
        model: String,
        /// The variables that may hold the key.
        variables: Vec<String>,
    },
    /// Vertex AI is selected, and something that it needs is not set.
    #[error("the model `{model}` on Vertex AI needs {what}: set {}", .variables.iter().map(|v| format!("`{v}`")).collect::<Vec<_>>().join(" or "))]
    MissingOnVertex {
        model: String,
        what: &'static str,
        variables: Vec<String>,
    },
    /// The key has characters that an HTTP header can't hold.
    #[error("the key in `{0}` has characters that are invalid in an HTTP header")]
    BadKey(String),
    #[error("invalid model URL `{0}`: expected `http://` or `https://`")]
    BadUrl(String),
    #[error("missing provider in `{0}`; write `provider:{0}`")]
    NoProvider(String),
    #[error("unknown provider `{0}`; known: {known}", known = listed(Provider::ALL.map(Provider::name)))]
    UnknownProvider(String),
    /// A required variable of the judge is not set.
    #[error("the judge's {what} is missing: {}", match .variable { Some(name) => format!("set `{name}`"), None => "name a variable for it in `llmJudge.env`".to_owned() })]
    MissingVariable {
        /// The setting that the variable holds, such as the model.
        what: &'static str,
        /// The variable's name, if the suite defines one.
        variable: Option<String>,
    },
    /// The agent is external and uses its own model.
    #[error("the agent `{0}` does not run in Proctor's own loop")]
    NotAModel(String),
    /// The HTTP client, or TLS, could not be set up.
    #[error("can't create the HTTP client: {0}")]
    Setup(String),
    #[error("{0}")]
    Script(String),
}
