//! What a comparison shows besides verdicts: tokens, cost, duration, and why trials failed.
//!
//! The main type is [`RunFacts`]. It is small: two runs of 100,000 trials are compared without their
//! summaries in memory at the same time.

use std::collections::HashMap;
use std::time::Duration;

use proctor_record::event::{CaseTally, Outcome, RunEnded, RunTally};
use proctor_record::record::{RecordError, RunReader};
use proctor_record::verdict::Verdict;

use crate::shard::Shard;
use crate::statistics::quantile;
use crate::summary::{AgentTrials, Summary, TrialResult};

use super::tools::RunTools;
use super::{Comparison, ToolsChange};

/// The longest reason that is kept, in characters.
const REASON: usize = 200;

/// The verdicts of a run, and what its trials cost.
#[derive(Debug, Clone)]
pub struct RunFacts {
    pub tally: RunTally,
    /// By case and agent, in the order of the tally.
    cells: HashMap<(String, String), CellFacts>,
    pub(super) tools: RunTools,
}

#[derive(Debug, Clone, Default)]
struct CellFacts {
    /// The number of trials that ended.
    trials: u32,
    tokens: u64,
    /// The trials whose tokens, or cost, are unknown.
    unknown_tokens: u32,
    unknown_cost: u32,
    cost_usd: f64,
    durations: Vec<Duration>,
    /// Why the first trial that did not pass did not.
    reason: Option<String>,
}

/// A value in both runs; `None` if a run does not know it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Change {
    pub base: Option<f64>,
    pub new: Option<f64>,
}

/// What the trials of the compared cases spent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SpendingChange {
    /// Input and output tokens of the agent per trial.
    pub tokens: Change,
    /// The cost of the agent's model per trial, in US dollars.
    pub cost_usd: Change,
    /// The median duration of a trial in seconds.
    pub median: Change,
}

impl Change {
    /// The relative change, if both values are known and the first is not zero.
    pub fn relative(&self) -> Option<f64> {
        let (base, new) = (self.base?, self.new?);
        (base > 0.0).then(|| new / base - 1.0)
    }
}

impl RunFacts {
    /// Reads a run and compares every trial with its index, since an exit code depends on the result.
    pub fn load(run: &RunReader) -> Result<Self, RecordError> {
        let summary = Summary::checked(run)?;
        let name = run
            .folder()
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| summary.started.name.clone());
        Ok(Self {
            tally: RunTally {
                unfinished: is_unfinished(&summary),
                ..tally(&summary, name)
            },
            cells: cells(&summary),
            tools: RunTools::load(run, &summary.servers)?,
        })
    }

    /// Why the first trial of a case that did not pass did not.
    pub fn reason(&self, id: &str, agent: &str) -> Option<&str> {
        let key = (id.to_owned(), agent.to_owned());
        self.cells.get(&key)?.reason.as_deref()
    }

    /// The changes of the tools that the servers offer.
    pub fn tools_change(base: &Self, new: &Self) -> ToolsChange {
        ToolsChange::of(&base.tools, &new.tools)
    }

    /// What the trials of the paired cases spent in both runs.
    pub fn spending(comparison: &Comparison, base: &Self, new: &Self) -> SpendingChange {
        let agents: HashMap<&str, &str> = comparison
            .pairing
            .agents
            .iter()
            .map(|(old, now)| (now.as_str(), old.as_str()))
            .collect();
        let (mut of_base, mut of_new) = (CellFacts::default(), CellFacts::default());
        for cell in &comparison.pairing.cells {
            let old = agents.get(cell.agent.as_str()).copied().unwrap_or_default();
            of_base.add(base.cells.get(&(cell.id.clone(), old.to_owned())));
            of_new.add(new.cells.get(&(cell.id.clone(), cell.agent.clone())));
        }
        let change = |value: fn(&CellFacts) -> Option<f64>| Change {
            base: value(&of_base),
            new: value(&of_new),
        };
        SpendingChange {
            tokens: change(CellFacts::tokens_per_trial),
            cost_usd: change(CellFacts::cost_per_trial),
            median: change(CellFacts::median),
        }
    }
}

impl CellFacts {
    fn add(&mut self, other: Option<&Self>) {
        let Some(other) = other else { return };
        self.trials += other.trials;
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.unknown_tokens += other.unknown_tokens;
        self.unknown_cost += other.unknown_cost;
        self.cost_usd += other.cost_usd;
        self.durations.extend(&other.durations);
    }

    fn take(&mut self, result: &TrialResult) {
        self.trials += 1;
        let spent = result.agent();
        if spent.unmetered == 0 && (spent.usage.is_known() || spent.turns == 0) {
            self.tokens = self.tokens.saturating_add(spent.usage.total());
        } else {
            self.unknown_tokens += 1;
        }
        match spent.cost_usd {
            Some(cost) => self.cost_usd += cost,
            None => self.unknown_cost += 1,
        }
        self.durations.push(result.duration());
        if self.reason.is_none() && result.outcome != Outcome::Passed {
            self.reason = reason(result);
        }
    }

    fn tokens_per_trial(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
        let tokens = self.tokens as f64;
        (self.trials > 0 && self.unknown_tokens == 0).then(|| tokens / f64::from(self.trials))
    }

    fn cost_per_trial(&self) -> Option<f64> {
        let is_known = self.trials > 0 && self.unknown_cost == 0;
        is_known.then(|| self.cost_usd / f64::from(self.trials))
    }

    fn median(&self) -> Option<f64> {
        let mut times: Vec<f64> = self.durations.iter().map(Duration::as_secs_f64).collect();
        times.sort_by(f64::total_cmp);
        quantile(&times, 0.5)
    }
}

/// The verdicts of a run.
pub fn tally(summary: &Summary, run: String) -> RunTally {
    let cases = summary.cases.iter().map(|case| CaseTally {
        id: case.case.id.clone(),
        name: case.case.name.clone(),
        hash: case.case.hash.clone(),
        trials: case.agents.iter().map(verdicts).collect(),
        known_failures: case
            .agents
            .iter()
            .filter(|trials| trials.known_failure.is_some())
            .map(|trials| trials.agent.clone())
            .collect(),
    });
    RunTally {
        run,
        agents: summary
            .plan
            .agents
            .iter()
            .map(|agent| agent.name.clone())
            .collect(),
        cases: cases.collect(),
        changed_trials: summary.changed_trials.iter().cloned().collect(),
        curtailed: summary.is_curtailed(),
        unfinished: false,
    }
}

/// Whether a run has no end, lacks trials that were not left out on purpose, or is only a shard.
fn is_unfinished(summary: &Summary) -> bool {
    let is_shard = summary
        .plan
        .shard
        .as_deref()
        .and_then(Shard::of_plan)
        .is_some();
    let is_complete = |ended: &RunEnded| ended.missing.is_empty();
    let lacks_trials = summary.counts().not_run > 0 && !summary.is_curtailed();
    is_shard || lacks_trials || !summary.ended.as_ref().is_some_and(is_complete)
}

fn verdicts(trials: &AgentTrials) -> [u32; 3] {
    let counts = trials.standing();
    [counts.passed, counts.not_passed, counts.open]
}

fn cells(summary: &Summary) -> HashMap<(String, String), CellFacts> {
    let cells = summary.cells().map(|(case, trials)| {
        let mut facts = CellFacts::default();
        for result in trials
            .trials
            .iter()
            .filter_map(|trial| trial.result.as_ref())
        {
            facts.take(result);
        }
        ((case.case.id.clone(), trials.agent.clone()), facts)
    });
    cells.collect()
}

/// The decisive check with its reason, or else the reason of the trial.
fn reason(result: &TrialResult) -> Option<String> {
    let text = match result.decisive.as_deref() {
        Some(check) => match &check.verdict {
            Verdict::Fail { reason } | Verdict::Unknown { reason } => {
                format!("{}: {reason}", check.check)
            }
            Verdict::Pass => check.check.clone(),
        },
        None => result.reason.clone()?,
    };
    Some(match text.char_indices().nth(REASON) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    })
}
