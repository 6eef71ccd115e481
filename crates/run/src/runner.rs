//! Runs trials: one loop that owns the waiting, running and finished trials.
//!
//! Its main function is [`run`]. It starts trials, collects their results, and handles requests to
//! stop; all decisions are made here.

mod trials;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use proctor_contain::process::ProcessEnds;
use proctor_core::suite::{Limits, Suite};
use proctor_record::event::{Outcome, TrialEnded, TrialStarted};
use proctor_record::record::{RecordError, TrialStarter, trial_name, trial_stem};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::context::RunContext;
use crate::decider::Decider;
use crate::progress::{Progress, TrialProgress};
use crate::stop::RunStop;
use crate::trial::Trial;
use crate::trial_folder::FolderPool;
use proctor_models::RetryWait;
use proctor_wire::recorder::Recorder;
use proctor_wire::worker;

pub use self::trials::{TrialList, TrialOutcomes, TrialStems};

/// A trial of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialSpec {
    /// The index of the case in the suite.
    pub case: usize,
    /// The index of the agent in the suite.
    pub agent: usize,
    /// The number of the trial among those of this case and agent, from one.
    pub repeat: u32,
    /// The number of the attempt, from one.
    pub attempt: u32,
    pub limits: Limits,
    /// Whether it may run in parallel with other trials.
    pub parallel: bool,
    /// Whether its failure is known, so that it does not end a run with `--fail-fast`.
    pub known_failure: bool,
}

impl TrialSpec {
    /// A name that is unique in the run and equal for all attempts.
    pub fn name(&self, suite: &Suite) -> String {
        let (case, agent) = (&suite.cases[self.case], &suite.agents[self.agent]);
        trial_name(&case.id.0, &agent.name, self.repeat)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parallelism {
    /// Trials with `parallel: true` run this many at once, after all others have run one by one.
    Willing(usize),
    /// All trials run this many at once.
    Any(usize),
}

/// Options for running trials.
#[derive(Debug, Clone, Copy)]
pub struct RunnerOptions {
    pub width: Parallelism,
    /// Whether the first trial that fails or times out ends the run.
    pub fail_fast: bool,
    /// Whether to report events inside trials, not only their ends.
    pub detailed: bool,
    /// Whether trials that can't change the answer of the gate are not started.
    pub stop_when_decided: bool,
    /// The number that the first trial has in progress events: other suites may run before it.
    pub first: usize,
}

/// The result of a run, in addition to its record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunnerResult {
    /// Why some trials did not run.
    pub stopped: Option<String>,
    /// Whether the user interrupted the run.
    pub interrupted: bool,
    /// The outcome of each trial that ended, by its position in the list.
    pub ended: Vec<Option<Outcome>>,
}

/// Why a run could not continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("a trial panicked, which is a bug in Proctor: {0}")]
    Bug(String),
}

/// Runs trials to their ends. Each message of `interrupts` is a request to stop: the first stops
/// the run in order, the second at once.
pub async fn run(
    context: Arc<RunContext>,
    records: TrialStarter,
    started: Instant,
    trials: Arc<TrialList>,
    options: RunnerOptions,
    progress: mpsc::UnboundedSender<Progress>,
    mut interrupts: mpsc::UnboundedReceiver<()>,
) -> Result<RunnerResult, RunError> {
    let decider = options
        .stop_when_decided
        .then(|| worker::blocking(|| Decider::open(records.folder())))
        .transpose()?;
    let mut waiting = batches(&trials, options.width);
    if decider.is_some() {
        in_rounds(&mut waiting, &trials);
    }
    let finished = RunnerResult {
        ended: vec![None; trials.len()],
        ..RunnerResult::default()
    };
    let mut runner = Runner {
        context,
        records,
        started,
        trials,
        waiting,
        decider,
        running: JoinSet::new(),
        folders: Arc::default(),
        stop: watch::Sender::new(RunStop::Go),
        progress,
        detailed: options.detailed,
        first: options.first,
        finished,
        error: None,
    };
    let mut hears = true;
    loop {
        runner.start();
        if runner.running.is_empty() {
            break;
        }
        tokio::select! {
            Some(done) = runner.running.join_next() => runner.done(done, options.fail_fast),
            interrupt = interrupts.recv(), if hears => match interrupt {
                Some(()) => runner.interrupt(),
                None => hears = false,
            },
        }
    }
    match runner.error {
        Some(error) => Err(error),
        None => Ok(runner.finished),
    }
}

/// Trials that run at the same time, at most `width` of them.
#[derive(Debug, PartialEq)]
struct TrialBatch {
    width: usize,
    trials: VecDeque<u32>,
}

/// Splits trials into batches. Each batch ends before the next one starts.
fn batches(trials: &TrialList, width: Parallelism) -> VecDeque<TrialBatch> {
    let all = || (0_u32..).zip(trials.iter());
    let batch = |width: usize, trials: VecDeque<u32>| TrialBatch {
        width: width.max(1),
        trials,
    };
    let batches = match width {
        Parallelism::Any(width) => vec![batch(width, all().map(|(at, _)| at).collect())],
        Parallelism::Willing(1) => vec![batch(1, all().map(|(at, _)| at).collect())],
        Parallelism::Willing(width) => {
            let those = |parallel: bool| all().filter(move |(_, t)| t.parallel == parallel);
            vec![
                batch(1, those(false).map(|(at, _)| at).collect()),
                batch(width, those(true).map(|(at, _)| at).collect()),
            ]
        }
    };
    batches
        .into_iter()
        .filter(|b| !b.trials.is_empty())
        .collect()
}

/// Orders the trials of each batch by rounds: the first trial of every case comes before the second of any.
fn in_rounds(batches: &mut VecDeque<TrialBatch>, trials: &TrialList) {
    for batch in batches {
        let waiting = batch.trials.make_contiguous();
        waiting.sort_by_cached_key(|at| trials.get(*at as usize).map(|spec| spec.repeat));
    }
}

/// A trial by its number and the stem of its files, its start, and how it ended.
type TrialTaskResult = (usize, String, Instant, Result<TrialEnded, RecordError>);

struct Runner {
    context: Arc<RunContext>,
    records: TrialStarter,
    started: Instant,
    trials: Arc<TrialList>,
    waiting: VecDeque<TrialBatch>,
    decider: Option<Decider>,
    running: JoinSet<TrialTaskResult>,
    folders: Arc<FolderPool>,
    stop: watch::Sender<RunStop>,
    progress: mpsc::UnboundedSender<Progress>,
    detailed: bool,
    first: usize,
    finished: RunnerResult,
    error: Option<RunError>,
}

impl Runner {
    /// Starts as many trials as may run now.
    fn start(&mut self) {
        while *self.stop.borrow() == RunStop::Go {
            let Some(batch) = self.waiting.front_mut() else {
                return;
            };
            if self.running.len() >= batch.width {
                return;
            }
            match batch.trials.pop_front().map(|trial| trial as usize) {
                Some(trial) if !self.is_needed(trial) => {
                    let trial = self.first + trial;
                    let _ = self.progress.send(Progress::NotNeeded { trial });
                }
                Some(trial) => {
                    if let Err(error) = self.start_one(trial) {
                        self.give_up(RunError::Record(error));
                    }
                }
                None if self.running.is_empty() => drop(self.waiting.pop_front()),
                None => return,
            }
        }
    }

    /// Whether a trial can change the answer of the gate.
    fn is_needed(&self, at: usize) -> bool {
        let (Some(decider), Some(spec)) = (&self.decider, self.trials.get(at)) else {
            return true;
        };
        let suite = &self.context.suite;
        let (case, agent) = (&suite.cases[spec.case], &suite.agents[spec.agent]);
        decider.is_needed(&case.id.0, &agent.name)
    }

    fn start_one(&mut self, at: usize) -> Result<(), RecordError> {
        let Some(spec) = self.trials.get(at) else {
            return Ok(());
        };
        let suite = &self.context.suite;
        let (case, agent) = (&suite.cases[spec.case], &suite.agents[spec.agent]);
        let name = spec.name(suite);
        let micros = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let trial_started = TrialStarted {
            case: case.id.0.clone(),
            agent: Some(agent.name.clone()),
            repeat: spec.repeat,
            attempt: spec.attempt,
        };
        let start = || self.records.start(micros, &name, trial_started);
        let writer = if self.records.has_room() {
            start()?
        } else {
            worker::blocking(start)?
        };
        let watch = TrialProgress {
            trial: self.first + at,
            to: self.detailed.then(|| self.progress.clone()),
        };
        watch.started();
        let stem = trial_stem(&self.context.redactor.text(&name));
        let folder = self.folders.open(&stem);
        let trial = Trial {
            context: self.context.clone(),
            case: spec.case,
            agent: spec.agent,
            limits: spec.limits,
            recorder: Recorder::new(writer, self.started).in_folder(&folder.values().dir),
            folder,
            watch,
            waiting: RetryWait::default(),
            replay: self.context.replay(&case.id.0, &agent.name, spec.repeat)?,
            listed: OnceLock::new(),
            live: Mutex::default(),
            ends: ProcessEnds::default(),
        };
        let stop = self.stop.subscribe();
        let began = Instant::now();
        self.running
            .spawn(async move { (at, stem, began, Box::pin(trial.run(stop)).await) });
        Ok(())
    }

    fn done(&mut self, done: Result<TrialTaskResult, tokio::task::JoinError>, fail_fast: bool) {
        let (trial, stem, began, ended) = match done {
            Ok(done) => done,
            Err(panic) => return self.give_up(RunError::Bug(panic.to_string())),
        };
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return self.give_up(RunError::Record(error)),
        };
        let Some(spec) = self.trials.get(trial) else {
            return;
        };
        let known_failure = spec.known_failure;
        if let Some(files) = &self.context.ended_files {
            // Whoever receives them may have stopped.
            let _ = files.send(format!("{stem}.{}.jsonl", spec.attempt));
        }
        let outcome = ended.outcome;
        self.finished.ended[trial] = Some(outcome);
        if let Some(decider) = &mut self.decider {
            let suite = &self.context.suite;
            let (case, agent) = (&suite.cases[spec.case], &suite.agents[spec.agent]);
            decider.take(&case.id.0, &agent.name, spec.repeat, outcome);
        }
        let _ = self.progress.send(Progress::Ended {
            trial: self.first + trial,
            ended,
            duration: began.elapsed(),
        });
        let is_left = !self.running.is_empty() || self.waiting.iter().any(|b| !b.trials.is_empty());
        if is_left && let Err(spent) = self.context.meter.check() {
            self.stop_soon(spent.to_string());
        }
        let is_bad = matches!(outcome, Outcome::Failed | Outcome::TimedOut);
        if is_left && fail_fast && is_bad && !known_failure {
            self.stop_soon("stopped after the first failure (`--fail-fast`)".to_owned());
        }
    }

    fn interrupt(&mut self) {
        if self.finished.interrupted {
            self.stop.send_replace(RunStop::Now);
            return;
        }
        self.finished.interrupted = true;
        self.stop_soon("interrupted".to_owned());
    }

    /// Starts no more trials, and stops running ones in order. The first reason stays.
    fn stop_soon(&mut self, reason: String) {
        if *self.stop.borrow() != RunStop::Go {
            return;
        }
        self.finished.stopped = Some(reason.clone());
        let stopping = Progress::Stopping {
            reason: reason.clone(),
        };
        let _ = self.progress.send(stopping);
        self.stop.send_replace(RunStop::Soon { reason });
    }

    /// Ends the run because its trials can't be tracked any more.
    fn give_up(&mut self, error: RunError) {
        self.stop_soon(error.to_string());
        self.error.get_or_insert(error);
    }
}

#[cfg(test)]
mod tests;
