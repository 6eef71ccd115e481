//! Several suites in one command: one budget, one record for each suite, one exit code.
//!
//! Main types: [`PreparedSuites`], [`SuitesInProgress`] and [`SuitesResult`]. Suites run one after another,
//! so that tasks without `parallel: true` never run at the same time. Each record is complete by itself: it can
//! be resumed, compared and verified alone.

mod result;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use proctor_core::estimate::Estimate;
use proctor_record::record::RecordError;
use proctor_record::redact::Redactor;
use proctor_wire::worker;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

pub use self::result::{SuitesResult, worst};
use self::result::{base_p, regressions};
use super::ending::{RunResult, SummedRun};
use super::error::EngineError;
use super::host::Host;
use super::labels::TrialLabels;
use super::options::CheckOptions;
use super::prepare::{LoadedSuite, PreparedRun, load_run, plan_loaded};
use super::running::{RunCompletion, RunInProgress};
use super::{Engine, estimate, folder, gates, runs};
use crate::progress::Progress;
use crate::runner::RunnerResult;

/// Suites that are ready to start.
pub struct PreparedSuites {
    ready: Vec<PreparedRun>,
    skipped: Vec<SkippedSuite>,
    estimate: Estimate,
}

/// A suite without a selected case, while other suites have some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedSuite {
    pub name: String,
    pub file: PathBuf,
    /// Why none of its cases runs.
    pub reason: String,
}

/// The plan of one suite, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuitePlan {
    pub name: String,
    /// The path of the eval file.
    pub file: String,
    pub cases: usize,
    pub trials: usize,
    pub agents: Vec<String>,
}

/// Prepares suites: loads all of them before anything starts, then plans each.
pub(super) async fn prepare(
    engine: &Engine,
    options: &[CheckOptions],
    host: &dyn Host,
) -> Result<PreparedSuites, Vec<EngineError>> {
    let mut loaded: Vec<(CheckOptions, LoadedSuite)> = Vec::new();
    let mut errors = Vec::new();
    for options in options {
        match load_with_base(engine, options, host).await {
            Ok(pair) => loaded.push(pair),
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let (mut ready, mut skipped) = (Vec::new(), Vec::new());
    let mut unselected = Vec::new();
    for (options, suite) in loaded {
        let (name, file) = (suite.suite.name.clone(), suite.suite.path.clone());
        match plan_loaded(engine, &options, suite, host).await {
            Ok(prepared) => ready.push(prepared),
            // A selection is about all suites, but a suite without any case is a mistake in the suite.
            Err(error @ (EngineError::NothingSelected { .. } | EngineError::NothingToRerun(_)))
                if is_selective(&options) =>
            {
                skipped.push(SkippedSuite {
                    name,
                    file,
                    reason: error.to_string(),
                });
                unselected.push(error);
            }
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() && ready.is_empty() {
        errors = unselected;
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    share_budget(&mut ready);
    name_folders(&mut ready);
    let most = options
        .first()
        .and_then(|options| options.run.max_estimate_usd);
    let estimate = estimate_all(&ready, most).map_err(|error| vec![error])?;
    Ok(PreparedSuites {
        ready,
        skipped,
        estimate,
    })
}

/// The estimate for all suites together. The limit is about all of them.
fn estimate_all(ready: &[PreparedRun], most: Option<f64>) -> Result<Estimate, EngineError> {
    let mut all = Estimate::default();
    for run in ready {
        if let Some(one) = estimate::of_run(run) {
            all.add(&one);
        }
    }
    estimate::refuse(Some(&all), most)?;
    Ok(all)
}

/// Whether the options select cases, so that a suite may have none.
fn is_selective(options: &CheckOptions) -> bool {
    let selects = options.plan.as_ref().is_some_and(|plan| {
        let selection = &plan.selection;
        selection.name.is_some() || selection.ids.is_some() || !selection.labels.is_empty()
    });
    selects || options.run.rerun.is_set()
}

/// Loads a suite. The base of `--no-regression` is a folder with a run of each suite.
async fn load_with_base(
    engine: &Engine,
    options: &CheckOptions,
    host: &dyn Host,
) -> Result<(CheckOptions, LoadedSuite), EngineError> {
    let mut options = options.clone();
    let bases = options.run.gates.no_regression.take();
    let mut loaded = load_run(engine, &options, host).await?;
    if let Some(bases) = bases {
        let base = gates::base_of_suite(&bases, &loaded.suite.name)?;
        options.run.gates.no_regression = Some(base);
        loaded.set_gates(&options.run.gates)?;
    }
    Ok((options, loaded))
}

/// Lets all suites spend from the first one's budget.
fn share_budget(ready: &mut [PreparedRun]) {
    if let Some((first, others)) = ready.split_first_mut() {
        for other in others {
            other.context.meter = Arc::clone(&first.context.meter);
        }
    }
}

/// Gives each suite its own folder in the folder that the user named.
fn name_folders(ready: &mut [PreparedRun]) {
    let mut taken = BTreeSet::new();
    for run in ready {
        let Some(folder) = &run.options.folder else {
            continue;
        };
        let word = runs::word(&run.context.redactor.text(&run.context.suite.name));
        let numbered = (2_u32..).map(|number| format!("{word}-{number}"));
        let mut names = std::iter::once(word.clone()).chain(numbered);
        let name = names.find(|name| taken.insert(name.clone()));
        run.options.folder = Some(folder.join(name.unwrap_or(word)));
    }
}

impl PreparedSuites {
    /// The plan of each suite, in order.
    pub fn plans(&self) -> Vec<SuitePlan> {
        let plan = |run: &PreparedRun| {
            let suite = &run.context.suite;
            let shown = |text: &str| run.context.redactor.text(text).into_owned();
            SuitePlan {
                name: shown(&suite.name),
                file: shown(&suite.path.display().to_string()),
                cases: run.planned.cases.len(),
                trials: run.trials.len(),
                agents: suite.agents.iter().map(|a| shown(&a.name)).collect(),
            }
        };
        self.ready.iter().map(plan).collect()
    }

    /// What all suites together will cost.
    pub fn estimate(&self) -> &Estimate {
        &self.estimate
    }

    pub fn skipped(&self) -> &[SkippedSuite] {
        &self.skipped
    }
}

/// Suites with open folders.
pub struct SuitesInProgress {
    waiting: Vec<RunInProgress>,
    skipped: Vec<SkippedSuite>,
    done: Vec<SuiteEnd>,
    stop: Option<SuitesStop>,
}

/// A suite that has run.
enum SuiteEnd {
    Ended(Result<Box<RunResult>, RecordError>),
    /// Its answer depends on the suites that run after it.
    Summed(Box<SummedRun>),
}

/// Why the suites that are left don't start.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SuitesStop {
    Interrupted,
    /// The budget is spent, or a trial failed with `--fail-fast`.
    Reason(String),
}

/// Opens a folder for each suite. If one can't be opened, the others get an end, and none runs.
pub(super) fn open(
    engine: &Engine,
    prepared: PreparedSuites,
) -> Result<SuitesInProgress, EngineError> {
    let PreparedSuites { ready, skipped, .. } = prepared;
    let mut waiting: Vec<RunInProgress> = Vec::new();
    let mut first = 0;
    for prepared in ready {
        match folder::open(engine, prepared) {
            Ok(mut run) => {
                run.first = first;
                first += run.trials();
                waiting.push(run);
            }
            Err(error) => {
                for run in waiting {
                    // The caller gets the first error.
                    let _ = run.end(RunCompletion::NotStarted(error.to_string()));
                }
                return Err(error);
            }
        }
    }
    Ok(SuitesInProgress {
        waiting,
        skipped,
        done: Vec::new(),
        stop: None,
    })
}

impl SuitesInProgress {
    /// A display name for each trial of all suites, redacted.
    pub fn labels(&self) -> TrialLabels {
        let mut all = TrialLabels::default();
        for run in &self.waiting {
            all.add_suite(&run.name(), run.labels());
        }
        all
    }

    /// The redactors of all suites.
    pub fn redactors(&self) -> Vec<Redactor> {
        let redactors = self.waiting.iter().map(|run| run.redactor().clone());
        redactors.collect()
    }

    /// Runs the suites one after another. Each message of `interrupts` is a request to stop all of them.
    pub async fn carry_out(
        &mut self,
        progress: UnboundedSender<Progress>,
        detailed: bool,
        interrupts: &mut UnboundedReceiver<()>,
        host: &dyn Host,
    ) {
        for mut run in std::mem::take(&mut self.waiting) {
            if self.stop.is_none() {
                self.stop = interrupted(interrupts).or_else(|| spent(&run));
            }
            let completion = match &self.stop {
                Some(SuitesStop::Interrupted) => RunCompletion::Interrupted,
                Some(SuitesStop::Reason(reason)) => RunCompletion::Finished(RunnerResult {
                    stopped: Some(reason.clone()),
                    ..RunnerResult::default()
                }),
                None => {
                    run.restart_clock();
                    run.carry_out(progress.clone(), detailed, interrupts, host)
                        .await
                }
            };
            self.stop = self.stop.take().or_else(|| SuitesStop::of(&completion));
            self.done.push(worker::blocking(|| end(run, completion)));
        }
    }

    /// Sums the suites up, and writes the ends that are left.
    pub fn end(self) -> SuitesResult {
        let over = regressions(&self.done);
        let close = |(index, done): (usize, SuiteEnd)| match done {
            SuiteEnd::Ended(result) => result.map(|result| *result),
            SuiteEnd::Summed(summed) => {
                let corrected = over
                    .as_ref()
                    .filter(|over| !over.regressed.contains(&index));
                Ok(summed.close(corrected.map(|over| over.suites)))
            }
        };
        let done = self.done.into_iter().enumerate();
        SuitesResult {
            suites: done.map(close).collect(),
            skipped: self.skipped,
        }
    }
}

/// Sums a run up. Its end is written now, unless its answer depends on other suites.
fn end(run: RunInProgress, completion: RunCompletion) -> SuiteEnd {
    match run.sum(completion) {
        Ok(summed) if base_p(&summed.summary).is_some() => SuiteEnd::Summed(Box::new(summed)),
        Ok(summed) => SuiteEnd::Ended(Ok(Box::new(summed.close(None)))),
        Err(error) => SuiteEnd::Ended(Err(error)),
    }
}

impl SuitesStop {
    fn of(completion: &RunCompletion) -> Option<Self> {
        match completion {
            RunCompletion::Interrupted => Some(Self::Interrupted),
            RunCompletion::Finished(finished) if finished.interrupted => Some(Self::Interrupted),
            RunCompletion::Finished(finished) => finished.stopped.clone().map(Self::Reason),
            // Other suites may have other servers and another disk.
            RunCompletion::NotStarted(_)
            | RunCompletion::Invalid(_)
            | RunCompletion::ContractBroken(_)
            | RunCompletion::Broken(_) => None,
        }
    }
}

/// Whether the user interrupted the suites while none ran.
fn interrupted(interrupts: &mut UnboundedReceiver<()>) -> Option<SuitesStop> {
    let heard = interrupts.try_recv();
    heard.is_ok().then_some(SuitesStop::Interrupted)
}

/// Whether the suites before have spent the budget.
fn spent(run: &RunInProgress) -> Option<SuitesStop> {
    let spent = run.context.as_ref()?.meter.check().err()?;
    Some(SuitesStop::Reason(spent.to_string()))
}
