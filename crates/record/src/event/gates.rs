//! The conditions for success that a run was started with.

use serde::{Deserialize, Serialize};

/// The gates of a run. They stay in effect when the run is resumed, and for every report of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedGates {
    /// The lowest mean of the cases' pass rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_pass_rate: Option<f64>,
    /// The lowest one-sided 95 % lower bound of the pass rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_lower_bound: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass_hat: Option<PassHatGate>,
    /// The highest number of errored trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_errors: Option<u32>,
    /// The results of the run that this run must not be worse than. They are copied, since the base may
    /// be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<RunTally>,
}

/// The lowest average chance that all of `k` trials of a case pass.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PassHatGate {
    pub k: u32,
    pub rate: f64,
}

/// The verdicts of a run by case and agent, which is all that a comparison needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunTally {
    /// The name of the run, for people.
    pub run: String,
    /// The names of the agents.
    pub agents: Vec<String>,
    pub cases: Vec<CaseTally>,
    /// The trials whose record was changed after they ended: the verdicts can't be trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_trials: Vec<String>,
    /// Whether trials were not started because the answer of the gate was decided without them. The
    /// verdicts then say nothing about rates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub curtailed: bool,
    /// Whether the run has no end, lacks trials, or is only a shard: nobody knows what the rest would show.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
}

/// The verdicts of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseTally {
    pub id: String,
    pub name: String,
    /// The SHA-256 of the case's content.
    pub hash: String,
    /// For each agent, how many trials passed, did not pass, and have no verdict.
    pub trials: Vec<[u32; 3]>,
    /// The agents with which the case is a known failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_failures: Vec<String>,
}

impl PlannedGates {
    /// Whether a gate other than the number of errors is set. It then replaces the default gate.
    pub fn replaces_default(&self) -> bool {
        self.min_pass_rate.is_some()
            || self.min_lower_bound.is_some()
            || self.pass_hat.is_some()
            || self.base.is_some()
    }

    pub fn is_empty(&self) -> bool {
        !self.replaces_default() && self.max_errors.is_none()
    }
}
