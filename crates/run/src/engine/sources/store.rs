//! The cache of sources: one folder per commit, with the objects of git and the files.
//!
//! Main type: [`SourceStore`]. A folder appears with one rename. Its files may change, because scripts of a source run
//! among them; then the objects restore them.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use proctor_contain::scratch::{Scratch, sweep_in};
use proctor_core::suite::Repository;
use proctor_core::suite::checkout;
use proctor_core::suite::lock_file::{SourcePin, is_commit, short};

use super::git::{Git, GitError};
use super::tree::{self, LeftOut, TreeError};
use crate::engine::Engine;

/// The name of a fetched reference.
const FETCHED: &str = "refs/proctor/fetched";
/// The file that a run locks while it uses a checkout.
const LOCK: &str = "lock";
/// How many submodules or pointers a note names.
const NAMED: usize = 3;

/// Why a source can't be fetched.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(
        "the repository no longer has the pinned commit {}; `proctor sources update` pins the current one",
        short(.0)
    )]
    Gone(String),
    #[error(
        "the files of commit {} are not those that were pinned: their digest is `{found}`, and `proctor.lock` has \
         `{pinned}`", short(.commit)
    )]
    Differs {
        commit: String,
        pinned: String,
        found: String,
    },
    #[error("another run uses its files, which were changed; wait until it has ended")]
    InUse,
    #[error("the cache `{path}` can't be written: {error}")]
    Cache { path: String, error: io::Error },
}

/// What to fetch.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'a> {
    /// A branch, tag or commit; by default the default branch.
    Reference(Option<&'a str>),
    Commit(&'a SourcePin),
}

/// A commit in the cache.
pub(super) struct FetchedCommit {
    pub(super) commit: String,
    /// The digest of its files.
    pub(super) tree: String,
    pub(super) notes: Vec<String>,
}

pub(super) struct SourceStore<'a> {
    pub(super) engine: &'a Engine,
    /// The folder of all commits.
    pub(super) folder: PathBuf,
}

/// Keeps other processes from replacing these files, as long as the returned file is open.
pub(super) fn hold_checkout(tree: &Path) -> Result<File, SourceError> {
    let path = tree.with_file_name(LOCK);
    let file = File::open(&path).map_err(|error| cache_error(&path, error))?;
    match file.try_lock_shared() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(SourceError::InUse),
        Err(TryLockError::Error(error)) => Err(cache_error(&path, error)),
    }
}

impl SourceStore<'_> {
    /// Fetches a commit into the cache.
    pub(super) async fn fetch(
        &self,
        repository: &Repository,
        wanted: Wanted<'_>,
    ) -> Result<FetchedCommit, SourceError> {
        let scratch = self.scratch()?;
        let (entry, git) = self.new_entry(&scratch)?;
        git.init().await?;
        let url = match repository {
            Repository::Remote(url) => url.clone(),
            Repository::Local(path) => {
                let path = std::path::absolute(path).map_err(|error| cache_error(path, error))?;
                path.display().to_string()
            }
        };
        let commit = match wanted {
            Wanted::Reference(reference) => {
                let reference = reference.unwrap_or("HEAD");
                git.fetch(&url, &[format!("+{reference}:{FETCHED}")], true)
                    .await?;
                git.commit(FETCHED).await?
            }
            Wanted::Commit(pin) => fetch_pinned(&git, &url, &pin.commit).await?,
        };
        if !is_commit(&commit) {
            return Err(GitError::Failed(format!("git printed the commit `{commit}`")).into());
        }
        let left_out = tree::write(&git, &commit, &checkout::tree(&entry)).await?;
        let tree = digest_of(&entry)?;
        if let Wanted::Commit(pin) = wanted {
            same_files(pin, &tree)?;
        }
        self.put(&scratch, &entry, &commit, &tree)?;
        Ok(FetchedCommit {
            commit,
            tree,
            notes: notes(&left_out),
        })
    }

    /// Writes the files of a commit again, from the objects in the cache.
    pub(super) async fn restore(&self, pin: &SourcePin) -> Result<(), SourceError> {
        let scratch = self.scratch()?;
        let (entry, git) = self.new_entry(&scratch)?;
        let kept = self.folder.join(&pin.commit).join("git");
        copy_folder(&kept, &git.folder).map_err(|error| cache_error(&kept, error))?;
        tree::write(&git, &pin.commit, &checkout::tree(&entry)).await?;
        let found = digest_of(&entry)?;
        same_files(pin, &found)?;
        self.put(&scratch, &entry, &pin.commit, &found)
    }

    fn scratch(&self) -> Result<Scratch, SourceError> {
        let fail = |error| cache_error(&self.folder, error);
        fs::create_dir_all(&self.folder).map_err(fail)?;
        sweep_in(&self.folder);
        Scratch::new_in(&self.folder).map_err(fail)
    }

    fn new_entry(&self, scratch: &Scratch) -> Result<(PathBuf, Git), SourceError> {
        let fail = |error| cache_error(scratch.path(), error);
        let entry = scratch.folder("entry").map_err(fail)?;
        File::create_new(entry.join(LOCK)).map_err(fail)?;
        let engine = self.engine;
        let redactor = engine.redactor(&[]);
        let folder = entry.join("git");
        let git = Git::new(&engine.environment, &engine.program, folder, redactor);
        Ok((entry, git))
    }

    /// Moves a complete folder to its place. If another process was faster, its folder stays.
    fn put(
        &self,
        scratch: &Scratch,
        entry: &Path,
        commit: &str,
        tree: &str,
    ) -> Result<(), SourceError> {
        let place = self.folder.join(commit);
        let fail = |error| cache_error(&place, error);
        if place.is_dir() {
            if digest_of(&place).is_ok_and(|found| found == tree) {
                return Ok(());
            }
            if let Ok(lock) = File::open(place.join(LOCK)) {
                lock.try_lock().map_err(|_| SourceError::InUse)?;
            }
            fs::rename(&place, scratch.path().join("old")).map_err(fail)?;
        }
        match fs::rename(entry, &place) {
            // Another process has put it there meanwhile.
            Err(_) if digest_of(&place).is_ok_and(|found| found == tree) => Ok(()),
            moved => moved.map_err(fail),
        }
    }
}

/// The digest of the files in the folder of a commit.
fn digest_of(entry: &Path) -> Result<String, SourceError> {
    let tree = checkout::tree(entry);
    checkout::digest(&tree).map_err(|error| cache_error(&tree, error))
}

/// Fetches a commit by its id, or everything if the server gives only what has a name.
async fn fetch_pinned(git: &Git, url: &str, commit: &str) -> Result<String, SourceError> {
    let alone = [format!("+{commit}:{FETCHED}")];
    if git.fetch(url, &alone, true).await.is_err() {
        let all = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];
        git.fetch(url, &all.map(str::to_owned), false).await?;
    }
    let found = git.commit(commit).await;
    found.map_err(|_| SourceError::Gone(commit.to_owned()))
}

fn same_files(pin: &SourcePin, found: &str) -> Result<(), SourceError> {
    if pin.tree == found {
        return Ok(());
    }
    Err(SourceError::Differs {
        commit: pin.commit.clone(),
        pinned: pin.tree.clone(),
        found: found.to_owned(),
    })
}

/// What a user has to know about a commit.
fn notes(left_out: &LeftOut) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(names) = named(&left_out.submodules) {
        notes.push(format!("Proctor does not fetch submodules: {names}"));
    }
    if let Some(names) = named(&left_out.pointers) {
        notes.push(format!(
            "Proctor does not fetch files from Git LFS, so these are pointers: {names}"
        ));
    }
    notes
}

fn named(paths: &[String]) -> Option<String> {
    let shown: Vec<String> = paths.iter().take(NAMED).map(|p| format!("`{p}`")).collect();
    let more = paths.len().saturating_sub(NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    (!shown.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
}

/// Copies the objects of git, which are plain files in folders.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn cache_error(path: &Path, error: io::Error) -> SourceError {
    SourceError::Cache {
        path: path.display().to_string(),
        error,
    }
}
