//! What a run will cost, from earlier runs of the same cases.
//!
//! Main types: [`History`], the earlier trials, and [`Estimate`]. A trial counts only for the same case with the same
//! content, the same agent and the same model. What no earlier trial shows stays unknown: it is never taken
//! for zero.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::time::Duration;

use proctor_record::event::{Outcome, PlannedAgent, PlannedCase};
use proctor_record::record::{INDEX, RunReader};
use serde::Serialize;

use crate::price::Prices;
use crate::runs::{self, RunNameError};
use crate::summary::{ModelSpending, Summary, TrialResult};

mod sentence;

pub use self::sentence::dollars;

/// The number of earlier runs that are read, the newest first.
const RUNS_READ: usize = 10;

/// The number of runs that are searched for the same cases.
const RUNS_SEARCHED: usize = 50;

/// The largest index and plan that are read: an estimate must not take longer than a short run.
const INDEX_BYTES: u64 = 32 << 20;

/// The trials of one case by one agent that a run will start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedTrials {
    pub key: TrialKey,
    pub trials: u32,
    /// How many of them run at once.
    pub at_once: u32,
}

/// What must be the same for an earlier trial to count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TrialKey {
    pub case: String,
    /// The SHA-256 of the case's content.
    pub hash: String,
    pub agent: String,
    pub model: Option<String>,
    pub judge: Option<String>,
}

impl TrialKey {
    pub fn new(case: &PlannedCase, agent: &PlannedAgent, judge: Option<&str>) -> Self {
        Self {
            case: case.id.clone(),
            hash: case.hash.clone(),
            agent: agent.name.clone(),
            model: agent.model.clone(),
            judge: judge.map(str::to_owned),
        }
    }
}

/// What an earlier trial used; `None` is unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TrialUse {
    calls: f64,
    tokens: Option<f64>,
    cost_usd: Option<f64>,
    seconds: f64,
}

/// The earlier trials of some cases.
#[derive(Debug, Clone, Default)]
pub struct History {
    trials: HashMap<TrialKey, Vec<(usize, TrialUse)>>,
}

/// A number between two others. The upper end is unknown if a part of it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EstimatedRange {
    /// The sum of what is known.
    pub low: f64,
    pub high: Option<f64>,
}

impl Default for EstimatedRange {
    /// Nothing, which is known.
    fn default() -> Self {
        Self {
            low: 0.0,
            high: Some(0.0),
        }
    }
}

/// What a run will use.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    pub trials: u64,
    /// The number of case × agent pairs.
    pub pairs: u32,
    /// The pairs without an earlier trial.
    pub unknown_pairs: u32,
    /// The pairs with earlier trials of unknown cost: the price of a model, or its token usage, is unknown.
    pub unknown_cost_pairs: u32,
    /// The number of earlier runs that it is based on.
    pub runs: usize,
    /// Requests to models, also of the judge.
    pub model_calls: EstimatedRange,
    /// Input and output tokens.
    pub tokens: EstimatedRange,
    pub cost_usd: EstimatedRange,
    pub seconds: EstimatedRange,
}

impl History {
    /// Reads the newest runs in a folder that have trials with these keys.
    pub fn load(
        runs: &Path,
        wanted: &[PlannedTrials],
        prices: &Prices,
    ) -> Result<Self, RunNameError> {
        let mut history = Self::default();
        let keys: BTreeSet<(&str, &str)> = wanted
            .iter()
            .map(|planned| (planned.key.case.as_str(), planned.key.hash.as_str()))
            .collect();
        let mut read = 0;
        for entry in runs::list(runs)?.into_iter().take(RUNS_SEARCHED) {
            let Ok(run) = entry.run else { continue };
            if is_small(&run) && history.add(read, &run, &keys, prices) {
                read += 1;
            }
            if read == RUNS_READ {
                break;
            }
        }
        Ok(history)
    }

    /// Adds the trials of a run. Returns whether it has any of these cases. A run that can't be read has none.
    fn add(
        &mut self,
        number: usize,
        run: &RunReader,
        keys: &BTreeSet<(&str, &str)>,
        prices: &Prices,
    ) -> bool {
        let is_meant = |case: &PlannedCase| keys.contains(&(case.id.as_str(), case.hash.as_str()));
        let Ok(planned) = Summary::planned(run) else {
            return false;
        };
        // Replayed replies cost nothing, and take no time.
        let is_live = planned.plan.replay.is_none();
        if !is_live || !planned.cases.iter().any(|case| is_meant(&case.case)) {
            return false;
        }
        let Ok(summary) = Summary::of_run(run) else {
            return false;
        };
        let judge = summary.plan.judge.as_deref();
        let models: HashMap<&str, &PlannedAgent> = summary
            .plan
            .agents
            .iter()
            .map(|agent| (agent.name.as_str(), agent))
            .collect();
        for (case, cell, trial) in summary.trials().filter(|(case, ..)| is_meant(&case.case)) {
            let (Some(agent), Some(result)) = (models.get(cell.agent.as_str()), &trial.result)
            else {
                continue;
            };
            // A trial that errored or was cancelled may have ended before its first request.
            if matches!(result.outcome, Outcome::Errored | Outcome::Cancelled) {
                continue;
            }
            let used = TrialUse::of(result, agent.model.as_deref(), judge, prices);
            let key = TrialKey::new(&case.case, agent, judge);
            self.trials.entry(key).or_default().push((number, used));
        }
        true
    }
}

fn is_small(run: &RunReader) -> bool {
    let index = fs::metadata(run.folder().join(INDEX));
    let is_small = |bytes: u64| bytes <= INDEX_BYTES;
    index.is_ok_and(|index| is_small(index.len())) && run.run_bytes().is_ok_and(is_small)
}

impl TrialUse {
    fn of(result: &TrialResult, model: Option<&str>, judge: Option<&str>, prices: &Prices) -> Self {
        let (agent, judged) = (result.agent(), result.judge());
        Self {
            calls: f64::from(agent.turns + judged.turns),
            tokens: sum(tokens(agent), tokens(judged)),
            cost_usd: sum(cost(agent, model, prices), cost(judged, judge, prices)),
            seconds: result.duration().as_secs_f64(),
        }
    }
}

fn sum(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? + b?)
}

#[expect(clippy::cast_precision_loss, reason = "an estimate has few digits")]
fn tokens(spent: &ModelSpending) -> Option<f64> {
    let is_known = spent.unmetered == 0 && (spent.usage.is_known() || spent.turns == 0);
    is_known.then(|| spent.usage.total() as f64)
}

/// The recorded cost. If its price was unknown then, the price may be known now.
fn cost(spent: &ModelSpending, model: Option<&str>, prices: &Prices) -> Option<f64> {
    let now = || {
        tokens(spent)?;
        prices.cost(model?, &spent.usage)
    };
    spent.cost_usd.filter(|_| spent.unmetered == 0).or_else(now)
}

impl Estimate {
    /// The estimate for some trials. It ranges from the cheapest to the dearest earlier trial of each case.
    pub fn of(planned: &[PlannedTrials], history: &History) -> Self {
        let mut estimate = Self::default();
        let mut runs = BTreeSet::new();
        for planned in planned {
            estimate.trials += u64::from(planned.trials);
            estimate.pairs += 1;
            let known = history
                .trials
                .get(&planned.key)
                .map_or(&[][..], Vec::as_slice);
            runs.extend(known.iter().map(|(run, _)| *run));
            let used: Vec<TrialUse> = known.iter().map(|(_, used)| *used).collect();
            if used.is_empty() {
                estimate.unknown_pairs += 1;
            } else if used.iter().any(|used| used.cost_usd.is_none()) {
                estimate.unknown_cost_pairs += 1;
            }
            let trials = f64::from(planned.trials);
            let at_once = f64::from(planned.at_once.max(1));
            estimate
                .model_calls
                .add(&used, trials, |used| Some(used.calls));
            estimate.tokens.add(&used, trials, |used| used.tokens);
            estimate.cost_usd.add(&used, trials, |used| used.cost_usd);
            estimate
                .seconds
                .add(&used, trials / at_once, |used| Some(used.seconds));
        }
        estimate.runs = runs.len();
        estimate
    }

    /// Adds the estimate of another suite, which runs after this one.
    pub fn add(&mut self, other: &Self) {
        self.trials += other.trials;
        self.pairs += other.pairs;
        self.unknown_pairs += other.unknown_pairs;
        self.unknown_cost_pairs += other.unknown_cost_pairs;
        self.runs += other.runs;
        for (range, other) in [
            (&mut self.model_calls, other.model_calls),
            (&mut self.tokens, other.tokens),
            (&mut self.cost_usd, other.cost_usd),
            (&mut self.seconds, other.seconds),
        ] {
            range.low += other.low;
            range.high = sum(range.high, other.high);
        }
    }

    /// The range of the time.
    pub fn time(&self) -> (Duration, Option<Duration>) {
        let span = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        (span(self.seconds.low), self.seconds.high.map(span))
    }
}

impl EstimatedRange {
    fn add(&mut self, used: &[TrialUse], times: f64, value: impl Fn(&TrialUse) -> Option<f64>) {
        let known: Vec<f64> = used.iter().filter_map(&value).collect();
        let is_known = !used.is_empty() && known.len() == used.len();
        let low = known.iter().copied().reduce(f64::min).filter(|_| is_known);
        let high = known.iter().copied().reduce(f64::max).filter(|_| is_known);
        self.low += low.unwrap_or(0.0) * times;
        self.high = sum(self.high, high.map(|high| high * times));
    }
}

#[cfg(test)]
mod tests;
