//! The summary of a run, trial by trial.
//!
//! The main type is [`Summary`]. It comes from the run's own events and its [`index`],
//! and holds no transcripts: its size depends only on the number of trials.

mod agents;
mod assertions;
mod part;
mod rates;
mod shared;
#[cfg(test)]
mod tests;
mod trial;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use proctor_record::event::SkippedEval;
use proctor_record::event::{
    Blame, Event, EventKind, NotRunOutcome, Outcome, PlannedAgent, PlannedCase, PlannedGates,
    PlannedKnownFailure, PlannedProfile, PlannedShard, PlannedWarning, RunConfig, RunEnded,
    RunKind, RunPlanned, RunStarted, ServerSeen, StepEnded, WireKind,
};
use proctor_record::fold::ModelActivity;
use proctor_record::index::{self, Attempt, IndexEntry, IndexScrutiny};
use proctor_record::record::{RecordError, RunReader, TrialFile};
use serde::{Deserialize, Serialize};

use crate::pass_rule::{CaseVerdict, PassThreshold, TrialCounts};
use crate::shard::Shard;

pub use self::agents::AgentSummary;
pub(crate) use self::agents::median;
pub use self::assertions::{AssertionCount, AssertionCounter, AttemptAssertions};
pub use self::part::TrialFilter;
use self::shared::SharedResults;
pub use self::trial::{AttemptEnd, ModelSpending, TrialResult, TrialSummary, UnmetCheck};
pub use proctor_record::index::{FindingCounts, FoundKind};

/// How many names of trial files are in memory at a time while a run ends.
const NAMES: usize = 1 << 14;

/// The results of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub started: RunStarted,
    /// The plan; its cases are in [`Summary::cases`].
    pub plan: PlanSummary,
    /// The cases, in the order of the plan.
    pub cases: Vec<CaseSummary>,
    /// What the servers reported, in order.
    pub servers: Vec<ServerSeen>,
    /// The steps of the run's own setup and cleanup, in order; of a resumed run, the latest ones.
    pub steps: Vec<StepEnded>,
    /// The transport of each server.
    pub transports: BTreeMap<String, WireKind>,
    /// The protocol problems, by server.
    pub findings: BTreeMap<String, FindingCounts>,
    /// The model requests of agents, in all attempts.
    pub agent: ModelActivity,
    /// The model requests of judges, in all attempts.
    pub judge: ModelActivity,
    /// The number of trial records that the plan does not include.
    pub unplanned: u32,
    /// The number of events that only a newer version knows. They are not included.
    pub unknown_events: u64,
    /// The latest end of the run; `None` if it never ended.
    pub ended: Option<RunEnded>,
    /// The trials whose record changed after they ended, as any end of the run says.
    pub changed_trials: BTreeSet<String>,
    /// From the run's start to its last event.
    pub duration: Duration,
}

/// The plan of a run without its cases.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanSummary {
    pub suite: String,
    /// The agents, with their models if known.
    pub agents: Vec<PlannedAgent>,
    pub judge: Option<String>,
    pub shared_servers: bool,
    /// The run whose model replies were replayed.
    pub replay: Option<String>,
    /// The gates that the run was started with.
    pub gates: Option<Box<PlannedGates>>,
    /// The cases that are expected to fail, also those that the run did not select.
    pub known_failures: Vec<PlannedKnownFailure>,
    /// Whether trials that could not change the answer of the gate were not started.
    pub stop_when_decided: bool,
    /// The profile that set flags.
    pub profile: Option<Box<PlannedProfile>>,
    /// The shard, if several machines executed the run.
    pub shard: Option<Box<PlannedShard>>,
    /// The configuration of the run, if its record has it.
    pub config: Option<RunConfig>,
    pub warnings: Vec<PlannedWarning>,
    pub kind: RunKind,
    /// The shipped evals that are listed but not run.
    pub not_run: Vec<SkippedEval>,
}

/// The results of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseSummary {
    pub case: PlannedCase,
    /// The trials of each agent, in the order of the plan.
    pub agents: Vec<AgentTrials>,
}

/// The trials of a case by one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentTrials {
    pub agent: String,
    /// One per repeat, in order.
    pub trials: Vec<TrialSummary>,
    /// The trials that a [`TrialFilter`] left out. They still count for the pass rule of the case.
    pub left_out: TrialCounts,
    /// Why the case is expected to fail, if it is listed as a known failure.
    pub known_failure: Option<String>,
}

/// The number of trials per outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub passed: u32,
    pub failed: u32,
    pub timed_out: u32,
    pub errored: u32,
    pub cancelled: u32,
    /// Trials that never started or never ended.
    pub not_run: u32,
}

impl Counts {
    pub fn total(&self) -> u32 {
        self.counted() + self.errored + self.cancelled + self.not_run
    }

    /// The number of trials that count in a pass rate.
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
    /// The number of trials that passed, did not pass, and have no verdict.
    pub fn standing(&self) -> TrialCounts {
        let shown = TrialCounts::of(self.trials.iter().map(TrialSummary::outcome));
        TrialCounts {
            passed: shown.passed + self.left_out.passed,
            not_passed: shown.not_passed + self.left_out.not_passed,
            open: shown.open + self.left_out.open,
        }
    }

    /// What the case means for the gate: whether it meets its pass rule. A known failure that misses it is
    /// as expected, and one that meets it is an unexpected pass, which misses the gate.
    pub fn verdict(&self, case: &PlannedCase) -> CaseVerdict {
        match (&self.known_failure, self.rule_verdict(case)) {
            (Some(_), CaseVerdict::Missed) => CaseVerdict::KnownFailure,
            (Some(_), CaseVerdict::Met) => CaseVerdict::Missed,
            (_, verdict) => verdict,
        }
    }

    /// Whether the case meets its pass rule, listed as a known failure or not.
    pub fn rule_verdict(&self, case: &PlannedCase) -> CaseVerdict {
        PassThreshold::of(case.pass).verdict(self.standing())
    }

    /// Why the case was expected to fail, if it meets its pass rule.
    pub fn unexpected_pass(&self, case: &PlannedCase) -> Option<&str> {
        let reason = self.known_failure.as_deref()?;
        (self.rule_verdict(case) == CaseVerdict::Met).then_some(reason)
    }
}

impl Summary {
    /// Summarizes a run, finished or not. Fails for a run without a plan, such as a single call.
    ///
    /// An index entry is used if its file has the length in the entry; other files are folded.
    pub fn of_run(run: &RunReader) -> Result<Self, RecordError> {
        Self::read(run, IndexScrutiny::Length, |_| {})
    }

    /// Like [`Summary::of_run`], but compares every file by its hash.
    pub fn checked(run: &RunReader) -> Result<Self, RecordError> {
        Self::read(run, IndexScrutiny::Digest, |_| {})
    }

    /// Like [`Summary::of_run`], and shows each entry of the index to `observe`, so that a large index is read once.
    pub fn observed(
        run: &RunReader,
        observe: impl FnMut(&IndexEntry),
    ) -> Result<Self, RecordError> {
        Self::read(run, IndexScrutiny::Length, observe)
    }

    /// Like [`Summary::of_run`], for the process that wrote the run: in little memory, and without changing the index.
    pub fn of_written(run: &RunReader) -> Result<Self, RecordError> {
        let mut summary = Self::of_events(run)?;
        let slots = summary.slots();
        let mut shared = SharedResults::default();
        index::each_in_parts(run, IndexScrutiny::Length, NAMES, |file, entry| {
            summary.take(entry, file, &slots, &mut shared);
        })?;
        Ok(summary)
    }

    /// The plan of a run without any results, and everything else that `run.jsonl` tells.
    pub fn planned(run: &RunReader) -> Result<Self, RecordError> {
        Self::of_events(run)
    }

    fn read(
        run: &RunReader,
        scrutiny: IndexScrutiny,
        mut observe: impl FnMut(&IndexEntry),
    ) -> Result<Self, RecordError> {
        let mut summary = Self::of_events(run)?;
        let slots = summary.slots();
        let mut shared = SharedResults::default();
        index::each(run, scrutiny, |file, entry| {
            observe(&entry);
            summary.take(entry, file, &slots, &mut shared);
        })?;
        Ok(summary)
    }

    /// Each case with its trials by each agent, in the order of the plan. A cell without any trials is included,
    /// unless a filter left them out.
    pub fn cells(&self) -> impl Iterator<Item = (&CaseSummary, &AgentTrials)> {
        let is_shown = |trials: &&AgentTrials| {
            !trials.trials.is_empty() || trials.left_out == TrialCounts::default()
        };
        self.cases.iter().flat_map(move |case| {
            let agents = case.agents.iter().filter(is_shown);
            agents.map(move |trials| (case, trials))
        })
    }

    /// Every planned trial, with its case and agent.
    pub fn trials(&self) -> impl Iterator<Item = (&CaseSummary, &AgentTrials, &TrialSummary)> {
        self.cells()
            .flat_map(|(case, agent)| agent.trials.iter().map(move |trial| (case, agent, trial)))
    }

    /// The number of trials per outcome.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for (_, _, trial) in self.trials() {
            counts.add(trial.outcome());
        }
        counts
    }

    /// The number of trials that did not pass per culprit; the flag is `true` for errored trials.
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

    /// The number of failed or errored trials without a proven cause.
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

    /// Whether a shipped eval is invalid, which fails a run whatever its results.
    pub fn has_invalid_evals(&self) -> bool {
        let mut evals = self.plan.not_run.iter();
        evals.any(|eval| eval.outcome == NotRunOutcome::Invalid)
    }

    /// Notes the result of a trial that just ended.
    pub fn note(&mut self, case: &str, agent: &str, repeat: u32, result: TrialResult) {
        let cell = self.cases.iter_mut().find(|known| known.case.id == case);
        let cell = cell.and_then(|case| case.agents.iter_mut().find(|cell| cell.agent == agent));
        let mut trials = cell.into_iter().flat_map(|cell| &mut cell.trials);
        if let Some(trial) = trials.find(|trial| trial.repeat == repeat) {
            trial.result = Some(result);
        }
    }
}

/// The indexes of the case and the agent, by their names.
type Slots = HashMap<(String, String), (usize, usize)>;

impl Summary {
    /// Reads the run's own events.
    fn of_events(run: &RunReader) -> Result<Self, RecordError> {
        let mut planned = None;
        let mut servers: Vec<ServerSeen> = Vec::new();
        let mut steps: Vec<StepEnded> = Vec::new();
        let mut ended: Option<RunEnded> = None;
        let mut changed_trials = BTreeSet::new();
        let (mut last, mut unknown_events) = (0, 0);
        for event in run.events()? {
            let Event { at, event, .. } = event?;
            last = last.max(at);
            match event {
                EventKind::RunPlanned(plan) => planned = Some(*plan),
                EventKind::ServerSeen(seen) => {
                    servers.retain(|before| before.server != seen.server);
                    servers.push(seen);
                }
                EventKind::StepEnded(step) => {
                    steps.retain(|before| (before.phase, &before.id) != (step.phase, &step.id));
                    steps.push(step);
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
        let (cases, plan) = unrolled(plan, &run.started().started);
        Ok(Self {
            started: run.started().clone(),
            plan,
            cases,
            servers,
            steps,
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

    /// Adds an attempt at a trial, with its number.
    fn take(
        &mut self,
        entry: IndexEntry,
        read: &TrialFile,
        slots: &Slots,
        shared: &mut SharedResults,
    ) {
        let IndexEntry { file, attempt, .. } = entry;
        self.add_totals(&attempt);
        if attempt.contradicts_itself() && self.plan.kind != RunKind::Imported {
            self.changed_trials.insert(read.stem.clone());
        }
        // A record that was truncated before it named its trial.
        let Some(started) = attempt.trial.clone() else {
            return;
        };
        let agent = self.agent_of(started.agent.clone());
        let result = shared.result((&file, read.attempt), (&started, &agent), &attempt);
        let slot = slots.get(&(started.case, agent)).and_then(|(case, agent)| {
            let trials = &mut self.cases[*case].agents[*agent].trials;
            let index = trials.binary_search_by_key(&started.repeat, |trial| trial.repeat);
            trials.get_mut(index.ok()?)
        });
        match slot {
            Some(trial) => trial.take(started.attempt, result),
            None => self.unplanned += 1,
        }
    }

    /// Adds what an attempt used and what was found in it.
    fn add_totals(&mut self, attempt: &Attempt) {
        self.duration = self.duration.max(attempt.last_at());
        self.unknown_events += attempt.unknown_events;
        self.agent.add(&attempt.agent);
        self.judge.add(&attempt.judge);
        for (server, transport) in &attempt.transports {
            if self.transports.get(server) != Some(transport) {
                self.transports.insert(server.clone(), *transport);
            }
        }
        for (server, kinds) in &attempt.findings {
            let all = self.findings.entry(server.clone()).or_default();
            for (kind, found) in kinds {
                all.entry(*kind).or_default().add(found.clone());
            }
        }
    }

    /// The agent of a trial: the one that its record names, or the only one of the plan.
    fn agent_of(&self, named: Option<String>) -> String {
        match (named, self.plan.agents.as_slice()) {
            (Some(agent), _) => agent,
            (None, [only]) => only.name.clone(),
            (None, _) => String::new(),
        }
    }
}

/// The cases of a plan without any results, and the rest of the plan.
fn unrolled(plan: RunPlanned, started: &str) -> (Vec<CaseSummary>, PlanSummary) {
    let agents = plan.agents;
    let known = &plan.asked.known_failures;
    let known_failure = |case: &PlannedCase, agent: &PlannedAgent| {
        let is_meant = |known: &&PlannedKnownFailure| {
            known.is_about(&case.name, &case.id)
                && known.is_of(&agent.name)
                && !known.is_expired(started)
        };
        let found = known.iter().find(is_meant);
        found.map(|known| known.reason.clone())
    };
    let shard = plan.asked.shard.as_deref().and_then(Shard::of_plan);
    // The trials of other shards are left out, and have no verdict here.
    let own = |case: &PlannedCase, agent: &PlannedAgent| {
        let (id, agent) = (case.id.clone(), agent.name.clone());
        (1..=case.runs)
            .filter(move |repeat| shard.is_none_or(|shard| shard.holds(&id, &agent, *repeat)))
    };
    let cases = plan
        .cases
        .into_iter()
        .map(|case| CaseSummary {
            agents: agents
                .iter()
                .map(|agent| AgentTrials {
                    agent: agent.name.clone(),
                    // Exactly as many as there are: those of a large run are most of its memory.
                    trials: own(&case, agent)
                        .map(TrialSummary::not_run)
                        .collect::<Box<[_]>>()
                        .into_vec(),
                    left_out: TrialCounts {
                        open: own(&case, agent).fold(case.runs, |left, _| left - 1),
                        ..TrialCounts::default()
                    },
                    known_failure: known_failure(&case, agent),
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
        gates: plan.asked.gates,
        known_failures: plan.asked.known_failures,
        stop_when_decided: plan.asked.stop_when_decided,
        profile: plan.asked.profile,
        shard: plan.asked.shard,
        config: plan.config.map(|config| *config),
        warnings: plan.warnings,
        kind: plan.kind,
        not_run: plan.not_run,
    };
    (cases, plan)
}
