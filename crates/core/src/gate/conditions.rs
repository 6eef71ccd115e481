//! The conditions of a gate, each with its answer and its numbers.
//!
//! The main function is [`conditions`]. A trial without a verdict counts as passed and as failed; only if
//! both give the same answer, the answer is definite.

use std::collections::HashSet;

use proctor_record::event::{PassHatGate, PlannedGates, RunTally};
use proctor_record::hint::counted;

use super::{CaseVerdict, PassThreshold, known};
use crate::compare::{CellPair, Comparison, ComparisonAnswer, Pairing, sentence, tally};
use crate::pass_rule::TrialCounts;
use crate::statistics::{
    Decision, Interval, PassCount, Rate, decide_rate, mean_pass_hat, more_for_lower_bound,
};
use crate::summary::{AgentTrials, Summary};

/// The part of a threshold that may be missing, so that rounding never misses a gate. It is relative: a rate of zero
/// reaches no threshold above zero, however small.
const ROUNDING: f64 = 1e-9;

/// One condition for success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The option that sets it, such as `--min-pass-rate 90%`; `None` for a pass rule.
    pub option: Option<String>,
    pub verdict: CaseVerdict,
    /// What was found, with its numbers.
    pub text: String,
}

/// The conditions of the gates, in a fixed order. Pass rules of cases are not among them.
pub fn conditions(summary: &Summary, gates: &PlannedGates) -> Vec<Condition> {
    let mut all = Vec::new();
    all.extend(gates.min_pass_rate.map(|rate| min_pass_rate(summary, rate)));
    all.extend(
        gates
            .min_lower_bound
            .map(|bound| min_lower_bound(summary, bound)),
    );
    all.extend(gates.pass_hat.map(|gate| pass_hat(summary, gate)));
    all.extend(gates.base.as_ref().map(|base| no_regression(summary, base)));
    all.extend(gates.max_errors.map(|most| max_errors(summary, most)));
    all.extend(known::conditions(summary));
    all.extend(failed_cleanup(summary));
    all
}

/// After a failed cleanup of the run, what the trials left behind is unknown.
fn failed_cleanup(summary: &Summary) -> Option<Condition> {
    let reason = summary.ended.as_ref()?.failed_cleanup.as_ref()?;
    Some(Condition {
        option: None,
        verdict: CaseVerdict::Open,
        // The end of a script's output has lines of its own.
        text: reason.lines().collect::<Vec<_>>().join(" "),
    })
}

/// The trials of each case, of all agents together. Known failures are left out.
fn cases(summary: &Summary) -> Vec<TrialCounts> {
    let cases = summary.cases.iter().map(|case| {
        let mut sum = TrialCounts::default();
        let cells = case.agents.iter().filter(|trials| is_counted(trials));
        for counts in cells.map(AgentTrials::standing) {
            sum.passed += counts.passed;
            sum.not_passed += counts.not_passed;
            sum.open += counts.open;
        }
        sum
    });
    cases.filter(|counts| counts.total() > 0).collect()
}

/// Whether the trials count in a rate: those of known failures don't.
pub(super) fn is_counted(trials: &AgentTrials) -> bool {
    trials.known_failure.is_none()
}

/// `, 2 known failures left out`, or nothing.
fn left_out(summary: &Summary) -> String {
    let known = summary.cells().filter(|(_, trials)| !is_counted(trials));
    match known.count() {
        0 => String::new(),
        count => format!(", {} left out", counted(count, "known failure")),
    }
}

/// The rates as they are, at worst and at best; `None` if no trial was planned.
struct Rates {
    found: Option<Rate>,
    worst: Rate,
    best: Rate,
    open: u32,
    /// The known failures that are not counted, in words.
    left_out: String,
}

impl Rates {
    fn of(summary: &Summary) -> Option<Self> {
        let cases = cases(summary);
        let rate = |count: fn(&TrialCounts) -> PassCount| {
            Rate::of(&cases.iter().map(count).collect::<Vec<_>>())
        };
        Some(Self {
            found: rate(|counts| PassCount {
                passed: counts.passed,
                counted: counts.counted(),
            }),
            worst: rate(|counts| PassCount {
                passed: counts.passed,
                counted: counts.total(),
            })?,
            best: rate(|counts| PassCount {
                passed: counts.passed + counts.open,
                counted: counts.total(),
            })?,
            open: cases.iter().map(|counts| counts.open).sum(),
            left_out: left_out(summary),
        })
    }

    /// `8/10 trials passed (80%)`, with the trials that have no verdict. The share of a curtailed run is not a
    /// rate.
    fn shown(&self, is_curtailed: bool) -> String {
        let mut text = match &self.found {
            Some(rate) if is_curtailed => {
                let PassCount { passed, counted } = rate.tally;
                return format!(
                    "{passed} of {counted} trials passed, and {} did not run",
                    counted_more(self.open).replace(" more", "")
                );
            }
            Some(rate) => format!(
                "{}/{} trials passed ({})",
                rate.tally.passed,
                rate.tally.counted,
                percent(rate.mean)
            ),
            None => "no trial has a verdict".to_owned(),
        };
        if self.open > 0 {
            text.push_str(&format!(", {} without a verdict", self.open));
        }
        text.push_str(&self.left_out);
        text
    }
}

fn min_pass_rate(summary: &Summary, least: f64) -> Condition {
    let option = Some(format!("--min-pass-rate {}", percent(least)));
    let Some(rates) = Rates::of(summary) else {
        return no_trials(option);
    };
    let mut verdict = between(rates.worst.mean, rates.best.mean, least);
    let mut text = rates.shown(summary.is_curtailed());
    if verdict == CaseVerdict::Open
        && let Some((decided, why)) = anytime(summary, least)
        && decided != CaseVerdict::Open
    {
        verdict = decided;
        text.push_str(&why);
    }
    if verdict == CaseVerdict::Open {
        let trials = counted(rates.open as usize, "trial");
        text.push_str(&format!("; a verdict of {trials} decides, retry them"));
    }
    Condition {
        option,
        verdict,
        text,
    }
}

/// The answer of the anytime-valid interval, with its numbers; `None` unless the run looked at it after every
/// round (`--stop-when-decided`). Known failures are left out of rates by their outcome, which the interval
/// does not allow for.
fn anytime(summary: &Summary, least: f64) -> Option<(CaseVerdict, String)> {
    if !summary.plan.stop_when_decided || !summary.plan.known_failures.is_empty() {
        return None;
    }
    let answer = decide_rate(summary.rounds(), least);
    let verdict = match answer.decision {
        Decision::Accept => CaseVerdict::Met,
        Decision::Reject => CaseVerdict::Missed,
        Decision::Continue => CaseVerdict::Open,
    };
    let rounds = counted(answer.rounds as usize, "complete round");
    let (passed, all) = (answer.passed, answer.counted);
    let Interval { low, high } = answer.interval;
    let text = format!(
        "; {passed}/{all} in {rounds}, anytime-valid 95% interval {}–{}",
        percent(low),
        percent(high)
    );
    Some((verdict, text))
}

fn min_lower_bound(summary: &Summary, least: f64) -> Condition {
    let option = Some(format!("--min-lower-bound {}", percent(least)));
    let Some(rates) = Rates::of(summary) else {
        return no_trials(option);
    };
    if let Some((decided, why)) = anytime(summary, least) {
        // Looking after every round and once more with another bound would be two chances to be wrong.
        let is_missed = !reaches(rates.best.mean, least);
        let verdict = match decided {
            CaseVerdict::Open if is_missed => CaseVerdict::Missed,
            CaseVerdict::Met
            | CaseVerdict::Missed
            | CaseVerdict::Open
            | CaseVerdict::KnownFailure => decided,
        };
        let text = format!("{}{why}", rates.shown(summary.is_curtailed()));
        return Condition {
            option,
            verdict,
            text,
        };
    }
    let bound = rates.found.as_ref().map_or(0.0, Rate::lower_bound);
    let mut text = format!("{}, lower bound {}", rates.shown(false), percent(bound));
    let verdict = if reaches(rates.worst.lower_bound(), least) {
        CaseVerdict::Met
    } else if !reaches(rates.best.mean, least) {
        // More trials at such a rate would never lift the bound.
        CaseVerdict::Missed
    } else {
        let more = rates.found.as_ref();
        let more = more.and_then(|rate| more_for_lower_bound(rate, least));
        text.push_str(&match (rates.open, more) {
            (0, None) => "; no number of trials at this rate would decide".to_owned(),
            (0, Some(more)) => format!("; about {} at this rate would decide", counted_more(more)),
            (open, _) => format!("; retry the {} first", counted(open as usize, "trial")),
        });
        CaseVerdict::Open
    };
    Condition {
        option,
        verdict,
        text,
    }
}

fn pass_hat(summary: &Summary, gate: PassHatGate) -> Condition {
    let PassHatGate { k, rate } = gate;
    let option = Some(format!("--pass-hat {k}={}", percent(rate)));
    let cells: Vec<TrialCounts> = summary
        .cells()
        .filter(|(_, trials)| is_counted(trials))
        .map(|(_, trials)| trials.standing())
        .collect();
    let open: u32 = cells.iter().map(|counts| counts.open).sum();
    let mean = |count: fn(&TrialCounts) -> (u32, u32)| mean_pass_hat(cells.iter().map(count), k);
    let worst = mean(|counts| (counts.passed, counts.total()));
    let best = mean(|counts| (counts.passed + counts.open, counts.total()));
    let (Some(worst), Some(best)) = (worst, best) else {
        let fewest = cells.iter().map(TrialCounts::total).min().unwrap_or(0);
        let text = format!(
            "a case has {}; run each at least {k} times",
            counted(fewest as usize, "trial")
        );
        return Condition {
            option,
            verdict: CaseVerdict::Open,
            text,
        };
    };
    let text = if open > 0 {
        format!(
            "pass^{k} is between {} and {}, since {} have no verdict; retry them",
            percent(worst),
            percent(best),
            counted(open as usize, "trial")
        )
    } else {
        format!("pass^{k} is {}", percent(worst))
    };
    let text = format!("{text}{}", left_out(summary));
    Condition {
        option,
        verdict: between(worst, best, rate),
        text,
    }
}

fn no_regression(summary: &Summary, base: &RunTally) -> Condition {
    let comparison = Comparison::of(base, &tally(summary, "this run".to_owned()));
    if let Some(suites) = corrected_over(summary, base, &comparison) {
        return Condition {
            option: Some(format!("--no-regression {}", base.run)),
            verdict: CaseVerdict::Met,
            text: format!(
                "No regression shown after Holm over {suites} suites; this suite alone: {}",
                sentence::answer(&comparison, &|name| format!("`{name}`"))
            ),
        };
    }
    Condition {
        option: Some(format!("--no-regression {}", base.run)),
        verdict: match comparison.answer {
            ComparisonAnswer::NoRegressionShown => CaseVerdict::Met,
            ComparisonAnswer::Regression => CaseVerdict::Missed,
            ComparisonAnswer::Inconclusive { .. } => CaseVerdict::Open,
        },
        text: sentence::answer(&comparison, &|name| format!("`{name}`")) + &removed(&comparison),
    }
}

/// The cases of the base that this run does not have, in words.
fn removed(comparison: &Comparison) -> String {
    match &comparison.pairing.removed[..] {
        [] => String::new(),
        [one] => format!("; the case `{}` of the base is not in this run", one.name),
        [first, ..] => format!(
            "; {} cases of the base are not in this run, such as `{}`",
            comparison.pairing.removed.len(),
            first.name
        ),
    }
}

/// The cases and agents that `--no-regression` compares, if it alone replaces the default rule. The others, such as new
/// and changed cases, must meet their pass rules.
pub(super) fn compared(summary: &Summary, gates: &PlannedGates) -> Option<ComparedCells> {
    let base = gates.base.as_ref()?;
    let others = PlannedGates {
        base: None,
        ..gates.clone()
    };
    if others.replaces_default() {
        return None;
    }
    let pairing = Pairing::of(base, &tally(summary, String::new()));
    let cells = pairing.cells.into_iter().filter(CellPair::is_compared);
    Some(ComparedCells(
        cells.map(|cell| (cell.id, cell.agent)).collect(),
    ))
}

/// Cases by agents that have verdicts in both runs.
pub(super) struct ComparedCells(HashSet<(String, String)>);

impl ComparedCells {
    pub(super) fn contains(&self, (case, agent): (&str, &str)) -> bool {
        self.0.contains(&(case.to_owned(), agent.to_owned()))
    }
}

/// The number of suites over which the regression of this run was corrected away, if it was. It holds only for
/// the base that the run was started with.
fn corrected_over(summary: &Summary, base: &RunTally, comparison: &Comparison) -> Option<u32> {
    let planned = summary.plan.gates.as_ref()?.base.as_ref()?;
    let is_regression = comparison.answer == ComparisonAnswer::Regression;
    let ended = summary.ended.as_ref()?;
    ended
        .no_regression_over
        .filter(|_| is_regression && planned == base)
}

fn max_errors(summary: &Summary, most: u32) -> Condition {
    let counts = summary.counts();
    let unknown = counts.cancelled + counts.not_run;
    let verdict = if counts.errored > most {
        CaseVerdict::Missed
    } else if counts.errored + unknown > most {
        // A trial that did not run may still end in an error.
        CaseVerdict::Open
    } else if counts.total() == 0 {
        CaseVerdict::Open
    } else {
        CaseVerdict::Met
    };
    let mut text = format!("{} errored", counted(counts.errored as usize, "trial"));
    if unknown > 0 {
        text.push_str(&format!(", {unknown} did not run"));
    }
    Condition {
        option: Some(format!("--max-errors {most}")),
        verdict,
        text,
    }
}

fn reaches(rate: f64, least: f64) -> bool {
    rate >= least * (1.0 - ROUNDING)
}

/// The verdict on a value that lies between two others.
pub(super) fn between(worst: f64, best: f64, least: f64) -> CaseVerdict {
    if reaches(worst, least) {
        CaseVerdict::Met
    } else if !reaches(best, least) {
        CaseVerdict::Missed
    } else {
        CaseVerdict::Open
    }
}

fn no_trials(option: Option<String>) -> Condition {
    Condition {
        option,
        verdict: CaseVerdict::Open,
        text: "there were no trials to run".to_owned(),
    }
}

/// Whether a case has a pass rule of its own, which every gate keeps.
pub(super) fn has_rule(pass: Option<(u32, u32)>) -> bool {
    match PassThreshold::of(pass) {
        PassThreshold::All => false,
        PassThreshold::AtLeast { .. } => true,
    }
}

/// `80%`, with a decimal where it matters: 99.6% is not 100%.
pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    let rounded = value.round();
    if (value - rounded).abs() < 1e-6 {
        format!("{rounded:.0}%")
    } else {
        // Down, so that a missed gate never looks met.
        format!("{:.1}%", (value * 10.0).floor() / 10.0)
    }
}

fn counted_more(more: u32) -> String {
    let s = if more == 1 { "" } else { "s" };
    format!("{more} more trial{s}")
}
