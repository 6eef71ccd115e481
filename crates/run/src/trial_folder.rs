//! The folder of a trial: empty or a copy of its workspace, for its owner only, and gone when the
//! trial has passed.
//!
//! Its main type is [`TrialFolder`]. It is in the temporary folder of the system, not in the run's
//! folder: it is not redacted, it may be large, and programs that look for a repository above their
//! folder must not find the user's. Commands without trials have such a folder too.

mod copy;
mod random;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::suite::{RandomPort, TrialValues, Workspace};
use proctor_record::event::{Blame, Outcome, TrialFolder as TrialFolderEvent};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use self::copy::{CopyError, copy};
use proctor_contain::scratch::Scratch;
use proctor_wire::worker;

/// The start of the name of the subfolder that belongs to the trial.
const FOLDER: &str = "trial-";

/// Which folders are left in place at the end of their trials. Empty ones never are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeepOption {
    /// Those of trials that failed, errored or timed out.
    #[default]
    Failed,
    All,
    None,
}

impl KeepOption {
    fn keeps(self, outcome: Outcome) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Failed => match outcome {
                Outcome::Failed | Outcome::Errored | Outcome::TimedOut => true,
                Outcome::Passed | Outcome::Cancelled => false,
            },
        }
    }
}

/// Why a trial has no folder to work in.
#[derive(Debug, thiserror::Error)]
pub enum TrialFolderError {
    #[error("can't create the folder of the trial: {0}")]
    Create(String),
    #[error("can't copy the workspace: {0}")]
    Copy(#[from] CopyError),
}

impl TrialFolderError {
    /// The suite is to blame for its workspace, and the environment for the rest.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Copy(error) if error.is_about_workspace() => Blame::Suite,
            Self::Create(_) | Self::Copy(_) => Blame::Infra,
        }
    }
}

/// Empty folders of trials that have passed, for the next trials. Dropping it removes them.
#[derive(Debug, Default)]
pub(crate) struct FolderPool(Mutex<Vec<SpareFolder>>);

/// A folder, and its empty subfolder if no trial has used that.
#[derive(Debug)]
struct SpareFolder(Scratch, Option<PathBuf>);

impl FolderPool {
    /// A folder for the trial with this id.
    pub(crate) fn open(self: &Arc<Self>, id: &str) -> TrialFolder {
        let spare = self.lock().pop();
        let folder = match spare {
            Some(spare) => TrialFolder::with(id, Some(spare)),
            None => worker::blocking(|| TrialFolder::with(id, None)),
        };
        TrialFolder {
            pool: Some(self.clone()),
            ..folder
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<SpareFolder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The folder of one trial. Dropping it removes it.
#[derive(Debug)]
pub struct TrialFolder {
    pool: Option<Arc<FolderPool>>,
    /// `None` if it could not be created.
    scratch: Option<Scratch>,
    error: Option<String>,
    values: TrialValues,
    copying: CopyTask,
}

/// A copy in progress, which ends early when this is dropped.
#[derive(Debug, Default)]
struct CopyTask {
    stop: Arc<AtomicBool>,
    running: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for CopyTask {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl TrialFolder {
    /// Creates an empty folder for the trial or command with this id. [`TrialFolder::prepare`]
    /// reports a failure.
    pub fn new(id: &str) -> Self {
        Self::with(id, None)
    }

    fn with(id: &str, spare: Option<SpareFolder>) -> Self {
        let mut values = TrialValues {
            dir: String::new(),
            id: id.to_owned(),
            random_id: random::id(),
            random_port: RandomPort::new(random::free_port),
        };
        let (scratch, error) = match create(spare) {
            Ok((scratch, dir)) => {
                values.dir = dir;
                (Some(scratch), None)
            }
            Err(error) => (None, Some(error.to_string())),
        };
        Self {
            pool: None,
            scratch,
            error,
            values,
            copying: CopyTask::default(),
        }
    }

    /// The values of templates.
    pub fn values(&self) -> &TrialValues {
        &self.values
    }

    /// Whether the folder was created.
    pub fn is_there(&self) -> bool {
        self.scratch.is_some()
    }

    /// Copies a workspace into the folder. Must be called once, before anything uses the folder.
    pub async fn prepare(&self, workspace: Option<&Workspace>) -> Result<(), TrialFolderError> {
        if let Some(error) = &self.error {
            return Err(TrialFolderError::Create(error.clone()));
        }
        let Some(workspace) = workspace else {
            return Ok(());
        };
        let (from, to) = (workspace.path.clone(), PathBuf::from(&self.values.dir));
        let stop = self.copying.stop.clone();
        let (tell, told) = oneshot::channel();
        let running = tokio::task::spawn_blocking(move || {
            // After a timeout, the trial no longer waits for it.
            let _ = tell.send(copy(&from, &to, &stop));
        });
        *self.lock() = Some(running);
        Ok(told.await.unwrap_or(Err(CopyError::Stopped))?)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<()>>> {
        let running = &self.copying.running;
        running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the folder to the next trial, if no program and no model learned of it.
    pub(crate) fn give_back(&mut self) {
        if let (Some(pool), Some(scratch)) = (&self.pool, self.scratch.take()) {
            let unused = Some(PathBuf::from(&self.values.dir));
            pool.lock().push(SpareFolder(scratch, unused));
        }
    }

    /// Removes the folder or leaves it in place, and says which; `None` if there was none.
    pub async fn finish(&mut self, keep: KeepOption, outcome: Outcome) -> Option<TrialFolderEvent> {
        self.copying.stop.store(true, Ordering::Relaxed);
        let running = self.lock().take();
        if let Some(running) = running {
            // A panic of the copy was the end of the trial already.
            let _ = running.await;
        }
        let scratch = self.scratch.take()?;
        let path = std::mem::take(&mut self.values.dir);
        let keeps = keep.keeps(outcome);
        // Most trials pass and leave nothing.
        if let (Some(pool), Outcome::Passed) = (&self.pool, outcome)
            && let Some(name) = Path::new(&path).file_name()
            && scratch.clear(name)
        {
            pool.lock().push(SpareFolder(scratch, None));
            return Some(TrialFolderEvent {
                path,
                kept: false,
                reason: None,
            });
        }
        let ending = tokio::task::spawn_blocking(move || {
            let reason = if keeps && !is_empty(&path) {
                scratch.keep().err()
            } else {
                match scratch.remove() {
                    Ok(()) => {
                        return TrialFolderEvent {
                            path,
                            kept: false,
                            reason: None,
                        };
                    }
                    Err(error) => Some(error),
                }
            };
            TrialFolderEvent {
                path,
                kept: true,
                reason: reason.map(|error| error.to_string()),
            }
        });
        ending.await.ok()
    }
}

/// The folder, and the path of the part that belongs to the trial: the rest holds a lock.
fn create(spare: Option<SpareFolder>) -> io::Result<(Scratch, String)> {
    let (scratch, unused) = match spare {
        Some(SpareFolder(scratch, unused)) => (scratch, unused),
        None => (Scratch::new()?, None),
    };
    let dir = match unused {
        Some(dir) => dir,
        None => scratch.folder(&format!("{FOLDER}{}", random::id()))?,
    };
    let dir = dir.into_os_string().into_string().map_err(|path| {
        let message = format!("the path `{}` is not UTF-8", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })?;
    Ok((scratch, dir))
}

fn is_empty(path: &str) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        // One that can't be read may hold something.
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}
