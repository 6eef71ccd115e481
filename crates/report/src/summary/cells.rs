//! The cases of a run by each agent, worst first.
//!
//! Its main type is [`Cell`].

use proctor_core::causes::group;
use proctor_core::gate::{CaseVerdict, PassThreshold, TrialCounts};
use proctor_core::summary::{AgentTrials, CaseSummary, Summary};
use proctor_record::event::Outcome;

use super::{is_flaky, short_name};
use crate::{sentences, words};

/// How a case stands, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CaseStatus {
    Missed,
    Inconclusive,
    /// It misses its pass rule, as `knownFailures` says.
    KnownFailure,
    /// It meets its pass rule although trials failed.
    Flaky,
    /// It meets its pass rule, and no trial failed.
    Passed,
}

/// The trials of a case by one agent.
#[derive(Debug, Clone)]
pub(crate) struct Cell<'a> {
    pub(crate) case: &'a CaseSummary,
    pub(crate) trials: &'a AgentTrials,
    /// The agent's short name, if the run has several.
    pub(super) agent: Option<&'a str>,
    pub(crate) standing: CaseStatus,
    pub(crate) counts: TrialCounts,
}

/// All cells, worst first: by standing, then by pass rate, then in the order of the plan.
pub(crate) fn worst_first(summary: &Summary) -> Vec<Cell<'_>> {
    let agents = &summary.plan.agents;
    let cells = summary.cells().map(|(case, trials)| {
        let planned = agents.iter().find(|agent| agent.name == trials.agent);
        let verdict = trials.verdict(&case.case);
        Cell {
            case,
            trials,
            agent: planned.filter(|_| agents.len() > 1).map(short_name),
            standing: match verdict {
                CaseVerdict::Missed => CaseStatus::Missed,
                CaseVerdict::Open => CaseStatus::Inconclusive,
                CaseVerdict::Met if is_flaky(trials, verdict) => CaseStatus::Flaky,
                CaseVerdict::Met => CaseStatus::Passed,
                CaseVerdict::KnownFailure => CaseStatus::KnownFailure,
            },
            counts: trials.standing(),
        }
    });
    let mut cells: Vec<Cell> = cells.collect();
    cells.sort_by(|a, b| {
        a.standing
            .cmp(&b.standing)
            .then(a.share().total_cmp(&b.share()))
    });
    cells
}

impl Cell<'_> {
    /// Whether it needs attention.
    pub(super) fn is_listed(&self) -> bool {
        self.standing != CaseStatus::Passed
    }

    /// The name, as `result view` takes it.
    pub(super) fn name(&self) -> String {
        match self.agent {
            Some(agent) => format!("{agent}/{}", self.case.case.name),
            None => self.case.case.name.clone(),
        }
    }

    /// The number of trials that passed, of those that count.
    pub(super) fn rate(&self) -> String {
        let TrialCounts {
            passed, not_passed, ..
        } = self.counts;
        match passed + not_passed {
            0 => "–".to_owned(),
            counted => format!("{passed}/{counted}"),
        }
    }

    fn share(&self) -> f64 {
        let counted = self.counts.passed + self.counts.not_passed;
        f64::from(self.counts.passed) / f64::from(counted.max(1))
    }

    /// Why it stands so, in a line.
    pub(crate) fn reason(&self) -> String {
        let rule = PassThreshold::of(self.case.case.pass);
        let mut parts = Vec::new();
        match self.standing {
            CaseStatus::Missed => {
                let known = self.trials.unexpected_pass(&self.case.case);
                let known = known.map(|known| format!("unexpected pass; known failure: {known}"));
                parts.extend(known);
            }
            CaseStatus::Passed => {}
            CaseStatus::KnownFailure => {
                let known = self.trials.known_failure.as_deref().unwrap_or_default();
                parts.push(format!("known failure: {known}"));
            }
            CaseStatus::Flaky => parts.push(format!("meets its pass rule ({rule})")),
            CaseStatus::Inconclusive => {
                parts.push(format!(
                    "{}; the pass rule ({rule}) can still be met",
                    self.open()
                ));
            }
        }
        parts.extend(self.cause());
        parts.join("; ")
    }

    /// The most frequent cause of its failures.
    fn cause(&self) -> Option<String> {
        let trials = self.trials.trials.iter();
        let causes = group(trials.map(|trial| (self.case, self.trials, trial)));
        let cause = causes.first()?;
        let others = match causes.len() - 1 {
            0 => String::new(),
            1 => ", and 1 other cause".to_owned(),
            more => format!(", and {more} other causes"),
        };
        let blame = match cause.blame {
            Some(blame) => format!(", blame: {}", words::blame(blame)),
            None => String::new(),
        };
        let times = cause.trials.len();
        let text = sentences::cause(cause);
        Some(format!("{text} ({times}×{blame}{others})"))
    }

    /// The trials without a verdict: `1 errored, 2 not run`.
    fn open(&self) -> String {
        let count = |wanted: Option<Outcome>| {
            let trials = self.trials.trials.iter();
            trials.filter(|trial| trial.outcome() == wanted).count()
        };
        let kinds = [
            (count(Some(Outcome::Errored)), "errored"),
            (count(Some(Outcome::Cancelled)), "cancelled"),
            (count(None), "not run"),
        ];
        let named = kinds.iter().filter(|(count, _)| *count > 0);
        let named: Vec<String> = named
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        if named.is_empty() {
            "fewer trials than the pass rule names".to_owned()
        } else {
            named.join(", ")
        }
    }

    /// The name of its first trial that failed, timed out or errored.
    pub(super) fn first_failure(&self) -> Option<String> {
        let trials = self.trials.trials.iter();
        let causes = group(trials.map(|trial| (self.case, self.trials, trial)));
        let repeats = causes.iter().flat_map(|cause| &cause.trials);
        let first = repeats.map(|(_, _, trial)| trial.repeat).min()?;
        Some(match self.case.case.runs {
            1 => self.name(),
            _ => format!("{} {first}", self.name()),
        })
    }
}
