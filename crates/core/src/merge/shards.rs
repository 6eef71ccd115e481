//! The shards to merge: read and compared before anything is written.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proctor_record::event::{
    EventKind, PlannedShard, RunEnded, RunPlanned, RunStarted, ServerSeen, StepEnded,
    SurfaceCompared,
};
use proctor_record::hint::counted;
use proctor_record::record::{RecordError, RunReader};
use proctor_record::verdict::Verdict;

use crate::shard::Shard;
use crate::shard::plan::{differences, is_same, plan_hash};

use super::listed;

/// Why runs can't be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("no shards to merge")]
    Empty,
    #[error("`{}` is not a shard: it was made without `--shard`", path.display())]
    NotAShard { path: PathBuf },
    #[error("`{}` is a merged run: name its shards", path.display())]
    Merged { path: PathBuf },
    #[error(
        "`{}` and `{}` are shards of different plans: {}",
        one.display(),
        other.display(),
        differences.join("; ")
    )]
    OtherPlan {
        one: PathBuf,
        other: PathBuf,
        differences: Vec<String>,
    },
    #[error(
        "`{}` is {}, and `{}` {}: merge the shards of one run",
        one.display(),
        of_run(.one_id.as_deref()),
        other.display(),
        of_run(.other_id.as_deref())
    )]
    OtherRun {
        one: PathBuf,
        one_id: Option<String>,
        other: PathBuf,
        other_id: Option<String>,
    },
    #[error(
        "the server `{server}` differs between `{}` and `{}`: {}",
        one.display(),
        other.display(),
        changes.join(", ")
    )]
    OtherServer {
        server: String,
        one: PathBuf,
        other: PathBuf,
        changes: Vec<String>,
    },
}

/// Which run a shard is of, as a part of a sentence.
fn of_run(id: Option<&str>) -> String {
    id.map_or("of a run without an id".to_owned(), |id| {
        format!("of the run `{id}`")
    })
}

/// One execution of a shard.
#[derive(Debug)]
pub(super) struct ShardCopy {
    pub(super) run: RunReader,
    pub(super) shard: Shard,
    /// Its latest end; `None` if it never ended.
    ended: Option<RunEnded>,
    last_at: u64,
}

/// The shards of one plan.
#[derive(Debug)]
pub struct ShardSet {
    plan: RunPlanned,
    /// Computed for the first plan that is not word for word the same.
    plan_hash: OnceCell<String>,
    /// By number, then by start.
    copies: Vec<ShardCopy>,
    /// The first report of each server, and the folder that has it.
    seen: BTreeMap<String, (ServerSeen, PathBuf)>,
    compared: Vec<SurfaceCompared>,
    steps: Vec<StepEnded>,
}

impl ShardSet {
    /// Reads the runs in these folders, which must be shards of one plan.
    pub fn read(folders: &[PathBuf]) -> Result<Self, MergeError> {
        let mut set: Option<Self> = None;
        let mut known = BTreeSet::new();
        for folder in folders {
            // The same folder twice is one execution.
            let path = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            if !known.insert(path) {
                continue;
            }
            let read = ReadShard::of(folder)?;
            match &mut set {
                None => set = Some(Self::starting_with(read)?),
                Some(set) => set.add(read)?,
            }
        }
        let mut set = set.ok_or(MergeError::Empty)?;
        set.copies.sort_by(|a, b| {
            let key = |copy: &ShardCopy| (copy.shard.index(), copy.run.started().started.clone());
            (key(a), a.run.folder()).cmp(&(key(b), b.run.folder()))
        });
        Ok(set)
    }

    fn starting_with(read: ReadShard) -> Result<Self, MergeError> {
        let mut set = Self {
            plan: read.plan.clone(),
            plan_hash: OnceCell::new(),
            copies: Vec::new(),
            seen: BTreeMap::new(),
            compared: Vec::new(),
            steps: Vec::new(),
        };
        set.add(read)?;
        Ok(set)
    }

    fn add(&mut self, mut read: ReadShard) -> Result<(), MergeError> {
        self.compare_plan(&mut read)?;
        let folder = read.copy.run.folder().to_owned();
        for seen in read.seen {
            self.add_seen(seen, &folder)?;
        }
        for compared in read.compared {
            if self
                .compared
                .iter()
                .all(|known| known.server != compared.server)
            {
                self.compared.push(compared);
            }
        }
        for step in read.steps {
            let is_same =
                |known: &&mut StepEnded| (known.phase, &known.id) == (step.phase, &step.id);
            match self.steps.iter_mut().find(is_same) {
                // Each shard has its own setup and cleanup; the one that did not pass matters.
                Some(known) if known.verdict == Verdict::Pass => *known = step,
                Some(_) => {}
                None => self.steps.push(step),
            }
        }
        self.copies.push(read.copy);
        Ok(())
    }

    fn compare_plan(&self, read: &mut ReadShard) -> Result<(), MergeError> {
        let Some(first) = self.copies.first() else {
            return Ok(());
        };
        let (one, other) = (&first.run, &read.copy.run);
        let (one_path, other_path) = (one.folder().to_owned(), other.folder().to_owned());
        let id = |plan: &RunPlanned| {
            let shard = plan.asked.shard.as_ref();
            shard.and_then(|shard| shard.run_id.clone())
        };
        let versions = (&one.started().proctor, &other.started().proctor);
        let own = || plan_hash(&self.plan, versions.0);
        // To hash a plan takes long, and most shards have the same.
        if !(versions.0 == versions.1 && is_same(&self.plan, &mut read.plan))
            && *self.plan_hash.get_or_init(own) != plan_hash(&read.plan, versions.1)
        {
            return Err(MergeError::OtherPlan {
                one: one_path,
                other: other_path,
                differences: differences((&self.plan, versions.0), (&read.plan, versions.1)),
            });
        }
        // A shard without an id, among others with one, is of an earlier run or was run by hand.
        let (one_id, other_id) = (id(&self.plan), id(&read.plan));
        if one_id == other_id {
            return Ok(());
        }
        Err(MergeError::OtherRun {
            one: one_path,
            one_id,
            other: other_path,
            other_id,
        })
    }

    fn add_seen(&mut self, seen: ServerSeen, folder: &Path) -> Result<(), MergeError> {
        let Some((known, one)) = self.seen.get(&seen.server) else {
            let server = seen.server.clone();
            self.seen.insert(server, (seen, folder.to_owned()));
            return Ok(());
        };
        let changes = seen.changes_since(known);
        if changes.is_empty() {
            return Ok(());
        }
        Err(MergeError::OtherServer {
            server: seen.server,
            one: one.clone(),
            other: folder.to_owned(),
            changes,
        })
    }

    /// The plan of the merged run.
    pub(super) fn plan(&self) -> RunPlanned {
        let mut plan = self.plan.clone();
        if let Some(shard) = &mut plan.asked.shard {
            shard.index = None;
        }
        plan
    }

    /// The start of the execution that started first.
    pub(super) fn first(&self) -> &RunStarted {
        let starts = self.copies.iter().map(|copy| copy.run.started());
        let first = starts.min_by(|a, b| a.started.cmp(&b.started));
        first.unwrap_or_else(|| self.copies[0].run.started())
    }

    pub(super) fn count(&self) -> u32 {
        let shard = self.plan.asked.shard.as_ref();
        shard.map_or(0, |shard| shard.count)
    }

    pub(super) fn seen(&self) -> impl Iterator<Item = &ServerSeen> {
        self.seen.values().map(|(seen, _)| seen)
    }

    pub(super) fn compared(&self) -> impl Iterator<Item = &SurfaceCompared> {
        self.compared.iter()
    }

    pub(super) fn steps(&self) -> impl Iterator<Item = &StepEnded> {
        self.steps.iter()
    }

    /// The executions of each shard, the earliest first.
    pub(super) fn by_index(&self) -> impl Iterator<Item = &[ShardCopy]> {
        self.copies.chunk_by(|a, b| a.shard == b.shard)
    }

    pub(super) fn last_at(&self) -> u64 {
        self.copies
            .iter()
            .map(|copy| copy.last_at)
            .max()
            .unwrap_or(0)
    }

    /// The shards without a folder, and those of which no execution ended.
    pub(super) fn missing(&self) -> Vec<String> {
        let given: BTreeSet<u32> = self.copies.iter().map(|copy| copy.shard.index()).collect();
        let absent: Vec<u32> = (1..=self.count()).filter(|n| !given.contains(n)).collect();
        let unfinished = self
            .by_index()
            .filter(|copies| copies.iter().all(|copy| copy.ended.is_none()));
        let unfinished: Vec<u32> = unfinished.map(|copies| copies[0].shard.index()).collect();
        let mut missing = Vec::new();
        if !absent.is_empty() {
            let count = counted(absent.len(), "shard");
            missing.push(format!(
                "{count} of {} missing: {}",
                self.count(),
                listed(&absent)
            ));
        }
        if !unfinished.is_empty() {
            let count = counted(unfinished.len(), "shard");
            missing.push(format!("{count} did not finish: {}", listed(&unfinished)));
        }
        missing
    }

    /// What the ends of the shards say that holds for the whole run.
    pub(super) fn ended(&self) -> RunEnded {
        let ends = || self.copies.iter().filter_map(|copy| copy.ended.as_ref());
        RunEnded {
            changed_trials: ends()
                .flat_map(|end| end.changed_trials.iter().cloned())
                .collect(),
            failed_cleanup: ends().find_map(|end| end.failed_cleanup.clone()),
            ..RunEnded::default()
        }
    }
}

/// A shard with the run's own events, which are small.
struct ReadShard {
    copy: ShardCopy,
    plan: RunPlanned,
    seen: Vec<ServerSeen>,
    compared: Vec<SurfaceCompared>,
    steps: Vec<StepEnded>,
}

impl ReadShard {
    fn of(folder: &Path) -> Result<Self, MergeError> {
        let run = RunReader::open(folder)?;
        let (mut plan, mut ended, mut last_at) = (None, None, 0);
        let (mut seen, mut compared, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        for event in run.events()? {
            let event = event?;
            last_at = last_at.max(event.at);
            match event.event {
                EventKind::RunPlanned(planned) => plan = Some(*planned),
                EventKind::ServerSeen(server) => seen.push(server),
                EventKind::SurfaceCompared(surface) => compared.push(surface),
                EventKind::StepEnded(step) => steps.push(step),
                EventKind::RunEnded(end) => ended = Some(end),
                _ => {}
            }
        }
        let path = || folder.to_owned();
        let plan = plan.ok_or_else(|| RecordError::NoPlan { path: path() })?;
        let planned: &PlannedShard = plan
            .asked
            .shard
            .as_deref()
            .ok_or_else(|| MergeError::NotAShard { path: path() })?;
        let shard = Shard::of_plan(planned).ok_or_else(|| MergeError::Merged { path: path() })?;
        Ok(Self {
            copy: ShardCopy {
                run,
                shard,
                ended,
                last_at,
            },
            plan,
            seen,
            compared,
            steps,
        })
    }
}
