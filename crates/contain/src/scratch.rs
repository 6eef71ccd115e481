//! Temporary folders that may hold secrets: only their owner can read them, and Proctor removes
//! them.
//!
//! The main type is [`Scratch`]. A killed process can't remove its folders, so the next one does
//! ([`sweep`]), except for those that were kept on purpose. A folder is in use as long as a process holds its lock. The system releases the
//! lock when the process dies for any reason, and unlike a pid, a lock can't be mistaken for one of
//! another process.

use std::fs::{self, DirBuilder, File, Metadata, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::geteuid;

/// The prefix of all these folders' names.
const PREFIX: &str = "proctor-scratch-";

/// The file in a folder that its process keeps locked.
const LOCK: &str = "lock";

/// How often to retry removing a folder that another process still writes to.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(200);

/// A folder that only its owner can read. Dropping it removes the folder.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Whether the folder was removed, or is left in place.
    is_over: bool,
    /// Held until the folder is removed.
    lock: File,
}

impl Scratch {
    pub fn new() -> io::Result<Self> {
        Self::new_in(&tempfile::env::temp_dir())
    }

    /// A folder in `parent`, for content that is moved out of it when it is complete.
    pub fn new_in(parent: &Path) -> io::Result<Self> {
        // Programs compare the path that they are given with the one that they find.
        let root = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent.canonicalize()?)?;
        // A sweep looks for the final name, which never names an unlocked file.
        let unlocked = root.path().join("lock.new");
        let lock = File::create_new(&unlocked)?;
        lock.lock()?;
        fs::rename(&unlocked, root.path().join(LOCK))?;
        Ok(Self {
            path: root.keep(),
            is_over: false,
            lock,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a subfolder for the owner only.
    pub fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }

    /// Removes this subfolder. Returns whether it was empty, and the folder holds nothing else: then it can be used again,
    /// with a subfolder of another name. What still knows the old one can't write into that.
    ///
    /// On ext4, to remove folders and to create others takes more time the more were removed in the last minutes.
    pub fn clear(&self, name: impl AsRef<Path>) -> bool {
        let was_empty = fs::remove_dir(self.path.join(name)).is_ok();
        let holds_lock_only = || {
            let entries = fs::read_dir(&self.path);
            entries.is_ok_and(|mut entries| entries.next().is_some() && entries.next().is_none())
        };
        was_empty && holds_lock_only() && self.holds_own_lock() && is_own_folder(&self.path)
    }

    /// Whether the lock in the folder is the one that this process holds, so that no other process removes the folder.
    fn holds_own_lock(&self) -> bool {
        let there = fs::symlink_metadata(self.path.join(LOCK));
        let identity = |file: &Metadata| (file.dev(), file.ino());
        there
            .and_then(|there| Ok(identity(&there) == identity(&self.lock.metadata()?)))
            .unwrap_or(false)
    }

    /// Removes all files in the folder. Fails if it holds a folder.
    fn remove_files(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name() != LOCK {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Removes the folder, with everything in it. The error says why a part of it is left.
    pub fn remove(mut self) -> io::Result<()> {
        self.is_over = true;
        remove(&self.path)
    }

    /// Leaves the folder in place for the user. No later run removes it.
    pub fn keep(mut self) -> io::Result<()> {
        self.is_over = true;
        fs::remove_file(self.path.join(LOCK))
    }
}

/// Folders that were used and are empty again, so that few have to be created. Dropping it removes them.
#[derive(Debug, Default)]
pub struct ScratchPool(Mutex<Vec<Scratch>>);

impl ScratchPool {
    /// An empty folder.
    pub fn open(&self) -> io::Result<Scratch> {
        let spare = self.lock().pop();
        spare.map_or_else(Scratch::new, Ok)
    }

    /// Takes a folder that is no longer used, and removes the files in it. A folder that holds anything else is removed.
    pub fn close(&self, scratch: Scratch) {
        if scratch.remove_files().is_ok() && is_own_folder(&scratch.path) {
            self.lock().push(scratch);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Scratch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_over {
            // The next run tries again.
            let _ = remove(&self.path);
        }
    }
}

/// Removes the folders that killed processes have left. Keeps those that can't be removed or may be
/// in use.
pub fn sweep() {
    sweep_in(&tempfile::env::temp_dir());
}

/// [`sweep`] for the folders in `parent`.
pub fn sweep_in(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && is_own_folder(&entry.path())
            && let Some(_lock) = abandoned(&entry.path())
        {
            // Keeps it locked meanwhile, so that no other sweep removes it too.
            let _ = remove_all(&entry.path());
        }
    }
}

/// Whether the path is a folder, not a link, that belongs to this user only.
fn is_own_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| {
        found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o777 == 0o700
    })
}

/// The lock of a folder whose process is dead; `None` if the process lives or has not taken its
/// lock yet.
fn abandoned(folder: &Path) -> Option<File> {
    let lock = folder.join(LOCK);
    let is_file = fs::symlink_metadata(&lock).is_ok_and(|found| found.is_file());
    let lock = File::open(lock).ok().filter(|_| is_file)?;
    match lock.try_lock() {
        Ok(()) => Some(lock),
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => None,
    }
}

/// Removes a folder. Retries, since processes that were just ended may still write there.
fn remove(root: &Path) -> io::Result<()> {
    let mut removed = remove_all(root);
    for _ in 0..ATTEMPTS {
        match &removed {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                std::thread::sleep(PAUSE);
                removed = remove_all(root);
            }
            _ => break,
        }
    }
    removed
}

/// Removes a folder even if folders in it can't be read or written. Follows no link.
fn remove_all(root: &Path) -> io::Result<()> {
    let removed = match fs::remove_dir_all(root) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_folders(root);
            fs::remove_dir_all(root)
        }
        removed => removed,
    };
    removed.or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

/// Gives the owner all rights to a folder and the folders in it. What can't be changed is left.
fn open_folders(root: &Path) {
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        // The type of an entry is that of a link, not of its target.
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.extend(inner.map(|entry| entry.path()));
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
        scratch.is_over = true;
        fs::write(scratch.path.join("key"), "secret").unwrap();
        scratch.path.clone()
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
    fn folders_of_dead_processes_are_swept_and_others_stay() {
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
    fn a_kept_folder_stays_and_is_never_swept() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new_in(parent.path()).unwrap();
        let path = scratch.folder("trial").unwrap();
        fs::write(path.join("note"), "x").unwrap();
        scratch.keep().unwrap();
        sweep_in(parent.path());
        assert!(path.join("note").exists());
    }

    #[test]
    fn a_cleared_folder_keeps_its_lock_and_gets_another_subfolder() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new_in(parent.path()).unwrap();
        let held = File::open(scratch.folder("one").unwrap()).unwrap();
        assert!(scratch.clear("one"));
        let new = scratch.folder("two").unwrap();
        // Whoever has the old one open still can't make anything in the new one.
        let (old, new) = (held.metadata().unwrap(), fs::metadata(new).unwrap());
        assert_eq!((old.nlink(), new.mode() & 0o777), (0, 0o700));
        sweep_in(parent.path());
        assert!(scratch.path().join("two").exists());
        drop(scratch);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_was_changed_is_not_clear() {
        let parent = tempfile::tempdir().unwrap();
        let changes: [fn(&Path); 6] = [
            |trial| fs::write(trial.join("note"), "x").unwrap(),
            |trial| fs::create_dir(trial.join("folder")).unwrap(),
            |trial| symlink("..", trial.join("link")).unwrap(),
            |trial| fs::write(trial.with_file_name("beside"), "x").unwrap(),
            |trial| fs::remove_dir(trial).unwrap(),
            |trial| {
                fs::remove_dir(trial).unwrap();
                symlink(std::env::temp_dir(), trial).unwrap();
            },
        ];
        for change in changes {
            let scratch = Scratch::new_in(parent.path()).unwrap();
            change(&scratch.folder("trial").unwrap());
            let before = scratch.path().to_owned();
            assert!(!scratch.clear("trial"));
            // It is still in use, so no sweep takes it.
            sweep_in(parent.path());
            assert!(before.exists());
            scratch.remove().unwrap();
            assert!(!before.exists());
        }
    }

    #[test]
    fn a_pool_opens_only_empty_folders() {
        let pool = ScratchPool::default();
        let check = |change: fn(&Path), is_kept: bool| {
            let used = pool.open().unwrap();
            let path = used.path().to_owned();
            change(&path);
            pool.close(used);
            let next = pool.open().unwrap();
            assert_eq!(next.path() == path, is_kept);
            let names = fs::read_dir(next.path()).unwrap().flatten();
            let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
            assert_eq!(names, [LOCK]);
            assert!(is_kept || !path.exists());
        };
        check(|_| {}, true);
        check(|path| fs::write(path.join("script"), "x").unwrap(), true);
        check(|path| symlink("/", path.join("link")).unwrap(), true);
        check(|path| fs::create_dir(path.join("folder")).unwrap(), false);
        check(
            |path| fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap(),
            false,
        );
    }

    #[test]
    fn folders_without_permissions_are_removed_and_targets_of_links_stay() {
        let parent = tempfile::tempdir().unwrap();
        let outside = parent.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("note"), "x").unwrap();
        fs::set_permissions(&outside, Permissions::from_mode(0o500)).unwrap();
        let scratch = Scratch::new_in(parent.path()).unwrap();
        let path = scratch.path().to_owned();
        let closed = scratch.folder("closed").unwrap();
        fs::write(closed.join("note"), "x").unwrap();
        symlink(&outside, closed.join("link")).unwrap();
        symlink("..", closed.join("up")).unwrap();
        fs::set_permissions(closed.join("note"), Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o0)).unwrap();
        // As root, which needs no permission, this is what the first attempt leaves to do.
        open_folders(&path);
        assert_eq!(fs::metadata(&closed).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&closed, Permissions::from_mode(0o0)).unwrap();
        scratch.remove().unwrap();
        assert!(!path.exists());
        assert!(outside.join("note").exists());
        assert_eq!(fs::metadata(&outside).unwrap().mode() & 0o777, 0o500);
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
