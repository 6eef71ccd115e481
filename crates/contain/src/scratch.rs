//! Temporary folders that hold secrets: for their owner only, and never left for long.
//!
//! Its main type is [`Scratch`]. A process that is killed can't remove its folders, so the next one
//! does ([`sweep`]). A folder belongs to a process that lives for as long as its lock is held: the
//! system lets go of that when the process dies, in whatever way, and no number is mistaken for
//! another process's.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::geteuid;
use tempfile::TempDir;

/// What the name of every such folder starts with.
const PREFIX: &str = "proctor-scratch-";

/// The file in a folder that is locked while its process lives.
const LOCK: &str = "lock";

/// How often, and after which pauses, a folder is removed that somebody still writes to.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(200);

/// A folder that only its owner can look into, removed when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    /// Nothing once it is removed.
    root: Option<TempDir>,
    path: PathBuf,
    /// Held until the folder is gone.
    _lock: File,
}

impl Scratch {
    pub fn new() -> io::Result<Self> {
        Self::new_in(&tempfile::env::temp_dir())
    }

    fn new_in(parent: &Path) -> io::Result<Self> {
        let root = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        // Programs compare the path that they are told with the one that they find.
        let path = root.path().canonicalize()?;
        // Whoever sweeps looks for the final name, which never stands for a file without its lock.
        let unlocked = path.join("lock.new");
        let lock = File::create_new(&unlocked)?;
        lock.lock()?;
        fs::rename(&unlocked, path.join(LOCK))?;
        Ok(Self {
            root: Some(root),
            path,
            _lock: lock,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder in it, for the owner only.
    pub fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(root) = self.root.take() {
            remove(&root.keep());
        }
    }
}

/// Removes what processes that were killed have left of their folders. What can't be removed, or may
/// belong to somebody, stays.
pub fn sweep() {
    sweep_in(&tempfile::env::temp_dir());
}

fn sweep_in(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && is_own_folder(&entry.path())
            && let Some(_lock) = abandoned(&entry.path())
        {
            // Kept locked meanwhile, so that no other sweep removes it too.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether it is a folder, and no link to one, that this user has made for nobody else.
fn is_own_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| {
        found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o777 == 0o700
    })
}

/// The lock of a folder whose process is dead; `None` if it lives, or is about to take its lock.
fn abandoned(folder: &Path) -> Option<File> {
    let lock = folder.join(LOCK);
    let is_file = fs::symlink_metadata(&lock).is_ok_and(|found| found.is_file());
    let lock = File::open(lock).ok().filter(|_| is_file)?;
    match lock.try_lock() {
        Ok(()) => Some(lock),
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => None,
    }
}

/// Removes a folder. What was just ended may still be writing there.
fn remove(root: &Path) {
    for _ in 0..ATTEMPTS {
        match fs::remove_dir_all(root) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(PAUSE),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A folder as a process leaves it that is killed.
    fn left_behind(parent: &Path) -> PathBuf {
        let mut scratch = Scratch::new_in(parent).unwrap();
        let path = scratch.root.take().unwrap().keep();
        fs::write(path.join("key"), "secret").unwrap();
        path
    }

    #[test]
    fn a_folder_is_for_its_owner_only_and_gone_when_dropped() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new_in(parent.path()).unwrap();
        let home = scratch.folder("home").unwrap();
        for path in [scratch.path(), &home] {
            let mode = fs::metadata(path).unwrap().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", path.display());
        }
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn what_dead_processes_left_is_swept_and_what_lives_stays() {
        let parent = tempfile::tempdir().unwrap();
        let living = Scratch::new_in(parent.path()).unwrap();
        let dead = left_behind(parent.path());
        // Killed before it had its lock; somebody else's by its name; open to others; no folder.
        let beginning = parent.path().join(format!("{PREFIX}1"));
        fs::create_dir(&beginning).unwrap();
        fs::set_permissions(&beginning, Permissions::from_mode(0o700)).unwrap();
        let foreign = parent.path().join("proctor-notes");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join(LOCK), "").unwrap();
        let open = left_behind(parent.path());
        fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join(LOCK), "").unwrap();
        let link = parent.path().join(format!("{PREFIX}link"));
        symlink(elsewhere.path(), &link).unwrap();
        sweep_in(parent.path());
        assert!(!dead.exists());
        for kept in [
            living.path(),
            &beginning,
            &foreign,
            &open,
            elsewhere.path(),
            &link,
        ] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }

    #[test]
    fn sweeping_never_takes_a_folder_that_is_being_made() {
        let parent = tempfile::tempdir().unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        sweep_in(parent.path());
                    }
                });
            }
            let makers = [(); 2].map(|()| {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let scratch = Scratch::new_in(parent.path()).unwrap();
                        let home = scratch.folder("home").unwrap();
                        fs::write(home.join("key"), "secret").unwrap();
                        assert!(home.join("key").exists());
                    }
                })
            });
            let ended = makers.map(|maker| maker.join().is_ok());
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(ended, [true, true]);
        });
    }
}
