//! What an external agent is given, what is started for it, and what it tells.
//!
//! Main types: [`Assignment`], [`Launch`] and [`AgentReport`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use proctor_core::model::Usage;
use proctor_core::provider::Provider;
use proctor_core::suite::server::AllowedTools;

use proctor_models::WireFormat;

/// A task, and all that an agent needs for it.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    /// What it is asked to do. Data: nothing in it is ever executed.
    pub(crate) prompt: String,
    /// The servers that it may use.
    pub(crate) servers: Vec<AgentServer>,
    /// How it reaches its model.
    pub(crate) access: ModelAccess,
    /// Its working folder, which is empty but for skills.
    pub(crate) folder: PathBuf,
    /// Where its skills are, in the working folder, if it has any.
    pub(crate) skills: Option<String>,
    /// Its home, which is empty.
    pub(crate) home: PathBuf,
    /// What it inherits: PATH and the like, HOME as above, and what its keys are in.
    pub(crate) environment: BTreeMap<String, String>,
    /// How often its model may be asked, for agents that can be told.
    pub(crate) max_turns: Option<u32>,
}

/// A server, as the agent is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentServer {
    /// Its name in the suite.
    pub(crate) name: String,
    /// How to reach it: through the tap.
    pub(crate) way: ServerRoute,
    /// The tools that the agent may use. Everything else is denied.
    pub(crate) allowed: AllowedTools,
    /// The tools that the server listed before the run, to tell which one a permission is asked for.
    pub(crate) tools: Vec<String>,
}

/// How an agent reaches a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerRoute {
    /// By starting a program: the relay.
    Stdio {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        args: Vec<String>,
    },
    /// Over streamable HTTP.
    Http {
        /// Where.
        url: String,
        /// The headers to send.
        headers: Vec<(String, String)>,
    },
    /// Over the older HTTP with server-sent events.
    Sse {
        /// Where.
        url: String,
        /// The headers to send.
        headers: Vec<(String, String)>,
    },
}

/// How an agent reaches its model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModelAccess {
    /// The model, by its provider's name for it; the agent's own choice, if absent.
    pub(crate) model: Option<String>,
    /// Whose model it is, in the suite's words for providers, if the suite says so.
    pub(crate) provider: Option<Provider>,
    /// Where it is, if not where the agent would look.
    pub(crate) endpoint: Option<ModelUrl>,
}

/// A place where models are asked.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ModelUrl {
    /// The scheme, host and port, and what stands before the format's own path; no slash at the end. As
    /// in the vendors' variables, `/v1` belongs to it for OpenAI's formats (`…/v1` + `/responses`), and
    /// to the path for the others (`…` + `/v1/messages`).
    pub(crate) base: String,
    /// The key that the agent sends. With the model tap it opens nothing but the tap.
    pub(crate) key: String,
    /// What is spoken there.
    pub(crate) format: WireFormat,
}

impl std::fmt::Debug for ModelUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { base, format, .. } = self;
        write!(f, "Endpoint({base}, {format:?})")
    }
}

/// A program that is to be started in the agent's folder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Launch {
    /// A path, or a name to be found in PATH.
    pub(crate) program: String,
    /// Its arguments. No secret and no prompt that could be long is among them.
    pub(crate) args: Vec<String>,
    /// Its complete environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Files to be written before, for their owner only: absolute, in the folder or the home.
    pub(crate) files: Vec<(PathBuf, String)>,
    /// What it reads on its stdin, which is closed afterwards. ACP agents are spoken to instead.
    pub(crate) stdin: Option<String>,
}

/// What an agent said of its work when it was done.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AgentReport {
    /// Its final answer.
    pub(crate) answer: Option<String>,
    /// The tokens that it took, all of them; `None` if it does not tell, or only of a part.
    pub(crate) usage: Option<Usage>,
    /// How often its model was asked.
    pub(crate) turns: Option<u32>,
    /// That it could not do its work, in its words: the answer is none.
    pub(crate) error: Option<String>,
    /// The tools that it wanted and was not allowed to use.
    pub(crate) denied: Vec<String>,
    /// The permissions that it was refused, in words, where nobody can tell which tools were meant.
    pub(crate) refused: Vec<String>,
    /// The servers that it could not reach, by its own account.
    pub(crate) unreached: Vec<String>,
    /// Whether that is because its model could not be asked.
    pub(crate) model_lost: bool,
    /// It stopped at its limit of turns.
    pub(crate) out_of_turns: bool,
}
