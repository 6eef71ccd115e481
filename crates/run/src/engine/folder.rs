//! The folder of a run: a new one, or that of a resumed run.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proctor_core::summary::Summary;
use proctor_models::SpendingTotal;
use proctor_record::event::{
    EventKind, Outcome, Purpose, RECORD_VERSION, RunPlanned, RunStarted, ServerSeen,
};
use proctor_record::record::{self, RecordOptions, RunReader, RunWriter};

use super::changed;
use super::error::EngineError;
use super::options::RunOptions;
use super::runs::{self, RUNS};
use super::{Engine, PreparedRun, RunInProgress};
use super::{sharding, source_context};
use crate::context::RunContext;
use crate::runner::{TrialList, TrialOutcomes, TrialSpec, TrialStems};

/// The open record of a run, and the trials that are left.
pub(super) struct OpenRun {
    pub(super) writer: RunWriter,
    /// The start of the run; for a resumed run, shifted by the time of the interruption.
    pub(super) started: Instant,
    pub(super) trials: Arc<TrialList>,
    pub(super) stems: TrialStems,
    /// The server information from before the interruption.
    pub(super) seen: Vec<ServerSeen>,
    /// The outcomes of trials from before the interruption.
    pub(super) ended: TrialOutcomes,
}

impl OpenRun {
    /// Microseconds since the run started.
    pub(super) fn at(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// The plan of a run to resume.
pub(super) fn plan_of(folder: &Path) -> Result<RunPlanned, EngineError> {
    if record::is_unused(folder)? {
        return Err(EngineError::usage(format!(
            "the run in `{0}` stopped before it wrote its plan, so there is nothing to \
             resume; start it again with `proctor check FILE --record {0}`",
            folder.display()
        )));
    }
    let run = RunReader::open(folder)?;
    for event in run.events()? {
        if let EventKind::RunPlanned(planned) = event?.event {
            return Ok(*planned);
        }
    }
    Err(EngineError::usage(format!(
        "`{}` is not the record of a suite: it has no plan",
        folder.display()
    )))
}

/// Opens the run's folder: a new one, or that of the resumed run.
pub(super) fn open(engine: &Engine, prepared: PreparedRun) -> Result<RunInProgress, EngineError> {
    let PreparedRun {
        context,
        planned,
        trials,
        options,
        resumed,
        estimate: _,
    } = prepared;
    let is_resumed = resumed.is_some();
    let stop_when_decided = planned.asked.stop_when_decided;
    let planned = sharding::with_hash(planned, &context.redactor);
    let resumed = match resumed {
        Some(resumed) => Some(resumed),
        None => sharding::earlier_execution(&options, &planned)?.map(|folder| (folder, true)),
    };
    let is_resumed = is_resumed || resumed.is_some();
    let written = match resumed {
        Some((folder, retry_errors)) => resume(&folder, &context, &trials, retry_errors)?,
        None => create(engine, &options, &context, planned, trials)?,
    };
    Ok(RunInProgress {
        redactor: context.redactor.clone(),
        context: Some(context),
        written,
        options,
        is_resumed,
        stop_when_decided,
        first: 0,
        cleanup: None,
    })
}

fn create(
    engine: &Engine,
    options: &RunOptions,
    context: &RunContext,
    planned: RunPlanned,
    trials: TrialList,
) -> Result<OpenRun, EngineError> {
    let source = (!options.no_context)
        .then(|| source_context::read(Path::new("."), &engine.environment))
        .flatten();
    let run_started = RunStarted {
        record: RECORD_VERSION,
        proctor: env!("CARGO_PKG_VERSION").to_owned(),
        started: jiff::Timestamp::now().to_string(),
        name: context.suite.name.clone(),
        command: engine.command.clone(),
        context: source,
    };
    let redactor = &context.redactor;
    let started = Instant::now();
    let mut writer = if let Some(folder) = &options.folder {
        RunWriter::create(folder, redactor.clone(), run_started)?
    } else {
        runs::ignore();
        runs::create(Path::new(RUNS), redactor, &run_started)?
    };
    writer.append(0, EventKind::RunPlanned(planned.into()))?;
    writer.sync()?;
    Ok(OpenRun {
        writer,
        started,
        trials: Arc::new(trials),
        stems: TrialStems::new(&context.suite, redactor),
        seen: Vec::new(),
        ended: TrialOutcomes::default(),
    })
}

fn resume(
    folder: &Path,
    context: &RunContext,
    trials: &TrialList,
    retry_errors: bool,
) -> Result<OpenRun, EngineError> {
    let redactor = &context.redactor;
    let reader = RunReader::open(folder)?;
    if reader.is_newer() {
        // An older version would lose what it does not know of the run.
        return Err(EngineError::usage(format!(
            "the run in `{}` needs Proctor {} or later to resume, and this is Proctor {}",
            folder.display(),
            reader.started().proctor,
            env!("CARGO_PKG_VERSION")
        )));
    }
    let (mut last, mut seen) = (0, Vec::new());
    for event in reader.events()? {
        let event = event?;
        last = last.max(event.at);
        if let EventKind::ServerSeen(server) = event.event {
            seen.push(server);
        }
    }
    // Before the folder is locked, so that an incomplete index is rebuilt.
    let (ended, last_at) = count_earlier(&reader, context)?;
    last = last.max(last_at);
    let writer = RunWriter::resume(folder, redactor.clone(), RecordOptions::default())?;
    // By file name, which suffices even if the file's content is torn.
    let mut attempts: HashMap<String, u32> = HashMap::new();
    for trial in reader.trials()? {
        let known = attempts.entry(trial.stem).or_default();
        *known = trial.attempt.max(*known);
    }
    let stems = TrialStems::new(&context.suite, redactor);
    let left = trials.iter().filter_map(|spec| {
        let stem = stems.stem(&spec);
        let attempt = attempts.get(&stem).copied().unwrap_or(0) + 1;
        let is_left = match ended.outcome(&stem) {
            None | Some(Outcome::Cancelled) => true,
            Some(Outcome::Errored) => retry_errors,
            Some(Outcome::Passed | Outcome::Failed | Outcome::TimedOut) => false,
        };
        is_left.then_some(TrialSpec { attempt, ..spec })
    });
    let trials = Arc::new(left.collect());
    let started = Instant::now()
        .checked_sub(Duration::from_micros(last))
        .ok_or_else(|| EngineError::usage("the run has invalid timestamps"))?;
    Ok(OpenRun {
        writer,
        started,
        trials,
        stems,
        seen,
        ended,
    })
}

/// Counts the spending before the interruption, since the budget is for the whole run. Returns how
/// trials ended, from files that match the index, and the time of the last event.
fn count_earlier(
    reader: &RunReader,
    context: &RunContext,
) -> Result<(TrialOutcomes, u64), EngineError> {
    let summary = Summary::checked(reader)?;
    for (purpose, asked) in [
        (Purpose::Agent, &summary.agent),
        (Purpose::Judge, &summary.judge),
    ] {
        let account = SpendingTotal {
            replies: u64::from(asked.turns),
            usage: asked.usage,
            cost_usd: asked.cost_usd.unwrap_or(0.0),
            unknown_costs: u64::from(asked.cost_usd.is_none()),
            unknown_usages: u64::from(asked.unmetered),
        };
        context.meter.add(purpose, &account);
    }
    let last_at = u64::try_from(summary.duration.as_micros()).unwrap_or(u64::MAX);
    Ok((changed::outcomes(&summary, reader), last_at))
}
