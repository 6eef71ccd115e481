//! Stores of shards, for `check --store` and for the commands that read a run in a store.
//!
//! Main types: [`ShardStore`], the store of the shard that this process executes, and [`ShardUploads`].

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use proctor_core::suite::Environment;
use proctor_record::hint::counted;
use proctor_record::record;
use proctor_run::engine::options::ShardOption;
use proctor_run::engine::{PreparedRun, RunInProgress};
use proctor_run::store::{
    RunStore, SCHEMES, StoreError, UploadReport, Uploader, VARIABLES, is_trial_file,
};

use super::{environment, known_secrets, until_stopped};
use crate::args::CheckArgs;
use crate::exit::{Exit, ReportedExit};
use crate::output;

/// How long commands that only read try to reach a store.
const READING: Duration = Duration::from_mins(2);

/// How many files a message names.
const LISTED: usize = 5;

/// The store of the shard that this process executes.
pub(super) struct ShardStore {
    store: RunStore,
    shard: u32,
    /// The trials that earlier workers uploaded.
    restored: BTreeSet<String>,
}

/// The uploads of a shard in progress.
pub(super) struct ShardUploads(Uploader);

impl ShardStore {
    /// The store of `--store`; `None` without the flag.
    pub(super) fn open(
        args: &CheckArgs,
        shard: Option<&ShardOption>,
        environment: &Environment,
    ) -> anyhow::Result<Option<Self>> {
        let (Some(url), Some(shard)) = (&args.store, shard) else {
            return Ok(None);
        };
        let Some(run_id) = &shard.run_id else {
            bail!(
                "`--store` needs the name of the run: use `--run-id`, or set PROCTOR_RUN_ID, SLURM_ARRAY_JOB_ID, \
                 CI_PIPELINE_ID or GITHUB_RUN_ID"
            );
        };
        let is_of_store = |name: &&String| VARIABLES.iter().any(|prefix| name.starts_with(prefix));
        if !url.starts_with("file:")
            && let Some(name) = args.pass_env.iter().find(is_of_store)
        {
            bail!(
                "`--pass-env {name}`: servers and agents must not get the credentials of the store"
            );
        }
        let url = format!("{}/{run_id}", url.trim_end_matches('/'));
        Ok(Some(Self {
            store: RunStore::open(&url, environment, args.store_timeout)?,
            shard: shard.shard.index(),
            restored: BTreeSet::new(),
        }))
    }

    /// Gets what earlier workers uploaded of the shard, so that only the rest runs.
    pub(super) fn restore(&mut self, prepared: &mut PreparedRun) -> anyhow::Result<()> {
        let folder = prepared.choose_folder()?;
        record::make_folder(&folder)?;
        // Another worker may be writing there.
        let lock = record::lock(&folder)?;
        prepared.refuse_other_shard(&folder)?;
        let Some(begun) = until_stopped(self.store.begun(self.shard))?.map_err(refused)? else {
            return Ok(());
        };
        prepared.refuse_other_plan(&begun, self.store.url())?;
        let restoring = self.store.restore(self.shard, &begun, &folder);
        self.restored = until_stopped(restoring)?.map_err(refused)?;
        drop(lock);
        if !self.restored.is_empty() {
            let trials = counted(self.restored.len(), "trial file");
            output::message(&format!("the store has {trials} of this shard\n"))?;
        }
        Ok(())
    }

    /// Starts to upload the trials of a run as they end, and those that are not in the store yet.
    pub(super) fn start(self, run: &mut RunInProgress) -> anyhow::Result<ShardUploads> {
        let folder = run.folder().to_owned();
        let uploader = Uploader::start(self.store, self.shard, &folder)?;
        let files = uploader.files();
        for entry in fs::read_dir(folder.join("trials"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_trial_file(&name) && !self.restored.contains(&name) {
                // The uploader lives until the run has ended.
                let _ = files.send(name);
            }
        }
        run.send_ended_files(files);
        Ok(ShardUploads(uploader))
    }
}

impl ShardUploads {
    /// Waits for the uploads, reports them, and returns whether the store is complete and each trial in it has a
    /// verdict as far as this worker knows.
    pub(super) fn finish(self) -> bool {
        let report = self.0.finish();
        for line in lines(&report) {
            // If stderr is closed, there is no other place to report it.
            let _ = output::message(&known_secrets().text(&output::printable_lines(&line)));
        }
        report.failed.is_empty() && report.conflicts.iter().all(|conflict| conflict.has_verdict)
    }
}

fn lines(report: &UploadReport) -> Vec<String> {
    let mut lines = Vec::new();
    if !report.conflicts.is_empty() {
        let trials = counted(report.conflicts.len(), "trial");
        let names = report
            .conflicts
            .iter()
            .map(|conflict| conflict.file.as_str());
        lines.push(format!(
            "warning: another worker on this shard uploaded {trials} first, so its results count: {}\n",
            some(names)
        ));
    }
    let open = report
        .conflicts
        .iter()
        .filter(|conflict| !conflict.has_verdict);
    if open.clone().next().is_some() {
        let names = some(open.map(|conflict| conflict.file.as_str()));
        lines.push(format!("warning: these have no verdict there: {names}\n"));
    }
    if let Some((_, error)) = report.failed.first() {
        let files = counted(report.failed.len(), "file");
        let names = some(report.failed.iter().map(|(file, _)| file.as_str()));
        lines.push(format!(
            "error: {files} not in the store: {names}\n  caused by: {error}\n\
             hint: the record is complete on this machine; run the same command with the same `--record` again\n",
        ));
    }
    lines
}

fn some<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names[..names.len().min(LISTED)].join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The URL of a run in a store, if that is what the user named.
pub(super) fn url(named: &Path) -> Option<&str> {
    let text = named.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    SCHEMES.contains(&scheme).then_some(text)
}

/// Fetches all shards of a run into the user's cache, and returns their folders.
pub(super) fn fetch(url: &str) -> anyhow::Result<Vec<PathBuf>> {
    let environment = environment();
    let store = RunStore::open(url, &environment, READING)?;
    let folder = cache(&environment, &store.key())?;
    until_stopped(store.fetch(&folder))?.map_err(refused)
}

/// The folder of a run in the user's cache.
fn cache(environment: &Environment, key: &str) -> anyhow::Result<PathBuf> {
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let folder = match (set("XDG_CACHE_HOME"), set("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => Path::new(home).join(".cache"),
        (None, None) => bail!("no cache folder: set `HOME` or `XDG_CACHE_HOME`"),
    };
    Ok(folder.join("proctor").join("store").join(key))
}

/// An outage is inconclusive, so that an engine tries again; anything else is an error of the configuration.
fn refused(error: StoreError) -> anyhow::Error {
    if !error.is_temporary() {
        return error.into();
    }
    output::error(&error.into(), &known_secrets());
    ReportedExit(Exit::Inconclusive).into()
}
