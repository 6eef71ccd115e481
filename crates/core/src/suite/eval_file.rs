//! The file format of an eval file (`kind: Eval`).
//!
//! Its main type is [`SuiteFile`]: the content of the file, not resolved.

use std::time::Duration;

use proctor_record::hint::{listed, nearest};
use proctor_record::problem::{Code, Problem, WithSpan};
use serde_json::{Value, json};

use super::assertion_file::AssertionsFile;
use super::gates_file::GatesFile;
use super::known_failures_file::KnownFailureFile;
use super::rows::node_names;
use super::step_file::StepFile;
use super::surface_file::{LintFile, SurfaceFile};
use crate::builtin_agent::BuiltinAgent;
use crate::decode::{
    Context, Decode, Definitions, KeySpans, LooseText, NonEmpty, PositiveInteger, RequiredKey,
    StrictKeys, Table, record, words,
};
use crate::document::Node;

words! {
    /// The value of `kind` in an eval file.
    pub enum EvalKind {
        "Eval" => Eval,
    }
}

words! {
    /// The version of the format. It only changes how tasks are written.
    pub enum ApiVersion {
        /// The task has its scripts under `steps`.
        "mcpchecker/v1alpha1" => V1Alpha1,
        /// The task has its steps under `spec`.
        "mcpchecker/v1alpha2" => V1Alpha2,
    }
}

record! {
    /// An eval suite: the agents, servers, tasks and checks of a run.
    pub struct SuiteFile {
        /// The JSON Schema that editors use to check this file.
        "$schema" => schema: Option<LooseText>,
        /// Must be `Eval`.
        "kind" => kind: RequiredKey<EvalKind>,
        /// The version of the format. It has no effect in this file.
        "apiVersion" => api_version: Option<ApiVersion>,
        /// The name and labels of the suite.
        "metadata" => metadata: RequiredKey<EvalMetadata>,
        /// The agents, servers and tasks.
        "config" => config: RequiredKey<EvalConfig>,
    }
}

record! {
    /// The name and labels of a suite.
    pub struct EvalMetadata {
        /// The name of the suite, unique among your suites.
        "name" => name: RequiredKey<WithSpan<LooseText>>,
        /// A description of the suite.
        "description" => description: Option<LooseText>,
        /// A category to group suites by.
        "category" => category: Option<LooseText>,
        /// Labels of the suite itself. They don't select tasks.
        "labels" => labels: Table<LooseText>,
        /// Annotations that Proctor stores unchanged.
        "annotations" => annotations: Option<Node>,
    }
}

record! {
    /// The agents, servers and tasks.
    pub struct EvalConfig one_of ["agent", "agentFile", "agents"] {
        /// The agent that does the tasks.
        "agent" => agent: Option<WithSpan<AgentRefFile>>,
        /// The old form of `agent: {type: file, path: …}`.
        "agentFile" => agent_file: Option<WithSpan<String>>,
        /// Several agents. Each of them does all tasks. Only Proctor supports this key.
        "agents" => agents: Option<NonEmpty<WithSpan<AgentRefFile>>>,
        /// The MCP config: the file that lists the MCP servers.
        "mcpConfigFile" => mcp_config_file: Option<RequiredKey<WithSpan<String>>>,
        /// The tasks, with the assertions to check after each.
        "taskSets" => task_sets: RequiredKey<WithSpan<Vec<WithSpan<TaskSetFile>>>>,
        /// The judge: a model that decides whether an answer meets a criterion.
        "llmJudge" => judge: Option<StrictKeys<WithSpan<JudgeFile>>>,
        /// The limits of tasks that set no limits of their own.
        "defaultTaskLimits" => default_limits: Option<LimitsFile>,
        /// Extensions, by alias: programs that add step types.
        "extensions" => extensions: Table<ExtensionFile>,
        /// Other git repositories from which task sets take tasks, by name.
        "sources" => sources: Table<SourceFile>,
        /// The skills that the agent can use.
        "skills" => skills: Option<SkillsFile>,
        /// The steps before the servers start, once per run. Only Proctor supports this key.
        "setup" => setup: Vec<StepFile>,
        /// The steps after the last trial, once per run. They always run. Only Proctor supports this key.
        "cleanup" => cleanup: Vec<StepFile>,
        /// The timeout for `cleanup`, by default `defaultTaskLimits.cleanupTimeout`. Only Proctor supports this key.
        "cleanupTimeout" => cleanup_timeout: Option<Duration>,
        /// Whether servers are started and listed before the first trial, `true` by default. Only Proctor supports this key.
        "preflight" => preflight: Option<WithSpan<bool>>,
        /// A folder whose content each trial starts with in `{trial.dir}`, unless its task names another. Only Proctor
        /// supports this key.
        "workspace" => workspace: Option<WithSpan<String>>,
        /// Whether each trial starts its own servers. Only Proctor supports this key.
        "isolation" => isolation: Option<Isolation>,
        /// The conditions for success. Only Proctor supports this key.
        "gates" => gates: Option<StrictKeys<GatesFile>>,
        /// The cases that are expected to fail. Only Proctor supports this key.
        "knownFailures" => known_failures: Option<StrictKeys<Vec<WithSpan<KnownFailureFile>>>>,
        /// The surface contract: what may change about the servers. Only Proctor supports this key.
        "surface" => surface: Option<StrictKeys<SurfaceFile>>,
        /// The rules of `proctor lint`. Only Proctor supports this key.
        "lint" => lint: Option<StrictKeys<LintFile>>,
    }
}

words! {
    /// How trials are isolated from each other.
    pub enum Isolation {
        /// Each trial starts its own servers.
        "trial" => Trial,
        /// All trials share the same servers.
        "run" => Run,
    }
}

record! {
    /// A reference to an agent, with its model.
    pub struct AgentRefFile {
        /// The type: `file`, or a built-in agent such as `builtin.claude-code`.
        "type" => kind: RequiredKey<WithSpan<AgentType>>,
        /// The path of the agent file, for type `file`.
        "path" => path: Option<WithSpan<String>>,
        /// The model, as `provider:model-id`.
        "model" => model: Option<WithSpan<String>>,
        /// Whether the agent reaches its model through Proctor's proxy, which measures token usage. Only Proctor supports this key.
        "modelTap" => model_tap: Option<bool>,
    }
}

/// The type of agent that a reference names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentType {
    /// An agent that an agent file describes.
    File,
    /// A built-in agent.
    Builtin(BuiltinAgent),
}

impl Decode for AgentType {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let text = String::decode(node, cx)?;
        if text == "file" {
            return Some(Self::File);
        }
        if let Some(agent) = BuiltinAgent::parse_type(&text) {
            return Some(Self::Builtin(agent));
        }
        let known = agent_types();
        let hint = match BuiltinAgent::parse(&text) {
            Some(agent) => format!("did you mean `{}`?", agent.type_name()),
            None => nearest_type(&text, &known),
        };
        let message = format!("unknown agent type `{text}`");
        cx.report(node.span, Problem::error(Code::Value, message).hint(hint));
        None
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"enum": agent_types()})
    }
}

fn nearest_type(text: &str, known: &[String]) -> String {
    let known = || known.iter().map(String::as_str);
    match nearest(text, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}", listed(known())),
    }
}

fn agent_types() -> Vec<String> {
    let builtin = BuiltinAgent::ALL.into_iter().map(BuiltinAgent::type_name);
    std::iter::once("file".to_owned()).chain(builtin).collect()
}

record! {
    /// A set of tasks, with the assertions to check after each.
    pub struct TaskSetFile one_of ["path", "glob", "evals", "selection"] {
        /// The path of one task file.
        "path" => path: Option<WithSpan<String>>,
        /// A glob that matches task files. `**` matches any number of folders.
        "glob" => glob: Option<WithSpan<String>>,
        /// The evals that a server ships. Only Proctor supports this key.
        "evals" => evals: Option<ShippedFile>,
        /// The path of a selection file: prompts, and the tools to choose for them. Only Proctor supports this key.
        "selection" => selection: Option<WithSpan<String>>,
        /// The server of the tools that a selection file names. Only Proctor supports this key.
        "server" => server: Option<WithSpan<String>>,
        /// The servers that the agent gets for these tasks, all by default. Only Proctor supports this key.
        "servers" => servers: Option<NonEmpty<WithSpan<String>>>,
        /// The source that `path` or `glob` refers to.
        "source" => source: Option<WithSpan<String>>,
        /// Selects only tasks that have all of these labels.
        "labelSelector" => label_selector: Table<LooseText>,
        /// The assertions to check after each task.
        "assertions" => assertions: Option<AssertionsFileOrRows>,
        /// The pass rule: how many trials of a case must pass, such as `4/5`. Only Proctor supports this key.
        "pass" => pass: Option<WithSpan<PassRule>>,
    }
}

/// The assertions of a task set.
#[derive(Debug, Clone)]
pub enum AssertionsFileOrRows {
    /// The same for all its cases.
    Fixed(Box<KeySpans<AssertionsFile>>),
    /// With `{row.NAME}` in them, so each row has its own.
    PerRow(Node),
}

impl Decode for AssertionsFileOrRows {
    const DECIDES: bool = true;

    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        if !node_names(node).is_empty() {
            return Some(Self::PerRow(node.clone()));
        }
        let fixed = cx.deciding(|| KeySpans::decode(node, cx))?;
        Some(Self::Fixed(Box::new(fixed)))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        AssertionsFile::schema(definitions)
    }
}

record! {
    /// The evals that a server ships.
    pub struct ShippedFile {
        /// The name of the server.
        "server" => server: WithSpan<String>,
        /// Selects only evals of this level.
        "level" => level: Option<Level>,
    }
}

words! {
    /// The level of a shipped eval.
    pub enum Level {
        /// A model takes one turn. No tool is called.
        "invocation" => Invocation,
        /// One tool call without a model.
        "execution" => Execution,
        /// A whole agent loop with tool calls.
        "scenario" => Scenario,
    }
}

/// How many of a case's trials must pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct PassRule {
    /// At least this many …
    pub passed: u32,
    /// … of this many.
    pub of: u32,
}

impl Decode for PassRule {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let text = String::decode(node, cx)?;
        let parsed = text
            .split_once('/')
            .and_then(|(passed, of)| {
                let number = |s: &str| {
                    s.bytes()
                        .all(|b| b.is_ascii_digit())
                        .then(|| s.parse().ok())
                };
                Some(Self {
                    passed: number(passed)??,
                    of: number(of)??,
                })
            })
            .filter(|rule| rule.passed >= 1 && rule.passed <= rule.of);
        if parsed.is_none() {
            cx.report(
                node.span,
                Problem::error(Code::Value, format!("invalid pass rule `{text}`"))
                    .hint("`4/5` means that at least 4 of 5 trials must pass"),
            );
        }
        parsed
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "string", "pattern": "^[0-9]+/[0-9]+$"})
    }
}

record! {
    /// The judge: a model that decides whether an answer meets a criterion.
    pub struct JudgeFile one_of ["ref", "env"] {
        /// The agent or model that judges.
        "ref" => agent: Option<WithSpan<AgentRefFile>>,
        /// The old form: environment variables that name the judge.
        "env" => env: Option<JudgeEnvFile>,
        /// How many votes decide a criterion, an odd number. The majority decides. Only Proctor supports this key.
        "votes" => votes: Option<WithSpan<PositiveInteger>>,
    }
}

record! {
    /// Environment variables that name an OpenAI-compatible judge.
    pub struct JudgeEnvFile {
        /// The variable that holds `openai` or `claude`. Without it, the judge is an OpenAI model.
        "typeKey" => type_key: Option<WithSpan<String>>,
        /// The variable that holds the base URL.
        "baseUrlKey" => base_url_key: Option<WithSpan<String>>,
        /// The variable that holds the API key.
        "apiKeyKey" => api_key_key: Option<WithSpan<String>>,
        /// The variable that holds the model's name.
        "modelNameKey" => model_name_key: Option<WithSpan<String>>,
    }
}

record! {
    /// Limits. A trial ends when it reaches one of them.
    pub struct LimitsFile {
        /// The timeout for setup, agent and verification together.
        "timeout" => timeout: Option<Duration>,
        /// The timeout for the cleanup.
        "cleanupTimeout" => cleanup_timeout: Option<Duration>,
        /// The maximum number of agent turns. Only Proctor supports this key.
        "maxTurns" => max_turns: Option<PositiveInteger>,
        /// The maximum number of input and output tokens. Only Proctor supports this key.
        "maxTokens" => max_tokens: Option<PositiveInteger>,
        /// The maximum cost in US dollars. Only Proctor supports this key.
        "maxCostUsd" => max_cost_usd: Option<f64>,
    }
}

record! {
    /// An extension: a program that adds step types.
    pub struct ExtensionFile {
        /// The program: a local path, or `https://github.com/OWNER/REPO@TAG`. Without a tag it is the latest release.
        "package" => package: WithSpan<String>,
        /// The configuration that the program gets when it starts. Proctor expands `{env.NAME}`.
        "config" => config: Option<Node>,
        /// The program's environment variables. Proctor expands `{env.NAME}`.
        "env" => env: Table<WithSpan<LooseText>>,
    }
}

record! {
    /// Another git repository from which task sets take tasks.
    pub struct SourceFile {
        /// The repository: a URL, `git@HOST:PATH`, or a local path that starts with `./`, `../` or `/`.
        "repo" => repo: WithSpan<String>,
        /// The branch, tag or commit to use. By default the repository's default branch.
        "ref" => reference: Option<WithSpan<LooseText>>,
        /// Maps server names of the source to servers of this suite.
        "serverMapping" => server_mapping: Table<WithSpan<LooseText>>,
    }
}

record! {
    /// The skills that the agent can use.
    pub struct SkillsFile {
        /// The folders that the skills come from.
        "sources" => sources: Vec<SkillSourceFile>,
    }
}

words! {
    /// The type of a skill source.
    pub enum SkillSourceType {
        /// The skills are in a folder.
        "path" => Path,
    }
}

record! {
    /// A folder of skills.
    pub struct SkillSourceFile {
        /// Must be `path`.
        "type" => kind: SkillSourceType,
        /// The path of the folder.
        "path" => path: WithSpan<String>,
    }
}
