//! The written form of an eval file (`kind: Eval`).
//!
//! Its main type is [`SuiteFile`]: what the user wrote, nothing resolved.

use std::time::Duration;

use serde_json::{Value, json};

use super::assertion_file::AssertionsFile;
use crate::builtin_agent::BuiltinAgent;
use crate::decode::{
    Context, Decode, Definitions, LooseText, NonEmpty, PositiveInteger, RequiredKey, StrictKeys,
    Table, record, words,
};
use crate::document::Node;
use crate::hint::{listed, nearest};
use crate::problem::{Code, Problem, WithSpan};

words! {
    /// `kind` of an eval file.
    pub enum EvalKind {
        "Eval" => Eval,
    }
}

words! {
    /// The version of the format. It changes how tasks are written and nothing else.
    pub enum ApiVersion {
        /// Scripts under `steps`.
        "mcpchecker/v1alpha1" => V1Alpha1,
        /// Steps under `spec`.
        "mcpchecker/v1alpha2" => V1Alpha2,
    }
}

record! {
    /// An eval suite: which agent does which tasks on which servers, and what must hold.
    pub struct SuiteFile {
        /// The schema that an editor checks this file against.
        "$schema" => schema: Option<LooseText>,
        /// Must be `Eval`.
        "kind" => kind: RequiredKey<EvalKind>,
        /// The version of the format; it changes nothing here.
        "apiVersion" => api_version: Option<ApiVersion>,
        /// Who this suite is.
        "metadata" => metadata: RequiredKey<EvalMetadata>,
        /// What is run, on what, by whom.
        "config" => config: RequiredKey<EvalConfig>,
    }
}

record! {
    /// Who a suite is.
    pub struct EvalMetadata {
        /// A name that is unique among your suites.
        "name" => name: RequiredKey<WithSpan<LooseText>>,
        /// What the suite is for.
        "description" => description: Option<LooseText>,
        /// A word to sort suites by.
        "category" => category: Option<LooseText>,
        /// Labels of the suite itself; they select nothing.
        "labels" => labels: Table<LooseText>,
        /// Kept as they are.
        "annotations" => annotations: Option<Node>,
    }
}

record! {
    /// What is run, on what, by whom.
    pub struct EvalConfig one_of ["agent", "agentFile", "agents"] {
        /// The agent that does the tasks.
        "agent" => agent: Option<WithSpan<AgentRefFile>>,
        /// Old spelling of `agent: {type: file, path: …}`.
        "agentFile" => agent_file: Option<WithSpan<String>>,
        /// Several agents: the suite runs over each. Proctor's own.
        "agents" => agents: Option<NonEmpty<WithSpan<AgentRefFile>>>,
        /// The file that names the MCP servers.
        "mcpConfigFile" => mcp_config_file: Option<RequiredKey<WithSpan<String>>>,
        /// The tasks, and what must hold after each.
        "taskSets" => task_sets: RequiredKey<WithSpan<Vec<WithSpan<TaskSetFile>>>>,
        /// The model that judges what no other check can decide.
        "llmJudge" => judge: Option<StrictKeys<WithSpan<JudgeFile>>>,
        /// Limits of tasks that set none.
        "defaultTaskLimits" => default_limits: Option<LimitsFile>,
        /// Programs that add kinds of steps, by alias.
        "extensions" => extensions: Table<ExtensionFile>,
        /// Other git repositories that task sets take tasks from, by name.
        "sources" => sources: Table<SourceFile>,
        /// Skills that the agent gets.
        "skills" => skills: Option<SkillsFile>,
        /// Whether each trial gets a server of its own. Proctor's own.
        "isolation" => isolation: Option<Isolation>,
    }
}

words! {
    /// How far trials are kept apart.
    pub enum Isolation {
        /// A server is started for each trial.
        "trial" => Trial,
        /// One server serves all trials.
        "run" => Run,
    }
}

record! {
    /// Which agent, and on which model.
    pub struct AgentRefFile {
        /// `file`, or the name of a built-in agent such as `builtin.claude-code`.
        "type" => kind: RequiredKey<WithSpan<AgentType>>,
        /// The agent file, for type `file`.
        "path" => path: Option<WithSpan<String>>,
        /// The model, as `provider:model-id`.
        "model" => model: Option<WithSpan<String>>,
        /// Whether the agent reaches its model through Proctor. Proctor's own.
        "modelTap" => model_tap: Option<bool>,
    }
}

/// What sort of agent a reference means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentType {
    /// One that a file describes.
    File,
    /// One that Proctor knows.
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
        let message = format!("`{text}` is not a type of agent");
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
    /// Some of the suite's tasks, and what must hold after each.
    pub struct TaskSetFile one_of ["path", "glob", "evals"] {
        /// One task file.
        "path" => path: Option<WithSpan<String>>,
        /// Task files by pattern; `**` crosses folders.
        "glob" => glob: Option<WithSpan<String>>,
        /// The evals that a server ships. Proctor's own.
        "evals" => evals: Option<ShippedFile>,
        /// The source that the path or pattern is inside of.
        "source" => source: Option<WithSpan<String>>,
        /// Only tasks that have all of these labels.
        "labelSelector" => label_selector: Table<LooseText>,
        /// What must hold after each of the tasks.
        "assertions" => assertions: Option<StrictKeys<AssertionsFile>>,
        /// How many of a case's trials must pass, such as `4/5`. Proctor's own.
        "pass" => pass: Option<WithSpan<PassRule>>,
    }
}

record! {
    /// The evals that a server ships.
    pub struct ShippedFile {
        /// The server.
        "server" => server: WithSpan<String>,
        /// Only those of one level.
        "level" => level: Option<Level>,
    }
}

words! {
    /// The level of a shipped eval.
    pub enum Level {
        /// One turn of a model, no call.
        "invocation" => Invocation,
        /// One call, no model.
        "execution" => Execution,
        /// A whole agent loop.
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
                Problem::error(Code::Value, format!("`{text}` is not a pass rule"))
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
    /// The model that judges what no other check can decide.
    pub struct JudgeFile one_of ["ref", "env"] {
        /// The agent that judges.
        "ref" => agent: Option<WithSpan<AgentRefFile>>,
        /// Old spelling: the environment variables that name the judge.
        "env" => env: Option<JudgeEnvFile>,
        /// How often a criterion is judged; the majority decides. Odd. Proctor's own.
        "votes" => votes: Option<WithSpan<PositiveInteger>>,
    }
}

record! {
    /// Environment variables that hold an OpenAI-compatible judge.
    pub struct JudgeEnvFile {
        /// The variable that holds `openai` or `claude`; OpenAI if not given.
        "typeKey" => type_key: Option<WithSpan<String>>,
        /// The variable that holds the URL.
        "baseUrlKey" => base_url_key: Option<WithSpan<String>>,
        /// The variable that holds the key.
        "apiKeyKey" => api_key_key: Option<WithSpan<String>>,
        /// The variable that holds the model's name.
        "modelNameKey" => model_name_key: Option<WithSpan<String>>,
    }
}

record! {
    /// What ends a trial.
    pub struct LimitsFile {
        /// For setup, agent and verification together.
        "timeout" => timeout: Option<Duration>,
        /// For the cleanup.
        "cleanupTimeout" => cleanup_timeout: Option<Duration>,
        /// Turns of the agent. Proctor's own.
        "maxTurns" => max_turns: Option<PositiveInteger>,
        /// Tokens, in and out. Proctor's own.
        "maxTokens" => max_tokens: Option<PositiveInteger>,
        /// Cost in US dollars. Proctor's own.
        "maxCostUsd" => max_cost_usd: Option<f64>,
    }
}

record! {
    /// A program that adds kinds of steps.
    pub struct ExtensionFile {
        /// A local path, or `https://github.com/OWNER/REPO@vX`.
        "package" => package: WithSpan<String>,
        /// What the program is told at its start; `{env.NAME}` is expanded.
        "config" => config: Option<Node>,
        /// Its environment; `{env.NAME}` is expanded.
        "env" => env: Table<WithSpan<LooseText>>,
    }
}

record! {
    /// Another git repository that task sets take tasks from.
    pub struct SourceFile {
        /// The repository.
        "repo" => repo: WithSpan<String>,
        /// A branch, tag or commit.
        "ref" => reference: Option<LooseText>,
        /// Which server here stands for which server there.
        "serverMapping" => server_mapping: Table<WithSpan<LooseText>>,
    }
}

record! {
    /// Skills that the agent gets.
    pub struct SkillsFile {
        /// Where they come from.
        "sources" => sources: Vec<SkillSourceFile>,
    }
}

words! {
    /// What sort of source skills come from.
    pub enum SkillSourceType {
        /// A folder.
        "path" => Path,
    }
}

record! {
    /// A folder of skills.
    pub struct SkillSourceFile {
        /// Must be `path`.
        "type" => kind: SkillSourceType,
        /// The folder.
        "path" => path: WithSpan<String>,
    }
}
