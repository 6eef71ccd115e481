//! The written form of a task file (`kind: Task`), in both versions of the format.
//!
//! Its main type is [`TaskFile`].

use serde_json::{Value, json};

use super::eval_file::{ApiVersion, LimitsFile};
use super::step_file::StepFile;
use crate::decode::{
    Context, Decode, Definitions, LooseText, PositiveInteger, RequiredKey, StrictKeys, Table,
    record, words,
};
use crate::document::Node;
use crate::problem::{Code, Problem, WithSpan};

words! {
    /// `kind` of a task file.
    pub enum TaskKind {
        "Task" => Task,
    }
}

record! {
    /// One thing for an agent to do, with its setup, verification and cleanup.
    pub struct TaskFile one_of ["spec", "steps"] {
        /// The schema that an editor checks this file against.
        "$schema" => schema: Option<LooseText>,
        /// Must be `Task`.
        "kind" => kind: RequiredKey<TaskKind>,
        /// `mcpchecker/v1alpha2` for tasks with `spec`; absent or `mcpchecker/v1alpha1` for tasks with `steps`.
        "apiVersion" => api_version: Option<WithSpan<ApiVersion>>,
        /// What the task is called and how it is run.
        "metadata" => metadata: RequiredKey<TaskMetadata>,
        /// The task (v1alpha2).
        "spec" => spec: Option<WithSpan<TaskSpecFile>>,
        /// The task (v1alpha1).
        "steps" => steps: Option<WithSpan<LegacyStepsFile>>,
    }
}

record! {
    /// What a task is called and how it is run.
    pub struct TaskMetadata {
        /// The task's name.
        "name" => name: RequiredKey<WithSpan<LooseText>>,
        /// How hard it is.
        "difficulty" => difficulty: Option<Difficulty>,
        /// Labels to select by.
        "labels" => labels: Table<LooseText>,
        /// Whether it may run beside others.
        "parallel" => parallel: Option<bool>,
        /// How often it is run, unless the command line says.
        "runs" => runs: Option<PositiveInteger>,
        /// What it is for.
        "description" => description: Option<LooseText>,
        /// A word to sort tasks by.
        "category" => category: Option<LooseText>,
        /// Kept as they are.
        "annotations" => annotations: Option<Node>,
    }
}

words! {
    /// How hard a task is.
    pub enum Difficulty {
        "easy" => Easy,
        "medium" => Medium,
        "hard" => Hard,
    }
}

record! {
    /// A task (v1alpha2).
    pub struct TaskSpecFile {
        /// The servers and extensions that its steps use.
        "requires" => requires: Vec<WithSpan<RequirementFile>>,
        /// What ends a trial of it.
        "limits" => limits: Option<LimitsFile>,
        /// Before the agent starts.
        "setup" => setup: Vec<StepFile>,
        /// After the agent is done: all must pass.
        "verify" => verify: StrictKeys<Vec<StepFile>>,
        /// Always, at the end.
        "cleanup" => cleanup: Vec<StepFile>,
        /// What the agent is asked.
        "prompt" => prompt: RequiredKey<WithSpan<TextSourceFile>>,
    }
}

record! {
    /// A server or an extension that steps use.
    pub struct RequirementFile one_of ["extension", "mcpServer"] {
        /// An extension of the suite.
        "extension" => extension: Option<WithSpan<String>>,
        /// An MCP server of the suite.
        "mcpServer" => mcp_server: Option<WithSpan<String>>,
        /// What the steps call it; its own name if not given.
        "as" => alias: Option<WithSpan<Alias>>,
    }
}

/// A name that a step's type can start with: it has no dot.
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
    /// A text, or the file that holds it.
    pub struct TextSourceFile one_of ["inline", "file"] {
        /// The text.
        "inline" => inline: Option<WithSpan<LooseText>>,
        /// The file.
        "file" => file: Option<WithSpan<String>>,
    }
}

record! {
    /// A task (v1alpha1).
    pub struct LegacyStepsFile {
        /// A script that runs before the agent starts.
        "setup" => setup: Option<TextSourceFile>,
        /// A script that passes if it exits with 0, or what a judge looks for.
        "verify" => verify: Option<StrictKeys<WithSpan<LegacyVerifyFile>>>,
        /// A script that always runs at the end.
        "cleanup" => cleanup: Option<TextSourceFile>,
        /// What the agent is asked.
        "prompt" => prompt: RequiredKey<WithSpan<TextSourceFile>>,
    }
}

record! {
    /// A verification (v1alpha1): a script, or what a judge looks for.
    pub struct LegacyVerifyFile one_of ["inline", "file", "contains", "exact"] {
        /// The script.
        "inline" => inline: Option<WithSpan<LooseText>>,
        /// The file that holds the script.
        "file" => file: Option<WithSpan<String>>,
        /// Every fact of this is in the answer.
        "contains" => contains: Option<WithSpan<LooseText>>,
        /// The answer has the facts of this, no more and no fewer.
        "exact" => exact: Option<WithSpan<LooseText>>,
        /// Why; kept as it is.
        "reason" => reason: Option<LooseText>,
    }
}
