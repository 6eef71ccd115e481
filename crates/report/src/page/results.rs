//! The results of a run by agent, by case and by cause.
//!
//! Main types: [`AgentPage`], [`CasePage`] and [`CausePage`].

use std::collections::BTreeMap;
use std::time::Duration;

use proctor_core::causes::Cause;
use proctor_core::gate::PassThreshold;
use proctor_core::statistics::{PassCount, Rate, quantile};
use proctor_core::summary::{AgentSummary, Counts, Summary, TrialResult};
use proctor_record::duration;
use proctor_record::event::{PlannedAgent, PlannedCase};
use serde::Serialize;

use super::columns::cost;
use crate::summary::cells::{CaseStatus, Cell, worst_first};
use crate::{summary, words};

/// A pass rate with its 95 % interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RatePage {
    pub passed: u32,
    pub counted: u32,
    pub mean: f64,
    pub low: f64,
    pub high: f64,
    /// The rate as reports say it: `3/10 (30%, 95% CI 11–60%)`.
    pub text: String,
}

/// The values that 5, 25, 50, 75 and 95 % of the trials don't exceed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuantilesPage {
    pub values: [f64; 5],
    /// The median as text.
    pub median: String,
}

/// The results of one agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentPage {
    /// The name as recorded, which addresses contain.
    pub name: String,
    /// The name without the model.
    pub short: String,
    pub model: Option<String>,
    pub counts: Counts,
    pub rate: Option<RatePage>,
    /// The durations of its trials in microseconds.
    pub duration: Option<QuantilesPage>,
    /// The tokens of its trials, input and output together.
    pub tokens: Option<QuantilesPage>,
    /// The costs of its trials in US dollars.
    pub cost: Option<QuantilesPage>,
    /// The cost of all its trials, as text.
    pub total_cost: String,
    /// The cases whose pass rule only this agent meets, and misses.
    pub alone: Vec<String>,
    pub missed_alone: Vec<String>,
}

/// Whether a case meets its pass rule, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CellStatus {
    Missed,
    Inconclusive,
    /// It misses its pass rule, as `knownFailures` says.
    #[serde(rename = "known-failure")]
    KnownFailure,
    /// It meets its pass rule although trials failed.
    Flaky,
    Passed,
}

/// The results of a case by one agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CellPage {
    pub status: CellStatus,
    pub passed: u32,
    pub not_passed: u32,
    pub no_verdict: u32,
    /// `None` if no trial counts.
    pub rate: Option<RatePage>,
    /// Why it stands so, in a line; empty if it simply passed.
    pub reason: String,
}

/// The results of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CasePage {
    pub id: String,
    pub name: String,
    pub path: String,
    pub hash: String,
    pub runs: u32,
    /// The pass rule: `4/5`, or `every trial`.
    pub rule: String,
    pub difficulty: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// The worst status among its agents.
    pub status: CellStatus,
    /// The rate over all agents.
    pub rate: Option<RatePage>,
    /// The median duration in microseconds.
    pub median: Option<u64>,
    /// The total tokens and cost of its trials; `None` if any of them is unknown.
    pub tokens: Option<u64>,
    pub cost: Option<f64>,
    /// One for each agent; `None` if a filter left out all of its trials.
    pub cells: Vec<Option<CellPage>>,
}

/// Trials that did not pass for the same cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CausePage {
    pub trials: usize,
    /// The number of distinct cases.
    pub cases: usize,
    pub outcome: &'static str,
    pub blame: Option<&'static str>,
    pub check: Option<String>,
    pub reason: String,
}

impl RatePage {
    pub(super) fn of(rate: &Rate) -> Self {
        let (passed, counted) = (rate.tally.passed, rate.tally.counted);
        let trials = (
            words::thousands(u64::from(passed)),
            words::thousands(u64::from(counted)),
        );
        Self {
            passed,
            counted,
            mean: rate.mean,
            low: rate.interval.low,
            high: rate.interval.high,
            text: format!("{}/{} ({})", trials.0, trials.1, words::rate(rate)),
        }
    }

    /// The rate of trials of one case.
    fn of_case(passed: u32, counted: u32) -> Option<Self> {
        let rate = Rate::of(&[PassCount { passed, counted }]);
        rate.as_ref().map(Self::of)
    }
}

impl QuantilesPage {
    fn of(mut values: Vec<f64>, shown: impl Fn(f64) -> String) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let at = |share| quantile(&values, share);
        let median = at(0.5)?;
        Some(Self {
            values: [at(0.05)?, at(0.25)?, median, at(0.75)?, at(0.95)?],
            median: shown(median),
        })
    }
}

impl CausePage {
    pub(super) fn of(cause: &Cause<'_>) -> Self {
        Self {
            trials: cause.trials.len(),
            cases: cause.cases(),
            outcome: words::outcome(Some(cause.outcome)),
            blame: cause.blame.map(words::blame),
            check: cause.check.map(str::to_owned),
            reason: cause.reason.clone(),
        }
    }
}

pub(super) fn agents(summary: &Summary) -> Vec<AgentPage> {
    let both = summary.plan.agents.iter().zip(summary.by_agent());
    both.map(|(planned, found)| agent(planned, found, summary))
        .collect()
}

fn agent(planned: &PlannedAgent, found: AgentSummary<'_>, summary: &Summary) -> AgentPage {
    let trials = summary.trials();
    let results = trials.filter(|(_, trials, _)| trials.agent == planned.name);
    let results: Vec<&TrialResult> = results.filter_map(|(_, _, t)| t.result.as_ref()).collect();
    let micros = results
        .iter()
        .map(|result| result.duration().as_secs_f64() * 1e6);
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    AgentPage {
        name: planned.name.clone(),
        short: summary::short_name(planned).to_owned(),
        model: planned.model.clone(),
        counts: found.counts,
        rate: found.rate.as_ref().map(RatePage::of),
        duration: QuantilesPage::of(micros.collect(), |micros| {
            duration::brief(Duration::from_secs_f64(micros / 1e6))
        }),
        tokens: QuantilesPage::of(
            results.iter().filter_map(|result| tokens(result)).collect(),
            |tokens| words::thousands(whole(tokens)),
        ),
        cost: QuantilesPage::of(
            results.iter().filter_map(|result| cost(result)).collect(),
            |dollars| words::cost(Some(dollars)),
        ),
        total_cost: words::cost(found.cost_usd),
        alone: owned(found.alone),
        missed_alone: owned(found.missed_alone),
    }
}

/// The tokens of the agent of a trial, if the model reports them.
fn tokens(result: &TrialResult) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "far fewer tokens than 2^52")]
    let number = |count: u64| count as f64;
    let usage = &result.agent().usage;
    Some(number(usage.input?) + number(usage.output?))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number of tokens is positive, and small"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// The cases in the order of the plan, and their positions, worst first.
pub(super) fn cases(summary: &Summary) -> (Vec<CasePage>, Vec<usize>) {
    let mut cells: BTreeMap<(&str, &str), Cell<'_>> = BTreeMap::new();
    for cell in worst_first(summary) {
        cells.insert((&cell.case.case.id, &cell.trials.agent), cell);
    }
    let of = summary.cases.iter().map(|of| {
        let agents = of.agents.iter();
        let cells = agents.map(|trials| {
            let cell = cells.get(&(of.case.id.as_str(), trials.agent.as_str()));
            cell.map(CellPage::of)
        });
        let trials = of.agents.iter().flat_map(|agent| &agent.trials);
        let results: Vec<&TrialResult> = trials.filter_map(|t| t.result.as_ref()).collect();
        case(&of.case, cells.collect(), &results)
    });
    let cases: Vec<CasePage> = of.collect();
    let mut worst: Vec<usize> = (0..cases.len()).collect();
    let share = |case: &CasePage| case.rate.as_ref().map_or(0.0, |rate| rate.mean);
    worst.sort_by(|a, b| {
        let (a, b) = (&cases[*a], &cases[*b]);
        let status = a.status.cmp(&b.status);
        status.then(share(a).total_cmp(&share(b)))
    });
    (cases, worst)
}

fn case(planned: &PlannedCase, cells: Vec<Option<CellPage>>, results: &[&TrialResult]) -> CasePage {
    let shown = || cells.iter().flatten();
    let passed: u32 = shown().map(|cell| cell.passed).sum();
    let not_passed: u32 = shown().map(|cell| cell.not_passed).sum();
    let micros = results.iter().map(|r| r.duration().as_secs_f64() * 1e6);
    let median = QuantilesPage::of(micros.collect(), |_| String::new());
    // A case that did not run has used nothing that is known.
    let has_run = !results.is_empty();
    let tokens: Option<Vec<f64>> = results.iter().map(|result| tokens(result)).collect();
    let cost: Option<Vec<f64>> = results.iter().map(|result| cost(result)).collect();
    CasePage {
        id: planned.id.clone(),
        name: planned.name.clone(),
        path: planned.path.clone(),
        hash: planned.hash.clone(),
        runs: planned.runs,
        rule: PassThreshold::of(planned.pass).to_string(),
        difficulty: planned.difficulty.clone(),
        labels: planned.labels.clone(),
        // A case without any cell shows nothing that passed.
        status: shown()
            .map(|cell| cell.status)
            .min()
            .unwrap_or(CellStatus::Inconclusive),
        rate: RatePage::of_case(passed, passed + not_passed),
        median: median.map(|median| whole(median.values[2])),
        tokens: tokens
            .filter(|_| has_run)
            .map(|all| whole(all.iter().sum())),
        cost: cost.filter(|_| has_run).map(|all| all.iter().sum()),
        cells,
    }
}

impl CellPage {
    fn of(cell: &Cell<'_>) -> Self {
        let counts = cell.counts;
        Self {
            status: match cell.standing {
                // Its reason says that the failure is known.
                CaseStatus::Missed => CellStatus::Missed,
                CaseStatus::Inconclusive => CellStatus::Inconclusive,
                CaseStatus::KnownFailure => CellStatus::KnownFailure,
                CaseStatus::Flaky => CellStatus::Flaky,
                CaseStatus::Passed => CellStatus::Passed,
            },
            passed: counts.passed,
            not_passed: counts.not_passed,
            no_verdict: counts.open,
            rate: RatePage::of_case(counts.passed, counts.counted()),
            reason: cell.reason(),
        }
    }
}
