//! What is to be run, resolved: an eval file with everything it names.
//!
//! Its main type is [`Suite`]; [`load()`] makes one from disk. The `*_file` modules hold the written
//! forms and their words (Eval, Task, assertions); everything else here speaks of suites, cases
//! and checks.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::Value;

use self::template::Template;
use crate::check::Check;
use crate::event::TaskSetConfig;

pub mod agent;
pub mod agent_environment;
pub mod agent_file;
pub mod assertion_file;
mod digest;
pub mod eval_file;
pub(crate) mod files;
pub mod go_template;
mod limits;
mod load;
pub mod mcp_file;
mod resolve_assertions;
mod resolve_suite;
mod resolve_task;
mod resolve_task_sets;
pub mod schema;
pub mod server;
pub mod step;
pub mod step_file;
pub mod task_file;
pub mod template;
mod variables;

pub use agent::Agent;
pub use digest::{agent_settings, digest, server_settings, surroundings};
pub use eval_file::{Isolation, Level, PassRule};
pub use limits::{LimitFlags, Limits};
pub use load::{Inputs, LoadedFile, load, load_agent, load_agent_file, load_any, load_script};
pub use server::Server;
pub use step::Step;
pub use task_file::Difficulty;
pub use variables::Environment;

/// A suite, ready to be planned.
#[derive(Debug, Clone)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// The eval file.
    pub path: PathBuf,
    /// The servers under test.
    pub servers: Vec<Server>,
    /// The agents that do the cases, one after another.
    pub agents: Vec<Agent>,
    /// Who judges what no other check can decide.
    pub judge: Option<JudgeConfig>,
    /// Limits of cases that set none.
    pub default_limits: Limits,
    /// Programs that add kinds of steps.
    pub extensions: Vec<Extension>,
    /// Folders of skills that agents get.
    pub skills: Vec<PathBuf>,
    /// How far trials are kept apart.
    pub isolation: Isolation,
    /// What is evaluated, in order.
    pub cases: Vec<Case>,
    /// The task sets, as they are written.
    pub task_sets: Vec<TaskSetConfig>,
    /// Shipped evals that become cases once their server was asked.
    pub shipped: Vec<ShippedEvalSet>,
    /// Sources whose folder was not given, so that their cases are missing here.
    pub unfetched: Vec<TaskSource>,
}

/// One thing to evaluate.
#[derive(Debug, Clone)]
pub struct Case {
    /// Which case it is, across runs.
    pub id: CaseId,
    /// Its name.
    pub name: String,
    /// The task file.
    pub path: PathBuf,
    /// How hard it is.
    pub difficulty: Option<Difficulty>,
    /// Labels to select by.
    pub labels: BTreeMap<String, String>,
    /// Whether it may run beside others.
    pub parallel: bool,
    /// How often it is run, unless the command line says.
    pub runs: Option<u32>,
    /// Its own limits.
    pub limits: Limits,
    /// What the agent is asked, once the setup is done.
    pub prompt: Template,
    /// Before the agent starts.
    pub setup: Vec<Step>,
    /// After the agent is done: all must pass.
    pub verify: Vec<Step>,
    /// Always, at the end.
    pub cleanup: Vec<Step>,
    /// What must hold of the transcript. Cases of one task set share theirs.
    pub checks: Vec<Arc<Check>>,
    /// How many of its trials must pass.
    pub pass: Option<PassRule>,
    /// What the task needs and the suite does not have. A case with any can't be run.
    pub unmet: Vec<String>,
    /// What is done instead of a task, if a server ships it.
    pub shipped: Option<Arc<ShippedEval>>,
}

impl Case {
    /// Whether anything could fail it.
    pub fn has_checks(&self) -> bool {
        !self.checks.is_empty() || !self.verify.is_empty() || self.shipped.is_some()
    }

    /// A case that a server ships. Its id says which server and which eval.
    pub fn of_eval(shipped: ShippedEval) -> Self {
        let (server, id) = (&shipped.server, &shipped.eval.id);
        Self {
            id: CaseId(format!("evals/{server}#{id}")),
            name: id.clone(),
            path: PathBuf::from(format!("evals/{server}")),
            difficulty: None,
            labels: BTreeMap::new(),
            parallel: false,
            runs: None,
            limits: Limits::default(),
            prompt: Template::literal(""),
            setup: Vec::new(),
            verify: Vec::new(),
            cleanup: Vec::new(),
            checks: Vec::new(),
            pass: None,
            unmet: Vec::new(),
            shipped: Some(Arc::new(shipped)),
        }
    }
}

/// An eval that a server ships, ready to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct ShippedEval {
    /// The server, by its name in the suite.
    pub server: String,
    /// The eval. It is valid.
    pub eval: mcp_evals::Eval,
    /// How many turns a scenario may take.
    pub max_turns: u32,
}

impl ShippedEval {
    /// Whether a model is asked to do it.
    pub fn needs_model(&self) -> bool {
        !matches!(self.eval.input, mcp_evals::Input::Execution(_))
    }

    /// Whether a judge is asked about it.
    pub fn needs_judge(&self) -> bool {
        matches!(self.eval.expected, mcp_evals::Expected::LlmJudge(_))
    }
}

/// Which case it is, across runs: the path of its file inside the suite, and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct CaseId(pub String);

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who judges what no other check can decide.
#[derive(Debug, Clone)]
pub struct JudgeConfig {
    /// Which model.
    pub model: JudgeModel,
    /// How often a criterion is judged; odd.
    pub votes: u32,
}

/// Which model judges.
#[derive(Debug, Clone)]
pub enum JudgeModel {
    /// An agent, usually a model in Proctor's own loop.
    Agent(Box<Agent>),
    /// An OpenAI-compatible model that environment variables name.
    Environment {
        /// The variable that says whose model it is.
        provider: Option<String>,
        /// The variable that holds the URL.
        base_url: Option<String>,
        /// The variable that holds the key.
        api_key: Option<String>,
        /// The variable that holds the model's name.
        model: Option<String>,
    },
}

/// A program that adds kinds of steps.
#[derive(Debug, Clone)]
pub struct Extension {
    /// Its name in the suite.
    pub alias: String,
    /// The program.
    pub package: Package,
    /// What it is told at its start.
    pub config: Value,
    /// What is added to its environment.
    pub env: BTreeMap<String, String>,
}

/// Where an extension's program is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Package {
    /// On this machine.
    Local(PathBuf),
    /// A release of a repository.
    Release {
        /// The repository's address.
        repository: String,
        /// The release's tag.
        version: String,
    },
}

/// Shipped evals that become cases once their server was asked.
#[derive(Debug, Clone)]
pub struct ShippedEvalSet {
    /// The server.
    pub server: String,
    /// Only those of one level.
    pub level: Option<Level>,
    /// What must hold besides.
    pub checks: Vec<Arc<Check>>,
    /// How many of a case's trials must pass.
    pub pass: Option<PassRule>,
}

/// Another git repository that cases come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSource {
    /// Its name in the suite.
    pub name: String,
    /// The repository.
    pub repo: String,
    /// A branch, tag or commit.
    pub reference: Option<String>,
}

fn serialize_duration<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&crate::duration::render(*duration))
}

#[expect(
    clippy::ref_option,
    reason = "serde hands over a reference to the field"
)]
fn serialize_optional_duration<S: Serializer>(
    duration: &Option<Duration>,
    to: S,
) -> Result<S::Ok, S::Error> {
    duration.map(crate::duration::render).serialize(to)
}
