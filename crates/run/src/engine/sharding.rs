//! Shards of a run: which trials a process executes, what it may spend, and what its exit code means.
//!
//! The exit code of a shard is about its execution, never about the gate, which only a merge can evaluate.

use std::path::{Path, PathBuf};

use proctor_core::merge::{MergeError, MergedRun, ShardSet};
use proctor_core::shard::Shard;
use proctor_core::shard::plan::{differences, plan_hash};
use proctor_core::suite::Suite;
use proctor_core::summary::Summary;
use proctor_record::event::{EventKind, PlannedOptions, PlannedShard, RunPlanned};
use proctor_record::record::{self, RunReader, RunWriter};
use proctor_record::redact::Redactor;

use super::Engine;
use super::error::EngineError;
use super::folder::plan_of;
use super::opening;
use super::options::{CheckOptions, RunOptions, RunSource, ShardOption};
use super::prepare::PreparedRun;
use super::runs::{self, RUNS};
use crate::runner::{TrialList, TrialSpec};

const PROCTOR: &str = env!("CARGO_PKG_VERSION");

/// Merges shards into a run in a new folder.
pub(super) fn merge(
    engine: &Engine,
    folders: &[PathBuf],
    into: Option<&Path>,
) -> Result<MergedRun, MergeError> {
    let shards = ShardSet::read(folders)?;
    let known = engine.redactor(&[]);
    let words = engine.command.iter();
    let command = words.map(|word| known.text(word).into_owned()).collect();
    let started = shards.started(command);
    // Everything in the shards is redacted already.
    let redactor = Redactor::default();
    let writer = if let Some(folder) = into {
        RunWriter::create(folder, redactor, started)?
    } else {
        runs::ignore();
        runs::create(Path::new(RUNS), &redactor, &started)?
    };
    Ok(shards.merge(writer)?)
}

/// The shard of a new run, for its record.
pub(super) fn planned(option: &ShardOption) -> PlannedShard {
    PlannedShard {
        index: Some(option.shard.index()),
        count: option.shard.count(),
        run_id: option.run_id.clone(),
        plan_hash: String::new(),
    }
}

/// Refuses options that depend on results which a shard does not have, or that would give shards different plans.
pub(super) fn refuse_conflicts(options: &CheckOptions) -> Result<(), EngineError> {
    if options.run.shard.is_none() {
        return Ok(());
    }
    let conflicts = [
        (options.run.stop_when_decided, "--stop-when-decided"),
        (options.run.rerun.failed, "--last-failed"),
        (options.run.rerun.errors, "--rerun-errors"),
    ];
    if let Some((_, flag)) = conflicts.iter().find(|(is_set, _)| *is_set) {
        return Err(EngineError::usage(format!(
            "`{flag}` needs the results of the whole run, so it can't be used with `--shard`"
        )));
    }
    match options.source {
        RunSource::Resume { .. } => Err(EngineError::usage(
            "a resumed shard keeps its number; leave out `--shard`",
        )),
        RunSource::File(_) | RunSource::Replay { .. } => Ok(()),
    }
}

/// Refuses to resume a merged run: its trials belong to shards.
pub(super) fn refuse_resume(earlier: &PlannedOptions) -> Result<(), EngineError> {
    match &earlier.shard {
        Some(shard) if shard.index.is_none() => Err(EngineError::usage(
            "a merged run can't be resumed; resume its shards, and merge them again",
        )),
        Some(_) | None => Ok(()),
    }
}

/// Keeps the trials of the shard that a plan names. Returns their share of all trials, and `None` without a shard.
pub(super) fn keep_own(
    engine: &Engine,
    planned: &RunPlanned,
    suite: &Suite,
    trials: &mut TrialList,
) -> Result<Option<f64>, EngineError> {
    let Some(planned) = planned.asked.shard.as_deref() else {
        return Ok(None);
    };
    let invalid = || EngineError::usage("the record names a shard that does not exist");
    let shard = Shard::of_plan(planned).ok_or_else(invalid)?;
    let all = trials.len();
    let redactor = opening::redactor(engine, suite);
    let is_own = |spec: &TrialSpec| {
        let (case, agent) = (&suite.cases[spec.case], &suite.agents[spec.agent]);
        // As the record names them, which is all that a merge knows.
        let (case, agent) = (redactor.text(&case.id.0), redactor.text(&agent.name));
        shard.holds(&case, &agent, spec.repeat)
    };
    *trials = trials.iter().filter(is_own).collect();
    Ok(Some(Shard::share(trials.len(), all)))
}

/// The options of a shard: budgets are those of the whole run, of which it gets its share.
pub(super) fn with_share(options: &RunOptions, share: Option<f64>) -> RunOptions {
    let mut options = options.clone();
    let Some(share) = share else {
        return options;
    };
    options.budget_usd = options.budget_usd.map(|usd| usd * share);
    options.budget_tokens = options.budget_tokens.map(|tokens| scaled(tokens, share));
    options
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share is between zero and one, and rounding a budget down is safe"
)]
fn scaled(tokens: u64, share: f64) -> u64 {
    (tokens as f64 * share) as u64
}

/// Sets the hash of a shard's plan, as its record will hold the plan.
pub(super) fn with_hash(mut planned: RunPlanned, redactor: &Redactor) -> RunPlanned {
    if planned.asked.shard.is_none() {
        return planned;
    }
    let hash = match redactor.what(EventKind::RunPlanned(planned.clone().into())) {
        EventKind::RunPlanned(recorded) => plan_hash(&recorded, PROCTOR),
        _ => return planned,
    };
    if let Some(shard) = &mut planned.asked.shard {
        shard.plan_hash = hash;
    }
    planned
}

/// The folder of an earlier execution of the same shard, which this one continues; `None` if there is none.
///
/// An engine retries a shard with the same command, so a folder with another shard or another plan is an error.
pub(super) fn earlier_execution(
    options: &RunOptions,
    planned: &RunPlanned,
) -> Result<Option<PathBuf>, EngineError> {
    let (Some(folder), Some(_)) = (&options.folder, &planned.asked.shard) else {
        return Ok(None);
    };
    let is_earlier = is_earlier(folder, &folder.display().to_string(), planned)?;
    Ok(is_earlier.then(|| folder.clone()))
}

/// Whether a folder holds an earlier execution of the planned shard. `false` without a run; an error with another one.
/// Messages name the folder as `shown`.
pub(super) fn is_earlier(
    folder: &Path,
    shown: &str,
    planned: &RunPlanned,
) -> Result<bool, EngineError> {
    let Some(shard) = planned.asked.shard.as_deref() else {
        return Ok(false);
    };
    if RunReader::open(folder).is_err() || record::is_unused(folder)? {
        return Ok(false);
    }
    let run = RunReader::open(folder)?;
    let then = plan_of(folder)?;
    let Some(recorded) = then.asked.shard.as_deref() else {
        return Err(EngineError::usage(format!(
            "`{shown}` already holds a run that is not a shard"
        )));
    };
    if recorded.plan_hash != shard.plan_hash {
        let known = (&then, run.started().proctor.as_str());
        let what = differences(known, (planned, PROCTOR)).join("; ");
        return Err(EngineError::usage(format!(
            "`{shown}` holds a shard of another plan ({what}); start a new run"
        )));
    }
    if recorded.index != shard.index || recorded.run_id != shard.run_id {
        let name = |shard: &PlannedShard| {
            let index = shard
                .index
                .map_or("merged".to_owned(), |index| index.to_string());
            let id = shard.run_id.as_deref();
            let of_run = id.map_or(String::new(), |id| format!(" of the run `{id}`"));
            format!("{index}/{}{of_run}", shard.count)
        };
        return Err(EngineError::usage(format!(
            "`{shown}` holds shard {}, not {}",
            name(recorded),
            name(shard)
        )));
    }
    Ok(true)
}

impl PreparedRun {
    /// Refuses a folder that holds anything but an earlier execution of this shard.
    pub fn refuse_other_shard(&self, folder: &Path) -> Result<(), EngineError> {
        let shown = folder.display();
        let is_earlier = is_earlier(folder, &shown.to_string(), &self.hashed_plan())?;
        let mut trials = std::fs::read_dir(folder.join("trials"))
            .into_iter()
            .flatten();
        if !is_earlier && (trials.next().is_some() || !is_free(folder)) {
            return Err(EngineError::usage(format!(
                "`{shown}` holds another run; use another folder"
            )));
        }
        Ok(())
    }

    /// Refuses a shard in a store whose start and plan are not of this shard.
    pub fn refuse_other_plan(&self, begun: &[u8], url: &str) -> Result<(), EngineError> {
        let unusable = |error| EngineError::unusable("can't compare the plan in the store", error);
        let folder = tempfile::tempdir().map_err(unusable)?;
        std::fs::write(folder.path().join("run.jsonl"), begun).map_err(unusable)?;
        if is_earlier(folder.path(), url, &self.hashed_plan())? {
            return Ok(());
        }
        Err(EngineError::usage(format!(
            "the shard in `{url}` has no plan; remove it there"
        )))
    }

    /// The plan as the record will hold it.
    fn hashed_plan(&self) -> RunPlanned {
        with_hash(self.planned.clone(), &self.context.redactor)
    }
}

/// Whether a new run may be written into a folder.
fn is_free(folder: &Path) -> bool {
    !folder.join("run.jsonl").exists() || record::is_unused(folder).unwrap_or(false)
}

/// The trials of a shard that have no verdict, as a reason; `None` if each has one.
pub(super) fn inconclusive(summary: &Summary) -> Option<String> {
    let counts = summary.counts();
    let parts = [
        (counts.errored, "errored"),
        (counts.cancelled, "cancelled"),
        (counts.not_run, "not run"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    (!parts.is_empty()).then(|| format!("trials without a verdict: {}", parts.join(", ")))
}
