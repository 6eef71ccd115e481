//! `summary.json`: the results of a run in a file small enough to list hundreds of runs.
//!
//! The main type is [`Overview`]. It is derived from a [`Summary`], written when a run ends, and
//! rebuilt if it is missing or the run was resumed.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use proctor_record::duration::micros;
use proctor_record::event::{FindingKind, Outcome, RunEnded, RunStarted};
use proctor_record::fold::ModelActivity;
use proctor_record::json;
use proctor_record::model::Usage;
use proctor_record::record::{RecordError, RunReader, SUMMARY, open_file};
use serde::{Deserialize, Serialize};

use crate::gate::Gate;
use crate::pass_rule::CaseVerdict;
use crate::statistics::Rate;
use crate::summary::{self, AgentSummary, AgentTrials, CaseSummary, Counts, Summary, TrialResult};

/// The version of the file that this program reads and writes.
pub const OVERVIEW_VERSION: u32 = 1;

/// The longest file that is read: far more than 100,000 cases need.
const LONGEST: u64 = 64 * 1024 * 1024;

/// How many digits of a case's hash are kept.
const HASH: usize = 16;

/// The results of a run, in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    pub version: u32,
    /// The length of `run.jsonl`. If the file is longer now, the run was resumed.
    pub run_bytes: u64,
    pub started: RunStarted,
    pub suite: String,
    /// How the run ended; absent if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<RunEnded>,
    /// The time from the run's start to its last event, in JSON as microseconds.
    #[serde(with = "micros")]
    pub duration: Duration,
    pub gate: Answer,
    pub trials: Counts,
    /// `None` if no trial counts.
    pub rate: Option<RateOverview>,
    pub agents: Vec<AgentOverview>,
    pub servers: Vec<ServerOverview>,
    /// The number of findings, by server and kind.
    pub findings: BTreeMap<String, BTreeMap<FindingKind, u64>>,
    /// The model requests of agents, in all attempts.
    pub agent: ModelActivity,
    /// The model requests of judges, in all attempts.
    pub judge: ModelActivity,
    pub cases: Vec<CaseOverview>,
}

/// Whether a gate, or the pass rule of a case, is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    Met,
    Missed,
    Inconclusive,
}

/// A pass rate with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateOverview {
    pub passed: u32,
    pub counted: u32,
    pub mean: f64,
    pub low95: f64,
    pub high95: f64,
}

/// The results of one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentOverview {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub trials: Counts,
    pub rate: Option<RateOverview>,
    pub tokens: Usage,
    pub cost_usd: Option<f64>,
    /// The median duration of its trials, in microseconds.
    pub median: Option<u64>,
}

/// What a server reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerOverview {
    pub server: String,
    pub name: Option<String>,
    pub version: Option<String>,
    pub tools: u64,
    pub tools_digest: Option<String>,
}

/// The results of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseOverview {
    pub id: String,
    /// The first 16 digits of its hash.
    pub hash: String,
    /// For each agent, how many trials passed, did not pass, and have no verdict.
    pub trials: Vec<[u32; 3]>,
    /// For each agent, whether the pass rule is met.
    pub rule: Vec<Answer>,
    /// For each agent, the median duration of its trials with a verdict, in microseconds. Empty in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub medians: Vec<Option<u64>>,
}

impl Overview {
    /// Reads the file if it is up to date. Otherwise derives the overview, and writes the file
    /// unless another process writes the run.
    pub fn load(run: &RunReader) -> Result<Self, RecordError> {
        if let Some(stored) = Self::stored(run) {
            return Ok(stored);
        }
        Self::store(run, &Summary::of_run(run)?)
    }

    /// Derives the overview from a summary, and writes the file unless another process writes the
    /// run.
    pub fn store(run: &RunReader, summary: &Summary) -> Result<Self, RecordError> {
        let overview = Self::of(summary, run.run_bytes()?);
        if let Ok(text) = serde_json::to_vec(&overview) {
            run.replace(SUMMARY, &text);
        }
        Ok(overview)
    }

    fn stored(run: &RunReader) -> Option<Self> {
        let mut text = Vec::new();
        let file = open_file(&run.folder().join(SUMMARY)).ok()?;
        file.take(LONGEST).read_to_end(&mut text).ok()?;
        let stored: Self = json::from_slice(&text).ok()?;
        let fits = stored.version == OVERVIEW_VERSION
            && stored.started == *run.started()
            && stored.run_bytes == run.run_bytes().ok()?;
        fits.then_some(stored)
    }

    fn of(summary: &Summary, run_bytes: u64) -> Self {
        let agents = summary.plan.agents.iter().zip(summary.by_agent());
        let agents = agents.map(|(planned, found)| agent(planned.model.clone(), &found));
        let servers = summary.servers.iter().map(|seen| ServerOverview {
            server: seen.server.clone(),
            name: seen.name.clone(),
            version: seen.version.clone(),
            tools: seen.tools,
            tools_digest: seen.tools_digest.clone(),
        });
        let findings = summary.findings.iter().map(|(server, kinds)| {
            let kinds = kinds.iter().map(|(kind, found)| (*kind, found.count));
            (server.clone(), kinds.collect())
        });
        Self {
            version: OVERVIEW_VERSION,
            run_bytes,
            started: summary.started.clone(),
            suite: summary.plan.suite.clone(),
            ended: summary.ended.clone(),
            duration: summary.duration,
            gate: match Gate::of(summary) {
                Gate::Met => Answer::Met,
                Gate::Missed { .. } => Answer::Missed,
                Gate::Open { .. } => Answer::Inconclusive,
            },
            trials: summary.counts(),
            rate: summary.rate(None).as_ref().map(RateOverview::of),
            agents: agents.collect(),
            servers: servers.collect(),
            findings: findings.collect(),
            agent: summary.agent.clone(),
            judge: summary.judge.clone(),
            cases: summary.cases.iter().map(case).collect(),
        }
    }
}

impl RateOverview {
    pub(crate) fn of(rate: &Rate) -> Self {
        Self {
            passed: rate.tally.passed,
            counted: rate.tally.counted,
            mean: rate.mean,
            low95: rate.interval.low,
            high95: rate.interval.high,
        }
    }
}

fn agent(model: Option<String>, found: &AgentSummary<'_>) -> AgentOverview {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    AgentOverview {
        name: found.name.to_owned(),
        model,
        trials: found.counts,
        rate: found.rate.as_ref().map(RateOverview::of),
        tokens: found.usage,
        cost_usd: found.cost_usd,
        median: found.median.map(micros),
    }
}

fn case(case: &CaseSummary) -> CaseOverview {
    let standings = case.agents.iter().map(|trials| {
        let standing = trials.standing();
        [standing.passed, standing.not_passed, standing.open]
    });
    let answers = case
        .agents
        .iter()
        .map(|trials| match trials.rule_verdict(&case.case) {
            CaseVerdict::Met => Answer::Met,
            CaseVerdict::Missed | CaseVerdict::KnownFailure => Answer::Missed,
            CaseVerdict::Open => Answer::Inconclusive,
        });
    CaseOverview {
        id: case.case.id.clone(),
        hash: case.case.hash.chars().take(HASH).collect(),
        trials: standings.collect(),
        rule: answers.collect(),
        medians: case.agents.iter().map(median_of).collect(),
    }
}

/// The median duration of the trials with a verdict.
fn median_of(trials: &AgentTrials) -> Option<u64> {
    let counted = trials.trials.iter().filter(|trial| {
        matches!(
            trial.outcome(),
            Some(Outcome::Passed | Outcome::Failed | Outcome::TimedOut)
        )
    });
    let results = counted.filter_map(|trial| trial.result.as_ref());
    let mut times: Vec<u64> = results.map(TrialResult::micros).collect();
    times.sort_unstable();
    let median = summary::median(&times)?;
    u64::try_from(median.as_micros()).ok()
}
