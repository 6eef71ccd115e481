//! Why a model can't be asked, known before anything is started.

use proctor_core::hint::listed;
use proctor_core::provider::Provider;

/// Why a model can't be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelOpenError {
    /// There is no key.
    #[error("the model `{model}` needs a key: set {}", .variables.iter().map(|v| format!("`{v}`")).collect::<Vec<_>>().join(" or "))]
    MissingKey {
        /// The model.
        model: String,
        /// The variables that may hold it.
        variables: Vec<String>,
    },
    /// The key can't be sent.
    #[error("what `{0}` holds can't be a key: it has characters that no header can have")]
    BadKey(String),
    /// The address is none.
    #[error("`{0}` is not an HTTP address of a model")]
    BadUrl(String),
    /// It does not say whose model it is.
    #[error("`{0}` does not say whose model it is; write `provider:{0}`")]
    NoProvider(String),
    /// Nobody is known by that name.
    #[error("unknown provider `{0}`; known: {known}", known = listed(Provider::ALL.map(Provider::name)))]
    UnknownProvider(String),
    /// A variable that must say something says nothing.
    #[error("the judge's {what} is missing: {}", match .variable { Some(name) => format!("set `{name}`"), None => "name a variable for it in `llmJudge.env`".to_owned() })]
    MissingVariable {
        /// What it should say.
        what: &'static str,
        /// Its name, if it has one.
        variable: Option<String>,
    },
    /// The agent is a program, and the program knows its model.
    #[error("the agent `{0}` is not a model in Proctor's own loop")]
    NotAModel(String),
    /// TLS or the like could not be set up.
    #[error("HTTP can't be used: {0}")]
    Setup(String),
    /// The script can't be used.
    #[error("{0}")]
    Script(String),
}
