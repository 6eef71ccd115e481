//! Copies a workspace: files, folders and links with their modes, and nothing from outside it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Why a workspace was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("`{}` can't be read: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("the link `{}` leads outside the workspace, to `{}`", path.display(), target.display())]
    Outside { path: PathBuf, target: PathBuf },
    #[error("`{}` is not a file, a folder or a link", .0.display())]
    Special(PathBuf),
    #[error("`{}` contains the folder of the trial", .0.display())]
    Endless(PathBuf),
    #[error("`{}` can't be written: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("the trial ended before")]
    Stopped,
}

impl CopyError {
    /// Whether the workspace is the cause, not the place that it is copied to.
    pub(super) fn is_about_workspace(&self) -> bool {
        match self {
            Self::Read { .. } | Self::Outside { .. } | Self::Special(_) | Self::Endless(_) => true,
            Self::Write { .. } | Self::Stopped => false,
        }
    }
}

/// Copies the content of a folder into an empty one.
pub(super) fn copy(from: &Path, to: &Path, stop: &AtomicBool) -> Result<(), CopyError> {
    // Links are compared with it, so it has none.
    let root = fs::canonicalize(from).map_err(|error| read(from, error))?;
    if to.starts_with(&root) {
        return Err(CopyError::Endless(from.to_owned()));
    }
    // Modes are set at the end: a folder may be read-only.
    let mut folders = vec![(root.clone(), to.to_owned())];
    let mut next = 0;
    while let Some((from, to)) = folders.get(next).cloned() {
        next += 1;
        for entry in fs::read_dir(&from).map_err(|error| read(&from, error))? {
            if stop.load(Ordering::Relaxed) {
                return Err(CopyError::Stopped);
            }
            let entry = entry.map_err(|error| read(&from, error))?;
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type().map_err(|error| read(&from, error))?;
            if kind.is_dir() {
                fs::create_dir(&to).map_err(|error| write(&to, error))?;
                folders.push((from, to));
            } else if kind.is_symlink() {
                copy_link(&root, &from, &to)?;
            } else if kind.is_file() {
                copy_file(&from, &to)?;
            } else {
                return Err(CopyError::Special(from));
            }
        }
    }
    for (from, to) in folders.iter().rev() {
        let found = fs::metadata(from).map_err(|error| read(from, error))?;
        let mode = Permissions::from_mode(found.permissions().mode() & 0o777);
        fs::set_permissions(to, mode).map_err(|error| write(to, error))?;
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<(), CopyError> {
    let copied = fs::copy(from, to);
    copied
        .map(drop)
        .map_err(|error| match fs::File::open(from) {
            Ok(_) => write(to, error),
            Err(unreadable) => read(from, unreadable),
        })
}

fn copy_link(root: &Path, from: &Path, to: &Path) -> Result<(), CopyError> {
    let target = fs::read_link(from).map_err(|error| read(from, error))?;
    let folder = from.parent().unwrap_or(root);
    if !stays_inside(root, folder, &target) {
        let path = from.to_owned();
        return Err(CopyError::Outside { path, target });
    }
    symlink(&target, to).map_err(|error| write(to, error))
}

/// Whether no part of a link's target is outside the root. An absolute target names the original, not
/// the copy.
fn stays_inside(root: &Path, folder: &Path, target: &Path) -> bool {
    let mut at = folder.to_owned();
    let mut dangles = false;
    for component in target.components() {
        match component {
            Component::CurDir => {}
            // What is above a target that does not exist yet can't be known.
            Component::ParentDir if dangles => return false,
            Component::ParentDir => drop(at.pop()),
            Component::Normal(name) => {
                at.push(name);
                match fs::canonicalize(&at) {
                    Ok(real) => at = real,
                    Err(_) => dangles = true,
                }
            }
            Component::RootDir | Component::Prefix(_) => return false,
        }
        if !at.starts_with(root) {
            return false;
        }
    }
    true
}

fn read(path: &Path, error: io::Error) -> CopyError {
    let path = path.to_owned();
    CopyError::Read { path, error }
}

fn write(path: &Path, error: io::Error) -> CopyError {
    let path = path.to_owned();
    CopyError::Write { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        place: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            for folder in ["from/sub/deep", "to", "outside"] {
                fs::create_dir_all(place.path().join(folder)).unwrap();
            }
            fs::write(place.path().join("from/sub/a.txt"), "a").unwrap();
            Self { place }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.place.path().canonicalize().unwrap().join(name)
        }

        fn copy(&self) -> Result<(), CopyError> {
            copy(
                &self.path("from"),
                &self.path("to"),
                &AtomicBool::new(false),
            )
        }
    }

    #[test]
    fn files_folders_links_and_modes_are_copied() {
        let fixture = Fixture::new();
        let mode = |name: &str, mode: u32| {
            fs::set_permissions(fixture.path(name), Permissions::from_mode(mode)).unwrap();
        };
        symlink("sub/a.txt", fixture.path("from/link")).unwrap();
        symlink("../sub/deep", fixture.path("from/sub/up")).unwrap();
        symlink("later.txt", fixture.path("from/sub/dangling")).unwrap();
        mode("from/sub/a.txt", 0o751);
        mode("from/sub", 0o555);
        fixture.copy().unwrap();
        mode("from/sub", 0o755);
        let found = |name: &str| {
            fs::metadata(fixture.path(name))
                .unwrap()
                .permissions()
                .mode()
        };
        assert_eq!(found("to/sub") & 0o777, 0o555);
        assert_eq!(found("to/sub/a.txt") & 0o777, 0o751);
        mode("to/sub", 0o755);
        let target = |name: &str| fs::read_link(fixture.path(name)).unwrap();
        assert_eq!(target("to/link"), Path::new("sub/a.txt"));
        assert_eq!(target("to/sub/up"), Path::new("../sub/deep"));
        assert_eq!(target("to/sub/dangling"), Path::new("later.txt"));
        assert_eq!(fs::read_to_string(fixture.path("to/link")).unwrap(), "a");
    }

    #[test]
    fn a_link_that_leads_outside_is_refused() {
        let check = |links: &[(&str, &str)]| {
            let fixture = Fixture::new();
            for (name, target) in links {
                symlink(target, fixture.path("from").join(name)).unwrap();
            }
            let error = fixture.copy().unwrap_err();
            assert!(
                matches!(error, CopyError::Outside { .. }),
                "{links:?}: {error}"
            );
            assert!(error.is_about_workspace());
        };
        check(&[("l", "/etc/passwd")]);
        check(&[("l", "../outside")]);
        check(&[("sub/l", "../../outside/none")]);
        check(&[("l", "sub/../../from/sub")]);
        // A link to the root itself makes the path shorter than it looks.
        check(&[
            ("sub/deep/here", "../.."),
            ("l", "sub/deep/here/../outside"),
        ]);
        check(&[("sub/deep/none", "../../x"), ("l", "sub/deep/none/../../y")]);
    }

    #[test]
    fn special_files_and_missing_folders_are_refused() {
        let fixture = Fixture::new();
        let _socket = std::os::unix::net::UnixListener::bind(fixture.path("from/socket")).unwrap();
        assert!(matches!(fixture.copy(), Err(CopyError::Special(_))));
        fs::remove_dir_all(fixture.path("from")).unwrap();
        let error = fixture.copy().unwrap_err();
        assert!(error.is_about_workspace(), "{error}");
        assert!(error.to_string().contains("from"), "{error}");
    }

    #[test]
    fn a_workspace_that_contains_the_trial_is_refused() {
        let fixture = Fixture::new();
        let to = fixture.path("from/sub/deep");
        let copied = copy(&fixture.path("from"), &to, &AtomicBool::new(false));
        assert!(matches!(copied, Err(CopyError::Endless(_))));
    }
}
