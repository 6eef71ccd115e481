//! The file format of a task file (`kind: Task`), in both versions.
//!
//! Its main type is [`TaskFile`].

use proctor_record::problem::{Code, Problem, WithSpan};
use serde_json::{Value, json};

use super::eval_file::{ApiVersion, LimitsFile};
use super::replies_file::RepliesFile;
use super::rows::RowFile;
use super::step_file::StepFile;
use super::turns_file::UserTurnFile;
use crate::decode::{
    Context, Decode, Definitions, LooseText, NonEmpty, PositiveInteger, RequiredKey, StrictKeys,
    Table, record, words,
};
use crate::document::Node;

words! {
    /// The value of `kind` in a task file.
    pub enum TaskKind {
        "Task" => Task,
    }
}

record! {
    /// A task: one prompt for an agent, with its setup, verification and cleanup.
    pub struct TaskFile one_of ["spec", "steps"] {
        /// The JSON Schema that editors use to check this file.
        "$schema" => schema: Option<LooseText>,
        /// Must be `Task`.
        "kind" => kind: RequiredKey<TaskKind>,
        /// The version: `mcpchecker/v1alpha2` for tasks with `spec`, absent or `mcpchecker/v1alpha1` for tasks with `steps`.
        "apiVersion" => api_version: Option<WithSpan<ApiVersion>>,
        /// The name, labels and runs of the task.
        "metadata" => metadata: RequiredKey<TaskMetadata>,
        /// The prompt and steps of the task (v1alpha2).
        "spec" => spec: Option<WithSpan<TaskSpecFile>>,
        /// The prompt and scripts of the task (v1alpha1).
        "steps" => steps: Option<WithSpan<LegacyStepsFile>>,
    }
}

record! {
    /// The name, labels and runs of a task.
    pub struct TaskMetadata {
        /// The task's name.
        "name" => name: RequiredKey<WithSpan<LooseText>>,
        /// The difficulty of the task.
        "difficulty" => difficulty: Option<Difficulty>,
        /// Labels by which task sets and `--label-selector` select tasks.
        "labels" => labels: Table<LooseText>,
        /// Whether the task may run in parallel with others.
        "parallel" => parallel: Option<bool>,
        /// The number of runs per agent, unless `--runs` sets it.
        "runs" => runs: Option<PositiveInteger>,
        /// A description of the task.
        "description" => description: Option<LooseText>,
        /// A category to group tasks by.
        "category" => category: Option<LooseText>,
        /// Annotations that Proctor stores unchanged.
        "annotations" => annotations: Option<Node>,
    }
}

words! {
    /// The difficulty of a task.
    pub enum Difficulty {
        "easy" => Easy,
        "medium" => Medium,
        "hard" => Hard,
    }
}

record! {
    /// The prompt and steps of a task (v1alpha2).
    pub struct TaskSpecFile {
        /// The servers and extensions that the task's steps use.
        "requires" => requires: Vec<WithSpan<RequirementFile>>,
        /// The servers that the agent gets, all by default. Only Proctor supports this key.
        "servers" => servers: Option<NonEmpty<WithSpan<String>>>,
        /// A folder whose content each trial starts with in `{trial.dir}`. Only Proctor supports this key.
        "workspace" => workspace: Option<WithSpan<String>>,
        /// The limits of each trial of the task.
        "limits" => limits: Option<LimitsFile>,
        /// The steps before the agent starts.
        "setup" => setup: Vec<StepFile>,
        /// The steps after the agent ends. All must pass.
        "verify" => verify: StrictKeys<Vec<StepFile>>,
        /// The steps at the end of the trial. They always run.
        "cleanup" => cleanup: Vec<StepFile>,
        /// The prompt for the agent.
        "prompt" => prompt: RequiredKey<WithSpan<TextSourceFile>>,
        /// What the user says after the agent's first answer, in order. Only Proctor supports this key.
        "turns" => turns: Option<StrictKeys<NonEmpty<UserTurnFile>>>,
        /// The replies to requests of servers, by server. They replace those of the MCP config. Only Proctor supports this key.
        "replies" => replies: StrictKeys<Table<RepliesFile>>,
        /// Rows: each is a case of its own, and fills `{row.NAME}` in. Only Proctor supports this key.
        "rows" => rows: Option<NonEmpty<RowFile>>,
        /// A CSV or JSONL file with rows. Only Proctor supports this key.
        "rowsFrom" => rows_from: Option<WithSpan<String>>,
    }
}

record! {
    /// A server or extension that steps use.
    pub struct RequirementFile one_of ["extension", "mcpServer"] {
        /// The alias of an extension of the suite.
        "extension" => extension: Option<WithSpan<String>>,
        /// The name of an MCP server of the suite.
        "mcpServer" => mcp_server: Option<WithSpan<String>>,
        /// The name that steps use for it, its own name by default.
        "as" => alias: Option<WithSpan<Alias>>,
    }
}

/// An alias with which a step's type starts. It contains no dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias(pub String);

impl Decode for Alias {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let text = String::decode(node, cx)?;
        if text.contains('.') {
            let message = format!("the alias `{text}` contains a dot");
            let problem = Problem::error(Code::Value, message);
            cx.report(
                node.span,
                problem.hint("the first dot of a step's type ends the alias"),
            );
            return None;
        }
        Some(Self(text))
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "string", "pattern": "^[^.]+$"})
    }
}

record! {
    /// A text, or a file that contains it.
    pub struct TextSourceFile one_of ["inline", "file"] {
        /// The text itself.
        "inline" => inline: Option<WithSpan<LooseText>>,
        /// The path of a file with the text.
        "file" => file: Option<WithSpan<String>>,
    }
}

record! {
    /// The prompt and scripts of a task (v1alpha1).
    pub struct LegacyStepsFile {
        /// A script that runs before the agent starts.
        "setup" => setup: Option<TextSourceFile>,
        /// A script that passes if it exits with 0, or a criterion for the judge.
        "verify" => verify: Option<StrictKeys<WithSpan<LegacyVerifyFile>>>,
        /// A script that always runs at the end.
        "cleanup" => cleanup: Option<TextSourceFile>,
        /// The prompt for the agent.
        "prompt" => prompt: RequiredKey<WithSpan<TextSourceFile>>,
    }
}

record! {
    /// A verification (v1alpha1): a script, or a criterion for the judge.
    pub struct LegacyVerifyFile one_of ["inline", "file", "contains", "exact"] {
        /// The text of the script.
        "inline" => inline: Option<WithSpan<LooseText>>,
        /// The path of the script.
        "file" => file: Option<WithSpan<String>>,
        /// The answer must contain every fact of this text.
        "contains" => contains: Option<WithSpan<LooseText>>,
        /// The answer must contain exactly the facts of this text.
        "exact" => exact: Option<WithSpan<LooseText>>,
        /// The reason for this check. Proctor stores it unchanged.
        "reason" => reason: Option<LooseText>,
    }
}
