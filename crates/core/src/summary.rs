//! What a run came to, trial by trial.
//!
//! Its main type is [`Summary`]. It is read from the run's own events and its [index](crate::index), and
//! keeps nothing of a transcript: its size depends on how many trials there are, not on what they did.

mod agents;
#[cfg(test)]
mod tests;
mod trial;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::SkippedEval;
use crate::event::{
    Blame, Event, EventKind, Outcome, PlannedAgent, PlannedCase, PlannedWarning, RunConfig,
    RunEnded, RunKind, RunPlanned, RunStarted, ServerSeen, WireKind,
};
use crate::fold::ModelActivity;
use crate::index::{self, IndexEntry, IndexScrutiny};
use crate::pass_rule::{CaseVerdict, PassThreshold, TrialCounts};
use crate::record::{RecordError, RunReader};
use crate::statistics::{PassCount, Rate};

pub use self::agents::AgentSummary;
pub use self::trial::{ModelSpending, TrialResult, TrialSummary, UnmetCheck};
pub use crate::index::{FindingCounts, FoundKind};

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// What was started.
    pub started: RunStarted,
    /// What was planned; its cases are in [`Summary::cases`].
    pub plan: PlanSummary,
    /// The cases, in the order of the plan.
    pub cases: Vec<CaseSummary>,
    /// What servers said of themselves, in order.
    pub servers: Vec<ServerSeen>,
    /// How each server was spoken to.
    pub transports: BTreeMap<String, WireKind>,
    /// What was found to be wrong, by server.
    pub findings: BTreeMap<String, FindingCounts>,
    /// What agents' models were asked, in all attempts.
    pub agent: ModelActivity,
    /// What judges were asked, in all attempts.
    pub judge: ModelActivity,
    /// The records of trials that the plan does not name.
    pub unplanned: u32,
    /// How many events only a newer version knows; nothing of them is in here.
    pub unknown_events: u64,
    /// How the run ended, the last time it did; `None` if it never did.
    pub ended: Option<RunEnded>,
    /// The trials whose record changed after they ended, as any end of the run says.
    pub changed_trials: BTreeSet<String>,
    /// From the run's start to its last event.
    pub duration: Duration,
}

/// What a run set out to do, but for its cases.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanSummary {
    /// The eval file.
    pub suite: String,
    /// The agents' names, with their models where they are known.
    pub agents: Vec<PlannedAgent>,
    /// Who judges.
    pub judge: Option<String>,
    /// Whether trials share their servers.
    pub shared_servers: bool,
    /// The run whose models were heard again.
    pub replay: Option<String>,
    /// How the run is configured, if its record says so.
    pub config: Option<RunConfig>,
    /// The warnings about the suite's files.
    pub warnings: Vec<PlannedWarning>,
    /// Whether the run is of a suite, or of evals that servers ship.
    pub kind: RunKind,
    /// Of servers' own evals: those that are listed and not run.
    pub not_run: Vec<SkippedEval>,
}

/// What came of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseSummary {
    /// The case.
    pub case: PlannedCase,
    /// Its trials by each agent, in the order of the plan.
    pub agents: Vec<AgentTrials>,
}

/// The trials of a case by one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentTrials {
    /// The agent's name.
    pub agent: String,
    /// One for each repeat, in order.
    pub trials: Vec<TrialSummary>,
}

/// How many trials ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Every check passed.
    pub passed: u32,
    /// A check or the server failed.
    pub failed: u32,
    /// A limit of the trial ended it.
    pub timed_out: u32,
    /// We could not tell.
    pub errored: u32,
    /// It was stopped from outside.
    pub cancelled: u32,
    /// It never ended, or never started.
    pub not_run: u32,
}

impl Counts {
    /// How many there are.
    pub fn total(&self) -> u32 {
        self.counted() + self.errored + self.cancelled + self.not_run
    }

    /// How many count in a pass rate.
    pub fn counted(&self) -> u32 {
        self.passed + self.failed + self.timed_out
    }

    fn add(&mut self, outcome: Option<Outcome>) {
        *match outcome {
            Some(Outcome::Passed) => &mut self.passed,
            Some(Outcome::Failed) => &mut self.failed,
            Some(Outcome::TimedOut) => &mut self.timed_out,
            Some(Outcome::Errored) => &mut self.errored,
            Some(Outcome::Cancelled) => &mut self.cancelled,
            None => &mut self.not_run,
        } += 1;
    }
}

impl AgentTrials {
    /// How many of them passed, did not pass, and have no verdict.
    pub fn standing(&self) -> TrialCounts {
        TrialCounts::of(self.trials.iter().map(TrialSummary::outcome))
    }

    /// Whether the case's rule is kept.
    pub fn verdict(&self, case: &PlannedCase) -> CaseVerdict {
        PassThreshold::of(case.pass).verdict(self.standing())
    }
}

impl Summary {
    /// Sums up a run, while it is written or later. A run without a plan, as of single calls, has
    /// nothing to sum up.
    ///
    /// An entry of the index stands for its file if that has the length that the entry names; other
    /// files are folded.
    pub fn of_run(run: &RunReader) -> Result<Self, RecordError> {
        Self::with(run, IndexScrutiny::Length)
    }

    /// As [`Summary::of_run`], with every file compared by its hash.
    pub fn checked(run: &RunReader) -> Result<Self, RecordError> {
        Self::with(run, IndexScrutiny::Digest)
    }

    fn with(run: &RunReader, scrutiny: IndexScrutiny) -> Result<Self, RecordError> {
        let mut summary = Self::of_events(run)?;
        let slots = summary.slots();
        for entry in index::load(run, scrutiny)? {
            let number = run.trial_file(&entry.file).map_or(0, |file| file.attempt);
            summary.take(entry, number, &slots);
        }
        Ok(summary)
    }

    /// Every case with its trials by each agent, in the order of the plan.
    pub fn cells(&self) -> impl Iterator<Item = (&CaseSummary, &AgentTrials)> {
        self.cases
            .iter()
            .flat_map(|case| case.agents.iter().map(move |trials| (case, trials)))
    }

    /// Every planned trial, with its case and agent.
    pub fn trials(&self) -> impl Iterator<Item = (&CaseSummary, &AgentTrials, &TrialSummary)> {
        self.cells()
            .flat_map(|(case, agent)| agent.trials.iter().map(move |trial| (case, agent, trial)))
    }

    /// How many trials ended how.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for (_, _, trial) in self.trials() {
            counts.add(trial.outcome());
        }
        counts
    }

    /// How many trials that did not pass are whose fault.
    pub fn blames(&self) -> BTreeMap<(Blame, bool), u32> {
        let mut blames = BTreeMap::new();
        for (_, _, trial) in self.trials() {
            if let Some(result) = &trial.result
                && let Some(blame) = result.blame
            {
                let is_error = result.outcome == Outcome::Errored;
                *blames.entry((blame, is_error)).or_default() += 1;
            }
        }
        blames
    }

    /// How many trials failed, or errored, without a proven cause.
    pub fn unclear(&self, errored: bool) -> usize {
        let wanted = if errored {
            Outcome::Errored
        } else {
            Outcome::Failed
        };
        let results = self.trials().filter_map(|(_, _, t)| t.result.as_ref());
        let unclear = |result: &&TrialResult| result.outcome == wanted && result.blame.is_none();
        results.filter(unclear).count()
    }

    /// The pass rate, of one agent or of all; `None` if no trial counts.
    pub fn rate(&self, agent: Option<&str>) -> Option<Rate> {
        let tallies: Vec<PassCount> = self
            .cases
            .iter()
            .map(|case| {
                let mut tally = PassCount::default();
                let wanted = |trials: &&AgentTrials| agent.is_none_or(|name| trials.agent == name);
                for trials in case.agents.iter().filter(wanted) {
                    let standing = trials.standing();
                    tally.passed += standing.passed;
                    tally.counted += standing.passed + standing.not_passed;
                }
                tally
            })
            .collect();
        Rate::of(&tallies)
    }
}

/// Where the trials of a case by an agent belong: the number of the case, and that of the agent.
type Slots = HashMap<(String, String), (usize, usize)>;

impl Summary {
    /// What the run's own events say.
    fn of_events(run: &RunReader) -> Result<Self, RecordError> {
        let mut planned = None;
        let mut servers: Vec<ServerSeen> = Vec::new();
        let mut ended: Option<RunEnded> = None;
        let mut changed_trials = BTreeSet::new();
        let (mut last, mut unknown_events) = (0, 0);
        for event in run.events()? {
            let Event { at, event, .. } = event?;
            last = last.max(at);
            match event {
                EventKind::RunPlanned(plan) => planned = Some(plan),
                EventKind::ServerSeen(seen) => {
                    servers.retain(|before| before.server != seen.server);
                    servers.push(seen);
                }
                EventKind::RunEnded(end) => {
                    changed_trials.extend(end.changed_trials.iter().cloned());
                    ended = Some(end);
                }
                EventKind::Unknown(_) => unknown_events += 1,
                _ => {}
            }
        }
        let plan = planned.ok_or_else(|| RecordError::NoPlan {
            path: run.folder().to_owned(),
        })?;
        let (cases, plan) = unrolled(plan);
        Ok(Self {
            started: run.started().clone(),
            plan,
            cases,
            servers,
            transports: BTreeMap::new(),
            findings: BTreeMap::new(),
            agent: ModelActivity::default(),
            judge: ModelActivity::default(),
            unplanned: 0,
            unknown_events,
            ended,
            changed_trials,
            duration: Duration::from_micros(last),
        })
    }

    fn slots(&self) -> Slots {
        let mut slots = Slots::new();
        for (index, case) in self.cases.iter().enumerate() {
            for (number, agent) in case.agents.iter().enumerate() {
                slots.insert((case.case.id.clone(), agent.agent.clone()), (index, number));
            }
        }
        slots
    }

    /// Takes in an attempt at a trial, the one with this number.
    fn take(&mut self, entry: IndexEntry, number: u32, slots: &Slots) {
        let IndexEntry { file, attempt, .. } = entry;
        self.duration = self.duration.max(attempt.last_at());
        self.unknown_events += attempt.unknown_events;
        self.agent.add(&attempt.agent);
        self.judge.add(&attempt.judge);
        let result = TrialResult::of(&file, number, &attempt);
        self.transports.extend(attempt.transports);
        for (server, kinds) in attempt.findings {
            let all = self.findings.entry(server).or_default();
            for (kind, found) in kinds {
                all.entry(kind).or_default().add(found);
            }
        }
        // A record that was torn before it said what it is of.
        let Some(started) = attempt.trial else {
            return;
        };
        let agent = match (started.agent, self.plan.agents.as_slice()) {
            (Some(agent), _) => agent,
            (None, [only]) => only.name.clone(),
            (None, _) => String::new(),
        };
        let slot = slots.get(&(started.case, agent)).and_then(|(case, agent)| {
            let trials = &mut self.cases[*case].agents[*agent].trials;
            let index = usize::try_from(started.repeat).ok()?.checked_sub(1)?;
            trials.get_mut(index)
        });
        match slot {
            Some(trial) => trial.take(started.attempt, result),
            None => self.unplanned += 1,
        }
    }
}

/// The cases of a plan, none of whose trials has run yet, and the rest of it.
fn unrolled(plan: RunPlanned) -> (Vec<CaseSummary>, PlanSummary) {
    let agents = plan.agents;
    let cases = plan
        .cases
        .into_iter()
        .map(|case| CaseSummary {
            agents: agents
                .iter()
                .map(|agent| AgentTrials {
                    agent: agent.name.clone(),
                    trials: (1..=case.runs).map(TrialSummary::not_run).collect(),
                })
                .collect(),
            case,
        })
        .collect();
    let plan = PlanSummary {
        suite: plan.suite,
        agents,
        judge: plan.judge,
        shared_servers: plan.shared_servers,
        replay: plan.asked.replay,
        config: plan.config.map(|config| *config),
        warnings: plan.warnings,
        kind: plan.kind,
        not_run: plan.not_run,
    };
    (cases, plan)
}
