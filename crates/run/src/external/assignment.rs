//! The input of an external agent, the program to start, and the agent's report.
//!
//! Main types: [`Assignment`], [`Launch`] and [`AgentReport`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use proctor_core::provider::Provider;
use proctor_core::suite::server::AllowedTools;
use proctor_record::model::Usage;

use proctor_models::WireFormat;

/// A task with everything that an agent needs for it.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    /// The prompt. It is data: no part of it is ever executed.
    pub(crate) prompt: String,
    pub(crate) servers: Vec<AgentServer>,
    pub(crate) access: ModelAccess,
    /// Its working folder, which is empty except for skills.
    pub(crate) folder: PathBuf,
    /// The folder of its skills inside the working folder, if it has any.
    pub(crate) skills: Option<String>,
    /// Its home, which is empty.
    pub(crate) home: PathBuf,
    /// Its environment: PATH and similar variables, HOME as above, and its keys.
    pub(crate) environment: BTreeMap<String, String>,
    /// The turn limit, for agents that support one.
    pub(crate) max_turns: Option<u32>,
}

/// A server, as configured for the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentServer {
    /// Its name in the suite.
    pub(crate) name: String,
    /// How to reach it through the tap.
    pub(crate) way: ServerRoute,
    /// The allowed tools. All others are denied.
    pub(crate) allowed: AllowedTools,
    /// The tools that the server listed before the run, to match permission requests.
    pub(crate) tools: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerRoute {
    /// The agent starts a program, the relay.
    Stdio { program: PathBuf, args: Vec<String> },
    /// A proxy that speaks streamable HTTP.
    Http {
        url: String,
        headers: Vec<(String, String)>,
    },
    /// A proxy that speaks HTTP+SSE.
    Sse {
        url: String,
        headers: Vec<(String, String)>,
    },
}

/// How an agent reaches its model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModelAccess {
    /// The provider's name of the model; `None` if the agent chooses it.
    pub(crate) model: Option<String>,
    /// The provider, if the suite names it.
    pub(crate) provider: Option<Provider>,
    /// The custom model URL, if there is one.
    pub(crate) endpoint: Option<ModelUrl>,
}

/// The URL of a model API.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ModelUrl {
    /// The scheme, host, port and path before the API's own path, without a slash at the end. As in
    /// the vendors' variables, it includes `/v1` for OpenAI's APIs (`…/v1` + `/responses`) and not
    /// for the others (`…` + `/v1/messages`).
    pub(crate) base: String,
    /// The key that the agent sends. With the model tap it is valid only at the tap.
    pub(crate) key: String,
    pub(crate) format: WireFormat,
}

impl std::fmt::Debug for ModelUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { base, format, .. } = self;
        write!(f, "Endpoint({base}, {format:?})")
    }
}

/// A program to start in the agent's folder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Launch {
    /// A path, or a name to look up in PATH.
    pub(crate) program: String,
    /// Its arguments, without secrets and without long prompts.
    pub(crate) args: Vec<String>,
    /// Its complete environment: it inherits no variables.
    pub(crate) env: BTreeMap<String, String>,
    /// Files to write first, readable only by their owner, with absolute paths in the folder or the
    /// home.
    pub(crate) files: Vec<(PathBuf, String)>,
    /// The text for its stdin, which is closed afterwards. `None` for ACP agents.
    pub(crate) stdin: Option<String>,
}

/// The agent's own report of its work.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AgentReport {
    pub(crate) answer: Option<String>,
    /// Its complete token usage; `None` if it reports none or only a part.
    pub(crate) usage: Option<Usage>,
    /// The number of requests to its model.
    pub(crate) turns: Option<u32>,
    /// Why it could not do its work, in its own words. Then there is no answer.
    pub(crate) error: Option<String>,
    /// The tools that it tried to use without permission.
    pub(crate) denied: Vec<String>,
    /// The refused permission requests as text, if the tools are unknown.
    pub(crate) refused: Vec<String>,
    /// The servers that it reports as unreachable.
    pub(crate) unreached: Vec<String>,
    /// Whether the error is that its model could not be asked.
    pub(crate) model_lost: bool,
    /// Whether it stopped at its turn limit.
    pub(crate) out_of_turns: bool,
}
