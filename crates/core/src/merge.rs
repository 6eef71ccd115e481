//! Merges the shards of a run into one ordinary run.
//!
//! Main types: [`ShardSet`], the shards after they have been compared, and [`MergeReport`]. The merged run holds the
//! trials' files unchanged. Shards are read one after the other, so memory does not grow with their number.
//!
//! A trial counts once. If a shard was executed several times, each trial comes from the first execution (by start
//! time) in which it has a verdict, whatever the verdict; the choice never depends on whether a trial passed.

mod shards;
mod trials;

use proctor_record::event::{EventKind, RunEnded, RunStarted};
use proctor_record::hint::counted;
use proctor_record::index::MergedIndex;
use proctor_record::record::{RecordError, RunReader, RunWriter};

use crate::gate::Gate;
use crate::summary::Summary;

pub use self::shards::{MergeError, ShardSet};
use self::trials::TrialMerger;

/// How many missing shards or doubled trials a report names.
const LISTED: usize = 10;

/// What a merge found besides the results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergeReport {
    /// The number of shards of the run.
    pub shards: u32,
    /// The number of merged trials.
    pub trials: usize,
    /// What the run lacks: shards, ends of shards, trials. Empty if it is complete.
    pub missing: Vec<String>,
    /// The number of trials that were executed more than once. Each counts once.
    pub doubled: usize,
    /// The first of them.
    pub doubled_trials: Vec<String>,
    /// The number of attempts that never ended. They are left out.
    pub unfinished: usize,
}

/// A merged run.
#[derive(Debug)]
pub struct MergedRun {
    pub record: RunReader,
    pub summary: Summary,
    pub gate: Gate,
    /// The exit code, as in the record.
    pub exit: u8,
    pub report: MergeReport,
}

impl ShardSet {
    /// The start of the merged run: that of its first shard, with this command line.
    pub fn started(&self, command: Vec<String>) -> RunStarted {
        RunStarted {
            command,
            ..self.first().clone()
        }
    }

    /// Writes the merged run with a writer that began with [`ShardSet::started`].
    pub fn merge(self, mut writer: RunWriter) -> Result<MergedRun, RecordError> {
        let folder = writer.folder().to_owned();
        for event in self.events() {
            writer.append(0, event)?;
        }
        writer.sync()?;
        let record = RunReader::open(&folder)?;
        let mut index = MergedIndex::create(&record)?;
        let mut merger = TrialMerger::new(&folder)?;
        for copies in self.by_index() {
            merger.add(copies, &mut index)?;
        }
        index.flush()?;
        merger.sync()?;
        let mut summary = Summary::of_run(&record)?;
        let report = self.report(&merger, &summary);
        let ended = RunEnded {
            missing: report.missing.clone(),
            ..self.ended()
        };
        summary.changed_trials.clone_from(&ended.changed_trials);
        summary.ended = Some(ended.clone());
        let gate = Gate::of(&summary);
        let (exit, reason) = Self::exit(&gate, &report, &summary);
        let ended = RunEnded {
            exit,
            reason,
            ..ended
        };
        let at = u64::try_from(summary.duration.as_micros()).unwrap_or(u64::MAX);
        let at = at.max(self.last_at());
        writer.end(at, ended.clone())?;
        summary.ended = Some(ended);
        summary.duration = std::time::Duration::from_micros(at);
        Ok(MergedRun {
            record,
            summary,
            gate,
            exit,
            report,
        })
    }

    fn report(&self, merger: &TrialMerger, summary: &Summary) -> MergeReport {
        let mut missing = self.missing();
        let not_run = summary.counts().not_run as usize;
        if not_run > 0 {
            let total = summary.counts().total();
            missing.push(format!("{} of {total} missing", counted(not_run, "trial")));
        }
        MergeReport {
            shards: self.count(),
            trials: merger.merged,
            missing,
            doubled: merger.doubled,
            doubled_trials: merger.doubled_trials.clone(),
            unfinished: merger.unfinished,
        }
    }

    /// The exit code, and why it differs from the gate's.
    fn exit(gate: &Gate, report: &MergeReport, summary: &Summary) -> (u8, Option<String>) {
        let is_invalid = summary.has_invalid_evals();
        match gate.exit() {
            0 | 3 if is_invalid => (1, Some("some evals are invalid".to_owned())),
            exit => (exit, report.missing.first().cloned()),
        }
    }
}

/// The events of the merged run besides its trials.
impl ShardSet {
    fn events(&self) -> Vec<EventKind> {
        let mut events = vec![EventKind::RunPlanned(self.plan().into())];
        events.extend(self.seen().cloned().map(EventKind::ServerSeen));
        events.extend(self.compared().cloned().map(EventKind::SurfaceCompared));
        events.extend(self.steps().cloned().map(EventKind::StepEnded));
        events
    }
}

/// Numbers as `1, 2, 5 and 3 more`.
fn listed(numbers: &[u32]) -> String {
    let shown: Vec<String> = numbers.iter().take(LISTED).map(u32::to_string).collect();
    match numbers.len().saturating_sub(LISTED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
