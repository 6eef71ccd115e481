//! Fetches sources: the other git repositories that a suite takes tasks from.
//!
//! Main functions: `provide`, before a run, and [`fetch`], for `proctor sources`. A checkout is complete in a
//! temporary folder before one rename puts it into the cache, so an interrupted fetch leaves nothing there. Fetching
//! runs no code of a source; a run does, so a new commit needs consent.

mod git;
mod store;
mod tree;

use std::fs::File;
use std::path::{Path, PathBuf};

use proctor_core::suite::checkout::sources_folder;
use proctor_core::suite::lock_file::{LockFile, SourcePin, short};
use proctor_core::suite::{Inputs, SourceState, Suite, TaskSource, load};
use proctor_record::hint::listed;
use proctor_record::problem::Problems;

pub use self::git::GitError;
pub use self::store::SourceError;
use self::store::{SourceStore, Wanted, hold_checkout};
pub use self::tree::TreeError;
use super::Engine;
use super::consent::keep;
use super::error::EngineError;
use super::host::{ConsentAnswer, Host, HostNotice};

/// What fetching before a run may do.
#[derive(Debug, Clone, Copy)]
pub(super) struct FetchTerms {
    /// Whether to use no network, and to change no lock file.
    pub(super) locked: bool,
    /// Whether the user agreed beforehand with `--yes`.
    pub(super) yes: bool,
}

/// A source that was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedSource {
    pub name: String,
    pub repo: String,
    pub reference: Option<String>,
    /// The commit that `proctor.lock` had.
    pub old: Option<String>,
    /// The commit that it has now.
    pub new: String,
    /// What Proctor did not fetch: submodules, and files in Git LFS.
    pub notes: Vec<String>,
}

/// Which sources to fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchScope {
    /// Those that are not in the cache, at their pinned commit.
    Absent,
    /// All, at the commit that their reference stands for now.
    Newest,
}

/// The sources that an eval file takes tasks from.
pub fn of_file(
    engine: &Engine,
    file: &Path,
    host: &dyn Host,
) -> Result<Vec<TaskSource>, EngineError> {
    Ok(load_alone(engine, file, host)?.sources)
}

/// Loads a suite for what it needs from outside. Unset variables don't matter.
pub(super) fn load_alone(
    engine: &Engine,
    file: &Path,
    host: &dyn Host,
) -> Result<Suite, EngineError> {
    let inputs = Inputs {
        env: engine.environment(),
        source_roots: &std::collections::BTreeMap::new(),
        runs: None,
        mcp_config: None,
        judge_given: true,
    };
    let mut problems = Problems::default();
    if let Some(suite) = load(file, &inputs, &mut problems) {
        return Ok(suite);
    }
    host.notice(HostNotice::Problems(&problems));
    Err(EngineError::InvalidFile {
        file: file.to_owned(),
        problems: Box::new(problems),
    })
}

/// Fetches sources of an eval file and pins them. With names, only these sources.
pub async fn fetch(
    engine: &Engine,
    file: &Path,
    scope: FetchScope,
    names: &[String],
    host: &dyn Host,
) -> Result<Vec<FetchedSource>, EngineError> {
    let sources = of_file(engine, file, host)?;
    for name in names {
        if !sources.iter().any(|source| source.name == *name) {
            let known = listed(sources.iter().map(|source| source.name.as_str()));
            return Err(EngineError::usage(format!(
                "no task set of `{}` takes tasks from a source `{name}`; sources: {known}",
                file.display()
            )));
        }
    }
    let mut fetched = Vec::new();
    for source in sources {
        let is_named = names.is_empty() || names.contains(&source.name);
        if is_named && (scope == FetchScope::Newest || source.root().is_none()) {
            fetched.push(obtain(engine, &source, scope, file).await?);
        }
    }
    Ok(fetched)
}

/// Fetches the sources of a suite that are not here. Returns whether there were any, so that the suite has to be
/// loaded again.
pub(super) async fn provide(
    engine: &Engine,
    suite: &Suite,
    terms: FetchTerms,
    host: &dyn Host,
) -> Result<bool, EngineError> {
    let absent: Vec<&TaskSource> = suite.unfetched().collect();
    let unpinned = absent.iter().filter(|source| source.pin().is_none());
    let unpinned: Vec<&TaskSource> = unpinned.copied().collect();
    if terms.locked {
        let changed = |source: &&TaskSource| matches!(source.state, SourceState::Changed(_));
        let missing = absent.iter().filter(|source| !changed(source));
        let missing: Vec<String> = missing.filter_map(|source| source.absence()).collect();
        if !missing.is_empty() {
            return Err(EngineError::usage(format!(
                "`--locked` fetches nothing, and {}; run `proctor sources fetch {}` first",
                missing.join(", and "),
                suite.path.display()
            )));
        }
    } else if !unpinned.is_empty() && !terms.yes {
        ask(&unpinned, &suite.path, host).await?;
    }
    for source in &absent {
        if terms.locked {
            restore(engine, source).await?;
            continue;
        }
        let fetched = obtain(engine, source, FetchScope::Absent, &suite.path).await?;
        host.notice(HostNotice::Text(&fetched.to_string()));
    }
    Ok(!absent.is_empty())
}

/// Asks whether sources without a pin may be used.
async fn ask(unpinned: &[&TaskSource], file: &Path, host: &dyn Host) -> Result<(), EngineError> {
    let mut text = "These sources are not pinned in `proctor.lock` yet. Their scripts will run on this machine:".to_owned();
    for source in unpinned {
        text.push_str(&format!("\n  {}: {}", source.name, origin(source)));
    }
    host.notice(HostNotice::Text(&text));
    let answer = host.confirm("Fetch and pin them? [y/N] ").await;
    match answer.map_err(|error| EngineError::unusable("can't read the answer", error))? {
        ConsentAnswer::Yes => Ok(()),
        ConsentAnswer::No => Err(EngineError::usage("no source was fetched")),
        ConsentAnswer::Nobody => Err(EngineError::usage(format!(
            "consent is required and stdin or stderr is not a terminal; no source was fetched: run `proctor sources \
             fetch {}` and commit `proctor.lock`, or pass `--yes`",
            file.display()
        ))),
    }
}

/// Refuses a suite with sources that are not here.
pub(super) fn refuse_absent(suite: &Suite) -> Result<(), EngineError> {
    let absences: Vec<String> = suite.unfetched().filter_map(TaskSource::absence).collect();
    if absences.is_empty() {
        return Ok(());
    }
    Err(EngineError::usage(format!(
        "{}; run `proctor sources fetch {}`, or pass a checkout with `--source NAME=DIR`",
        absences.join(", and "),
        suite.path.display()
    )))
}

/// Keeps other processes from replacing the checkouts of a suite while it runs.
pub(super) fn hold(suite: &Suite) -> Result<Vec<File>, EngineError> {
    let mut held = Vec::new();
    for source in &suite.sources {
        if let SourceState::Cached { root, .. } = &source.state {
            let checkout = hold_checkout(root);
            held.push(checkout.map_err(|error| failed(source, error))?);
        }
    }
    Ok(held)
}

/// Puts the files of a changed checkout back.
async fn restore(engine: &Engine, source: &TaskSource) -> Result<(), EngineError> {
    let Some(pin) = source.pin() else {
        return Ok(());
    };
    let store = store(engine)?;
    store
        .restore(pin)
        .await
        .map_err(|error| failed(source, error))
}

/// Fetches one source and pins it.
async fn obtain(
    engine: &Engine,
    source: &TaskSource,
    scope: FetchScope,
    file: &Path,
) -> Result<FetchedSource, EngineError> {
    let store = store(engine)?;
    let fail = |error| failed(source, error);
    let old = source.pin();
    if let (SourceState::Changed(pin), FetchScope::Absent) = (&source.state, scope) {
        match store.restore(pin).await {
            Ok(()) => return Ok(report(source, old, &pin.commit, Vec::new())),
            Err(error @ SourceError::InUse) => return Err(fail(error)),
            // Its objects are damaged too, so it is fetched again.
            Err(_) => {}
        }
    }
    let wanted = match (old, scope) {
        (Some(pin), FetchScope::Absent) => Wanted::Commit(pin),
        (None, _) | (_, FetchScope::Newest) => Wanted::Reference(source.reference.as_deref()),
    };
    let found = store
        .fetch(&source.repository, wanted)
        .await
        .map_err(fail)?;
    let pin = SourcePin {
        repo: source.repo.clone(),
        reference: source.reference.clone(),
        commit: found.commit,
        tree: found.tree,
    };
    if old != Some(&pin) {
        change_lock(file, |lock| lock.pin_source(pin.clone()))?;
    }
    Ok(report(source, old, &pin.commit, found.notes))
}

fn report(
    source: &TaskSource,
    old: Option<&SourcePin>,
    new: &str,
    notes: Vec<String>,
) -> FetchedSource {
    FetchedSource {
        name: source.name.clone(),
        repo: source.repo.clone(),
        reference: source.reference.clone(),
        old: old.map(|pin| pin.commit.clone()),
        new: new.to_owned(),
        notes,
    }
}

impl std::fmt::Display for FetchedSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, new, .. } = self;
        let reference = self.reference.as_deref().unwrap_or("default branch");
        write!(f, "source `{name}`: {reference} is ")?;
        match &self.old {
            Some(old) if old != new => write!(f, "{} → {}", short(old), short(new))?,
            Some(_) => write!(f, "{}, as pinned", short(new))?,
            None => write!(f, "{}, now pinned in `proctor.lock`", short(new))?,
        }
        for note in &self.notes {
            write!(f, "\nwarning: source `{name}`: {note}")?;
        }
        Ok(())
    }
}

/// `https://… at v1`.
fn origin(source: &TaskSource) -> String {
    match &source.reference {
        Some(reference) => format!("{} at {reference}", source.repo),
        None => source.repo.clone(),
    }
}

fn failed(source: &TaskSource, error: SourceError) -> EngineError {
    EngineError::unusable(
        format!(
            "can't fetch the source `{}` ({})",
            source.name,
            origin(source)
        ),
        error,
    )
}

fn store(engine: &Engine) -> Result<SourceStore<'_>, EngineError> {
    let folder = sources_folder(engine.environment()).ok_or_else(no_cache)?;
    Ok(SourceStore { engine, folder })
}

pub(super) fn no_cache() -> EngineError {
    EngineError::usage("no cache folder: set `HOME` or `XDG_CACHE_HOME`")
}

/// Changes the lock file of an eval file. Other processes that do so wait.
pub(super) fn change_lock(
    file: &Path,
    change: impl FnOnce(&mut LockFile),
) -> Result<(), EngineError> {
    let path = LockFile::path_for(file);
    let fail = |error| EngineError::unusable(format!("can't write `{}`", path.display()), error);
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let turn = File::open(folder).map_err(fail)?;
    turn.lock().map_err(fail)?;
    let mut problems = Problems::default();
    let Some(mut lock) = LockFile::load(&path, &mut problems) else {
        return Err(EngineError::InvalidFile {
            file: path,
            problems: Box::new(problems),
        });
    };
    change(&mut lock);
    keep::write(&path, &lock.render()).map_err(fail)
}
