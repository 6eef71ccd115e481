//! Events of a trial besides the messages to servers: model requests, steps and checks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Body, Phase};
use crate::model::{StopReason, Usage};
use crate::verdict::Verdict;

/// The purpose of a model request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// The agent does the task.
    #[default]
    Agent,
    /// A side call of the agent, such as a title or a suggestion of the next prompt.
    Side,
    Judge,
    /// The answer to a sampling request of a server.
    Sampling,
    /// The next message of a user that a model plays.
    User,
}

impl Purpose {
    /// Whether the requests belong to the agent itself.
    pub fn is_of_agent(self) -> bool {
        match self {
            Self::Agent | Self::Side => true,
            Self::Judge | Self::Sampling | Self::User => false,
        }
    }
}

/// A model request was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelAsked {
    /// The number of the request within the trial, from one.
    pub ask: u64,
    pub purpose: Purpose,
    /// The model, as `provider:id`.
    pub model: String,
    /// How many messages of the conversation were recorded with earlier requests: the first ones of
    /// the latest request for the same purpose. Zero for a new conversation.
    pub known: u64,
    /// The [`ModelRequest`](crate::model::ModelRequest) as JSON, without its tools and its known
    /// messages.
    pub request: Body,
    /// The SHA-256 of the whole request, as JSON.
    pub digest: String,
}

/// A model request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelFailed {
    pub ask: u64,
    /// The number of the attempt, from one.
    pub attempt: u32,
    pub reason: String,
    /// When the request is retried, in microseconds from now; absent if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_in: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelReplied {
    pub ask: u64,
    /// The [`Turn`](crate::model::Turn), as JSON.
    pub turn: Body,
    /// The original reply of the provider, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Body>,
    pub stop: StopReason,
    pub usage: Usage,
    /// The cost in US dollars, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// The result of a setup, verify or cleanup step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepEnded {
    pub phase: Phase,
    /// The step's id within the case.
    pub id: String,
    /// The step's type, as written in the suite.
    pub kind: String,
    pub verdict: Verdict,
    /// The output: stdout and stderr of a script, the body of a response, the text of a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Body>,
    /// The values that later steps can refer to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
    /// The duration in microseconds.
    pub duration: u64,
}

/// Identifies a check. A verify step may have the name of an assertion as its id, so a name alone
/// is ambiguous.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckId {
    /// An assertion, by its key in a suite file.
    Assertion(String),
    /// A verify step, by its id.
    Step(String),
    /// A verify step that a judge decides, by its id.
    Judge(String),
    /// The grading of a shipped eval, by its type.
    Grading(String),
}

impl CheckId {
    /// The verdict of an imported result file on a task as a whole. It can't be evaluated again.
    pub fn imported_task() -> Self {
        Self::Step("imported:taskPassed".to_owned())
    }

    /// The id of the verify step, if it is one.
    pub fn step(&self) -> Option<&str> {
        match self {
            Self::Step(id) | Self::Judge(id) => Some(id),
            Self::Assertion(_) | Self::Grading(_) => None,
        }
    }

    /// The check's key in a suite file, or the id of the verify step.
    pub fn name(&self) -> &str {
        match self {
            Self::Assertion(name) | Self::Step(name) | Self::Judge(name) | Self::Grading(name) => {
                name
            }
        }
    }

    /// The kind of the check: `assertion`, `step`, `judge` or `grading`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Assertion(_) => "assertion",
            Self::Step(_) => "step",
            Self::Judge(_) => "judge",
            Self::Grading(_) => "grading",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckEvaluated {
    /// The check's key in a suite file, or the id of the verify step.
    pub check: String,
    /// Identifies the check. Records of older versions don't have it; a fold adds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<CheckId>,
    /// What the check expects, entry by entry, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    pub verdict: Verdict,
    /// The sequence numbers of the calls that decide the check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<u64>,
    /// Quotes of a judge, and other texts that explain the verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
