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
use super::options::{CheckOptions, RunOptions, RunSource, ShardOption};
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
    let is_own = |spec: &TrialSpec| {
        let (case, agent) = (&suite.cases[spec.case], &suite.agents[spec.agent]);
        shard.holds(&case.id.0, &agent.name, spec.repeat)
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
    let (Some(folder), Some(shard)) = (&options.folder, planned.asked.shard.as_deref()) else {
        return Ok(None);
    };
    if RunReader::open(folder).is_err() || record::is_unused(folder)? {
        return Ok(None);
    }
    let run = RunReader::open(folder)?;
    let then = plan_of(folder)?;
    let shown = folder.display();
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
    Ok(Some(folder.clone()))
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
