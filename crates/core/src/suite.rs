//! A resolved suite: an eval file with all files that it names.
//!
//! Its main type is [`Suite`]; [`load()`] reads one from disk. The `*_file` modules hold the file
//! formats and their words (Eval, Task, assertions); the other modules work with suites, cases
//! and checks.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proctor_record::event::{CheckPlace, PlannedGates, PlannedKnownFailure, TaskSetConfig};
use serde::{Serialize, Serializer};
use serde_json::Value;

use self::replies::ClientReplies;
use self::template::Template;
use self::turns::UserTurn;
use crate::check::Check;
use crate::contract::SurfaceContract;
use crate::lint::SwitchedOffRule;

pub mod agent;
pub mod agent_environment;
pub mod agent_file;
pub mod assertion_file;
pub mod auth;
pub mod auth_file;
pub mod checkout;
mod digest;
pub mod eval_file;
pub(crate) mod files;
pub mod find;
pub mod gates_file;
pub mod go_template;
pub mod known_failures_file;
mod limits;
mod load;
pub mod lock_file;
pub mod mcp_file;
mod package;
pub mod protocol;
pub mod replies;
pub mod replies_file;
mod resolve_assertions;
mod resolve_run_steps;
mod resolve_selection;
mod resolve_sources;
mod resolve_suite;
mod resolve_task;
mod resolve_task_sets;
mod rows;
pub mod schema;
pub mod selection_file;
pub mod server;
mod server_list;
mod source;
pub mod step;
pub mod step_file;
pub mod surface_file;
pub mod task_file;
pub mod template;
pub mod trial_values;
pub mod turns;
pub mod turns_file;
mod variables;
mod workspace;

pub use agent::Agent;
pub use digest::{agent_settings, checks, digest, parts, server_settings, surroundings};
pub use eval_file::{Isolation, Level, PassRule};
pub use files::LFS_POINTER;
pub use limits::{LimitFlags, Limits};
pub use load::{Inputs, LoadedFile, load, load_agent, load_agent_file, load_any, load_script};
pub use package::{Package, PackageState, ReleasePackage, is_release, platform};
pub use resolve_selection::PLACEHOLDER;
pub use selection_file::MessageRole;
pub use server::Server;
pub use source::{Repository, SourceState, TaskSource};
pub use step::Step;
pub use task_file::Difficulty;
pub use trial_values::{RandomPort, TrialValues};
pub use variables::Environment;
pub use workspace::Workspace;

/// A suite, ready to be planned.
#[derive(Debug, Clone)]
pub struct Suite {
    pub name: String,
    pub path: PathBuf,
    /// The servers under test.
    pub servers: Vec<Server>,
    /// The agents that do the cases, one after another.
    pub agents: Vec<Agent>,
    /// The judge of the suite.
    pub judge: Option<JudgeConfig>,
    /// The limits of cases that set none.
    pub default_limits: Limits,
    /// Programs that add step types.
    pub extensions: Vec<Extension>,
    /// The folders of the skills that agents can use.
    pub skills: Vec<PathBuf>,
    /// The steps before the servers start, once per run.
    pub setup: Vec<Step>,
    /// The steps after the last trial, once per run. They always run.
    pub cleanup: Vec<Step>,
    /// The timeout of these steps together.
    pub cleanup_timeout: Option<Duration>,
    /// Whether servers are started and listed before the first trial, instead of in each trial.
    pub preflight: bool,
    /// The workspace of cases that have none of their own.
    pub workspace: Option<Arc<Workspace>>,
    /// How trials are isolated from each other.
    pub isolation: Isolation,
    /// The conditions for success, unless the command line sets them.
    pub gates: PlannedGates,
    /// The run that a new run must not be worse than, as written: a path relative to the eval file, or a
    /// name such as `latest`.
    pub no_regression: Option<String>,
    /// The cases that are expected to fail.
    pub known_failures: Vec<PlannedKnownFailure>,
    /// What may change about the servers.
    pub surface: Option<SurfaceContract>,
    /// The lint rules that are switched off.
    pub lint_off: Vec<SwitchedOffRule>,
    /// The cases to evaluate, in order.
    pub cases: Vec<Case>,
    /// The task sets as the eval file has them.
    pub task_sets: Vec<TaskSetConfig>,
    /// Shipped evals. They become cases after their server has listed them.
    pub shipped: Vec<ShippedEvalSet>,
    /// The other repositories that cases come from. The cases of those that are not here are missing.
    pub sources: Vec<TaskSource>,
}

impl Suite {
    /// The sources whose cases are missing.
    pub fn unfetched(&self) -> impl Iterator<Item = &TaskSource> {
        self.sources.iter().filter(|source| source.root().is_none())
    }
}

/// One thing to evaluate: a task of the suite, or a shipped eval.
#[derive(Debug, Clone)]
pub struct Case {
    /// Identifies the case across runs.
    pub id: CaseId,
    pub name: String,
    pub path: PathBuf,
    pub difficulty: Option<Difficulty>,
    /// Labels to select by.
    pub labels: BTreeMap<String, String>,
    /// Whether it may run in parallel with others.
    pub parallel: bool,
    /// The number of runs per agent, unless the command line sets it.
    pub runs: Option<u32>,
    pub limits: Limits,
    /// The folder whose content each trial starts with in its own folder.
    pub workspace: Option<Arc<Workspace>>,
    /// The prompt. Its templates are filled in after the setup.
    pub prompt: Template,
    /// What the user says after the agent's first answer.
    pub turns: Vec<UserTurn>,
    /// The replies to requests of servers, by server. They replace those of the MCP config.
    pub replies: BTreeMap<String, ClientReplies>,
    /// The steps before the agent starts.
    pub setup: Vec<Step>,
    /// The steps after the agent ends. All must pass.
    pub verify: Vec<Step>,
    /// The steps at the end of the trial. They always run.
    pub cleanup: Vec<Step>,
    /// The checks on the transcript. All cases of a task set share them.
    pub checks: Vec<Arc<Check>>,
    /// Where the checks and verify steps are written.
    pub places: Vec<CheckPlace>,
    /// How many trials must pass. By default all.
    pub pass: Option<PassRule>,
    /// The servers that the agent gets; `None` means all.
    pub servers: Option<Vec<String>>,
    /// Requirements that the suite does not meet. A case with any can't run.
    pub unmet: Vec<String>,
    /// The shipped eval to run, if the case is not a task.
    pub shipped: Option<Arc<ShippedEval>>,
    /// The conversation to continue with one turn, if the case is a selection row.
    pub selection: Option<Arc<SelectionInput>>,
}

/// The conversation of a selection row. It ends with a message of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectionInput {
    pub messages: Vec<SelectionMessage>,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectionMessage {
    pub role: MessageRole,
    pub text: String,
}

impl Suite {
    /// All replies that any trial may give to a server: what its client may declare.
    pub fn declared_replies(&self, server: &Server) -> ClientReplies {
        let own = self.cases.iter().map(|case| case.replies.get(&server.name));
        own.fold(server.client.replies.clone(), |replies, own| {
            replies.overridden_by(own)
        })
    }
}

impl Case {
    /// Whether the case has any check that could fail.
    pub fn has_checks(&self) -> bool {
        !self.checks.is_empty() || !self.verify.is_empty() || self.shipped.is_some()
    }

    /// A case that does nothing and checks nothing yet.
    fn new(id: CaseId, name: String, path: PathBuf) -> Self {
        Self {
            id,
            name,
            path,
            difficulty: None,
            labels: BTreeMap::new(),
            parallel: false,
            runs: None,
            limits: Limits::default(),
            workspace: None,
            prompt: Template::literal(""),
            turns: Vec::new(),
            replies: BTreeMap::new(),
            setup: Vec::new(),
            verify: Vec::new(),
            cleanup: Vec::new(),
            checks: Vec::new(),
            places: Vec::new(),
            pass: None,
            servers: None,
            unmet: Vec::new(),
            shipped: None,
            selection: None,
        }
    }

    /// Whether the agent gets a server.
    pub fn uses(&self, server: &str) -> bool {
        let listed = self.servers.as_ref();
        listed.is_none_or(|listed| listed.iter().any(|name| name == server))
    }

    /// The case of a shipped eval. Its id contains the server and the eval.
    pub fn of_eval(shipped: ShippedEval) -> Self {
        let (server, id) = (&shipped.server, &shipped.eval.id);
        let path = format!("evals/{server}");
        let case = Self::new(CaseId(format!("{path}#{id}")), id.clone(), path.into());
        Self {
            servers: Some(vec![shipped.server.clone()]),
            shipped: Some(Arc::new(shipped)),
            ..case
        }
    }
}

/// A valid eval that a server ships.
#[derive(Debug, Clone, PartialEq)]
pub struct ShippedEval {
    /// The server, by its name in the suite.
    pub server: String,
    pub eval: mcp_evals::Eval,
    /// The maximum number of turns of a scenario.
    pub max_turns: u32,
}

impl ShippedEval {
    /// Whether the eval needs a model.
    pub fn needs_model(&self) -> bool {
        !matches!(self.eval.input, mcp_evals::Input::Execution(_))
    }

    /// Whether the eval needs a judge.
    pub fn needs_judge(&self) -> bool {
        matches!(self.eval.expected, mcp_evals::Expected::LlmJudge(_))
    }
}

/// Identifies a case across runs: the path of its file inside the suite, and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct CaseId(pub String);

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The judge of the suite.
#[derive(Debug, Clone)]
pub struct JudgeConfig {
    pub model: JudgeModel,
    /// The number of votes per criterion, always odd.
    pub votes: u32,
}

/// The model that judges.
#[derive(Debug, Clone)]
pub enum JudgeModel {
    /// An agent, usually a model in Proctor's own loop.
    Agent(Box<Agent>),
    /// An OpenAI-compatible model that environment variables name.
    Environment {
        /// The variable that names the provider.
        provider: Option<String>,
        /// The variable that holds the URL.
        base_url: Option<String>,
        /// The variable that holds the key.
        api_key: Option<String>,
        /// The variable that holds the model's name.
        model: Option<String>,
    },
}

/// A program that adds step types.
#[derive(Debug, Clone)]
pub struct Extension {
    /// Its name in the suite.
    pub alias: String,
    pub package: Package,
    /// The configuration that it gets when it starts.
    pub config: Value,
    pub env: BTreeMap<String, String>,
}

/// Shipped evals. They become cases after their server has listed them.
#[derive(Debug, Clone)]
pub struct ShippedEvalSet {
    pub server: String,
    /// Selects only evals of this level.
    pub level: Option<Level>,
    /// Additional checks on the transcript.
    pub checks: Vec<Arc<Check>>,
    /// Where the checks are written.
    pub places: Vec<CheckPlace>,
    /// The pass rule of each case.
    pub pass: Option<PassRule>,
}

fn serialize_duration<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&proctor_record::duration::render(*duration))
}

#[expect(
    clippy::ref_option,
    reason = "serde hands over a reference to the field"
)]
fn serialize_optional_duration<S: Serializer>(
    duration: &Option<Duration>,
    to: S,
) -> Result<S::Ok, S::Error> {
    duration.map(proctor_record::duration::render).serialize(to)
}
