//! Cases over time: a line for each case, content and agent.
//!
//! The main types are [`CaseLine`], [`Flakiness`] and [`Slowdown`]. A case whose content changed starts a new line, since its results
//! can't be compared with those before.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Mark;
use crate::overview::{Answer, Overview, RateOverview};
use crate::statistics::{PassCount, Rate};

/// How many of the latest runs with verdicts decide whether a case is flaky now.
const RECENT: usize = 8;

/// How many failed runs in a row may be flakiness.
const SHORT: usize = 2;

/// How many runs without a change come before the run in which a case became flaky.
const STABLE: usize = 3;

/// How many times longer than before a case must take to be slower.
const SLOWER: f64 = 1.5;

/// How many of the latest runs a line shows.
const SHOWN_RUNS: usize = 60;

/// How many lines a history holds.
const SHOWN_LINES: usize = 500;

/// The results of a case by one agent, over the runs with the same content.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseLine {
    pub id: String,
    pub agent: String,
    /// The first digits of the hash of its content.
    pub hash: String,
    /// Whether a later run has the case with other content.
    pub is_replaced: bool,
    /// The latest runs, oldest first.
    pub points: Vec<CasePoint>,
    /// The pass rate over all runs of the line; trials of one run may be correlated. `None` if no trial counts.
    pub rate: Option<RateOverview>,
    pub flaky: Option<Flakiness>,
    pub slower: Option<Slowdown>,
}

/// A case in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CasePoint {
    /// The position of the run.
    pub run: usize,
    pub passed: u32,
    pub not_passed: u32,
    /// Trials without a verdict.
    pub open: u32,
    pub rule: Answer,
    /// The median duration of the trials with a verdict, in microseconds.
    pub median: Option<u64>,
}

/// A case whose trials take much longer than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Slowdown {
    /// The median of the recent runs before, in microseconds.
    pub before: u64,
    /// The median of the latest run, in microseconds.
    pub now: u64,
    /// What changed with that run.
    pub with: Vec<Mark>,
}

/// How a case is flaky: trials of one run differ, or runs differ back and forth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Flakiness {
    /// How many of the recent runs are flaky.
    pub runs: usize,
    /// The number of recent runs with verdicts.
    pub of: usize,
    /// The run in which the case became flaky, after at least three runs in which every trial passed.
    pub since: Option<usize>,
    /// What changed with that run.
    pub with: Vec<Mark>,
}

impl CasePoint {
    fn counted(&self) -> u32 {
        self.passed + self.not_passed
    }

    /// Whether all trials passed, or none did; `None` if they differ.
    fn verdict(&self) -> Option<bool> {
        match (self.passed, self.not_passed) {
            (_, 0) => Some(true),
            (0, _) => Some(false),
            _ => None,
        }
    }
}

/// The lines of runs, oldest first, and how many are left out.
pub(super) fn lines(runs: &[(String, Overview)], marks: &[Vec<Mark>]) -> (Vec<CaseLine>, usize) {
    let mut found: BTreeMap<(&str, &str, &str), Vec<CasePoint>> = BTreeMap::new();
    let mut latest: BTreeMap<&str, &str> = BTreeMap::new();
    for (index, (_, run)) in runs.iter().enumerate() {
        for case in &run.cases {
            latest.insert(&case.id, &case.hash);
            let cells = run.agents.iter().zip(case.trials.iter().zip(&case.rule));
            for (position, (agent, ([passed, not_passed, open], rule))) in cells.enumerate() {
                let key = (&*case.id, &*agent.name, &*case.hash);
                found.entry(key).or_default().push(CasePoint {
                    run: index,
                    passed: *passed,
                    not_passed: *not_passed,
                    open: *open,
                    rule: *rule,
                    median: case.medians.get(position).copied().flatten(),
                });
            }
        }
    }
    let mut lines: Vec<CaseLine> = found
        .into_iter()
        .map(|((id, agent, hash), points)| CaseLine {
            id: id.to_owned(),
            agent: agent.to_owned(),
            hash: hash.to_owned(),
            is_replaced: latest.get(id) != Some(&hash),
            rate: rate(&points),
            flaky: flakiness(&points, marks),
            slower: slowdown(&points, marks),
            points,
        })
        .collect();
    lines.sort_by_key(order);
    let more = lines.len().saturating_sub(SHOWN_LINES);
    lines.truncate(SHOWN_LINES);
    for line in &mut lines {
        let old = line.points.len().saturating_sub(SHOWN_RUNS);
        line.points.drain(..old);
    }
    (lines, more)
}

/// Current lines before replaced ones; flaky, then missed, then inconclusive, then met.
fn order(line: &CaseLine) -> (bool, u8) {
    let rank = match (&line.flaky, line.points.last().map(|point| point.rule)) {
        (Some(flaky), _) if flaky.since.is_some() => 0,
        (Some(_), _) => 1,
        (None, Some(Answer::Missed)) => 2,
        (None, Some(Answer::Inconclusive) | None) => 3,
        (None, Some(Answer::Met)) => 4,
    };
    (line.is_replaced, rank)
}

fn rate(points: &[CasePoint]) -> Option<RateOverview> {
    let counts = points.iter().map(|point| PassCount {
        passed: point.passed,
        counted: point.counted(),
    });
    Rate::of(&counts.collect::<Vec<_>>())
        .as_ref()
        .map(RateOverview::of)
}

/// Whether a case is flaky now. A case that failed from some run on is not flaky: something broke it.
fn flakiness(points: &[CasePoint], marks: &[Vec<Mark>]) -> Option<Flakiness> {
    let counted: Vec<&CasePoint> = points.iter().filter(|point| point.counted() > 0).collect();
    let flaky = flaky_points(&counted);
    let from = counted.len().saturating_sub(RECENT);
    let recent = flaky[from..].iter().filter(|is_flaky| **is_flaky).count();
    if recent == 0 {
        return None;
    }
    let first = flaky.iter().position(|is_flaky| *is_flaky);
    let became = first.filter(|first| {
        let before = &counted[..*first];
        let all_passed = before.iter().all(|point| point.verdict() == Some(true));
        *first >= from.max(STABLE) && all_passed
    });
    let since = became.map(|index| counted[index].run);
    Some(Flakiness {
        runs: recent,
        of: counted.len() - from,
        since,
        with: since
            .and_then(|run| marks.get(run).cloned())
            .unwrap_or_default(),
    })
}

/// Whether the trials of the latest run took longer than those of every recent run before, and much longer than usual.
fn slowdown(points: &[CasePoint], marks: &[Vec<Mark>]) -> Option<Slowdown> {
    let (last, before) = points.split_last()?;
    let now = last.median?;
    let medians = before.iter().rev().filter_map(|point| point.median);
    let mut before: Vec<u64> = medians.take(RECENT).collect();
    before.sort_unstable();
    let (usual, longest) = (*before.get(before.len() / 2)?, *before.last()?);
    #[expect(clippy::cast_precision_loss, reason = "durations are far below 2^52")]
    let is_much = now as f64 >= usual as f64 * SLOWER;
    (before.len() >= STABLE && now > longest && is_much).then(|| Slowdown {
        before: usual,
        now,
        with: marks.get(last.run).cloned().unwrap_or_default(),
    })
}

/// Which points are flaky: those whose trials differ, and short rows of failures between points that passed. A longer
/// row is a case that was broken and repaired.
fn flaky_points(points: &[&CasePoint]) -> Vec<bool> {
    let verdicts: Vec<Option<bool>> = points.iter().map(|point| point.verdict()).collect();
    let mut flaky: Vec<bool> = verdicts.iter().map(Option::is_none).collect();
    let mut start = 0;
    for row in verdicts.chunk_by(|a, b| a == b) {
        let end = start + row.len();
        let is_between = start > 0 && end < verdicts.len();
        if row[0] == Some(false) && is_between && row.len() <= SHORT {
            flaky[start..end].fill(true);
        }
        start = end;
    }
    flaky
}
