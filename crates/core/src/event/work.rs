//! What was done in a trial besides talking to servers: models asked, steps run, checks evaluated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Body, StepPhase};
use crate::model::{StopReason, Usage};
use crate::verdict::Verdict;

/// For whom a model is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// To do the task.
    #[default]
    Agent,
    /// By an agent, beside the task: a title, a guess at the next prompt.
    Side,
    /// To judge it.
    Judge,
}

/// A model was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelAsked {
    /// The number of the question within the trial, from one.
    pub ask: u64,
    /// For whom.
    pub purpose: Purpose,
    /// The model, as `provider:id`.
    pub model: String,
    /// How many messages of the conversation were recorded with earlier questions: the first ones
    /// of the latest question for the same purpose. None in a conversation that starts afresh.
    pub known: u64,
    /// The [`Request`](crate::model::Request) as JSON, without its tools and without the messages
    /// that are known already.
    pub request: Body,
    /// The SHA-256 of the whole request, as JSON.
    pub digest: String,
}

/// A model was asked in vain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelFailed {
    /// Which question.
    pub ask: u64,
    /// Which attempt at it, from one.
    pub attempt: u32,
    /// What went wrong.
    pub reason: String,
    /// When it is asked again, in microseconds from now; never, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_in: Option<u64>,
}

/// A model replied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelReplied {
    /// Which question.
    pub ask: u64,
    /// The [`Turn`](crate::model::Turn), as JSON.
    pub turn: Body,
    /// The reply as it came over the wire, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Body>,
    /// Why the model stopped.
    pub stop: StopReason,
    /// How many tokens it took.
    pub usage: Usage,
    /// What it cost in US dollars, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// A step came to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepEnded {
    /// When it ran.
    pub phase: StepPhase,
    /// Its name within the case.
    pub id: String,
    /// Its type, as written.
    pub kind: String,
    /// Whether it passed.
    pub verdict: Verdict,
    /// What it wrote: stdout and stderr of a script, the body of a response, the text of a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Body>,
    /// What later steps can refer to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
    /// How long it took, in microseconds.
    pub duration: u64,
}

/// Which check it is. A verify step may have the name of an assertion as its id, so a name alone
/// tells nothing.
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
    /// The id of the verify step, if it is one.
    pub fn step(&self) -> Option<&str> {
        match self {
            Self::Step(id) | Self::Judge(id) => Some(id),
            Self::Assertion(_) | Self::Grading(_) => None,
        }
    }

    /// The kind as a word: `assertion`, `step`, `judge` or `grading`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Assertion(_) => "assertion",
            Self::Step(_) => "step",
            Self::Judge(_) => "judge",
            Self::Grading(_) => "grading",
        }
    }
}

/// A check was evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckEvaluated {
    /// The check's key in a suite file, or the id of the verify step.
    pub check: String,
    /// Which check it is. Records of older versions don't have it; a fold always does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<CheckId>,
    /// What it asks for, entry by entry, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// Its answer.
    pub verdict: Verdict,
    /// The calls that decide it, by their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<u64>,
    /// What a judge quoted, and other words that explain the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
