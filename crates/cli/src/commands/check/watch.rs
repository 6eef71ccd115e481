//! `proctor check --watch`: runs a suite again whenever one of its files changes.
//!
//! Its main type is [`Snapshot`]. Files are polled, which works on every file system and in containers. A
//! run may write files beside its suite, so changes during a run count only for files that belong to the
//! suite for sure.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use proctor_core::printable::printable;
use proctor_core::suite::find::SKIPPED_FOLDERS;
use proctor_record::hint::counted;
use proctor_record::problem::Problems;
use tokio::runtime::Builder;

use super::run_once;
use crate::args::CheckArgs;
use crate::commands::known_secrets;
use crate::commands::stops::StopSignals;
use crate::exit::{Exit, ReportedExit};
use crate::output;

/// The interval between two looks at the files.
const INTERVAL: Duration = Duration::from_millis(300);

/// The maximum number of watched files.
const MOST: usize = 10_000;

/// Runs the suite, then again after each change, until Ctrl-C.
pub(super) fn run(args: &CheckArgs) -> anyhow::Result<Exit> {
    let stops = listen()?;
    let watched = WatchedFiles::new(args);
    let mut seen = watched.look();
    loop {
        let exit = match run_once(args) {
            Ok(exit) => exit,
            // A mistake in a file is mended in that file, so watching goes on.
            Err(error) => {
                if let Some(ReportedExit(exit)) = error.downcast_ref() {
                    *exit
                } else {
                    output::error(&error, &known_secrets());
                    Exit::Usage
                }
            }
        };
        if exit == Exit::Interrupted || stops.try_recv().is_ok() {
            return Ok(Exit::Interrupted);
        }
        let now = watched.look();
        let mut changed = seen.suite_changes(&now);
        seen = now;
        if changed.is_empty() {
            let files = counted(seen.files.len(), "file");
            let code = exit.code();
            output::message(&format!(
                "exit code {code}; watching {files}, Ctrl-C ends it\n"
            ))?;
            match wait(&watched, &seen, &stops) {
                Some((paths, now)) => {
                    changed = paths;
                    seen = now;
                }
                None => return Ok(Exit::Interrupted),
            }
        }
        let shown: Vec<String> = changed.iter().take(3).map(|path| shown(path)).collect();
        let more = match changed.len().saturating_sub(3) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        output::message(&format!("\nchanged: {}{more}\n", shown.join(", ")))?;
    }
}

fn shown(path: &Path) -> String {
    format!("`{}`", printable(&path.display().to_string()))
}

/// Waits until files have changed and then stayed the same for one interval; `None` if Ctrl-C came first.
fn wait(
    watched: &WatchedFiles,
    seen: &Snapshot,
    stops: &Receiver<()>,
) -> Option<(Vec<PathBuf>, Snapshot)> {
    let mut last: Option<Snapshot> = None;
    loop {
        match stops.recv_timeout(INTERVAL) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return None,
        }
        let now = watched.look();
        let changed = seen.changes(&now);
        // An editor may write a file in several steps, and a checkout writes many files.
        if !changed.is_empty() && last.as_ref() == Some(&now) {
            return Some((changed, now));
        }
        last = Some(now);
    }
}

/// Listens for Ctrl-C, SIGTERM and SIGHUP from now on, also between runs, which have their own handlers.
fn listen() -> anyhow::Result<Receiver<()>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut stops = {
        let _inside = runtime.enter();
        StopSignals::listen().context("can't listen for signals")?
    };
    let (to, heard) = channel();
    std::thread::Builder::new()
        .name("watch".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                loop {
                    stops.next().await;
                    if to.send(()).is_err() {
                        return;
                    }
                }
            });
        })?;
    Ok(heard)
}

/// The files and folders of a suite.
struct WatchedFiles {
    /// Files that the command line names.
    named: Vec<PathBuf>,
    /// The folders of the eval files.
    folders: Vec<PathBuf>,
}

/// The state of all watched files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Snapshot {
    files: BTreeMap<PathBuf, FileStamp>,
}

/// What changes when a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    modified: Option<SystemTime>,
    bytes: u64,
    /// Whether the file belongs to the suite for sure.
    is_of_suite: bool,
}

impl WatchedFiles {
    fn new(args: &CheckArgs) -> Self {
        let models = [&args.model, &args.judge].into_iter().flatten();
        let models = models.filter_map(|model| model.strip_prefix("scripted:"));
        let agents = args.agents.iter().map(|agent| match agent.split_once('=') {
            Some((agent, _)) => agent,
            None => agent,
        });
        let named = models.chain(agents).map(PathBuf::from);
        let config = args.loading.mcp_config_file.iter().cloned();
        let files = args.files.iter().filter(|path| !path.is_dir()).cloned();
        let profiles = args.profile.as_ref();
        let profiles =
            profiles.and_then(|_| super::profile::find(&args.files, &mut Problems::default()));
        Self {
            named: named.chain(config).chain(files).chain(profiles).collect(),
            folders: args.files.iter().map(|path| folder_of(path)).collect(),
        }
    }

    fn look(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for folder in &self.folders {
            snapshot.visit(folder);
        }
        for path in &self.named {
            snapshot.add(path.clone(), true);
        }
        snapshot
    }
}

/// The folder to watch for an eval file, or for a folder with eval files.
pub(super) fn folder_of(path: &Path) -> PathBuf {
    let folder = if path.is_dir() {
        Some(path)
    } else {
        path.parent()
    };
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

impl Snapshot {
    /// Adds the files below a folder, without hidden ones.
    fn visit(&mut self, folder: &Path) {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            // A folder that can't be read has no files that a suite could use.
            let Ok(entries) = fs::read_dir(&folder) else {
                continue;
            };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if name.starts_with('.') || SKIPPED_FOLDERS.contains(&&*name) {
                    continue;
                }
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if self.files.len() < MOST {
                    let path = entry.path();
                    let path = path.strip_prefix(".").unwrap_or(&path).to_owned();
                    let is_yaml = path
                        .extension()
                        .is_some_and(|ending| ending == "yaml" || ending == "yml");
                    self.add(path, is_yaml);
                }
            }
        }
    }

    fn add(&mut self, path: PathBuf, is_of_suite: bool) {
        // A missing file is noticed when it appears.
        let Ok(metadata) = fs::metadata(&path) else {
            return;
        };
        if metadata.is_file() {
            let stamp = FileStamp {
                modified: metadata.modified().ok(),
                bytes: metadata.len(),
                is_of_suite,
            };
            self.files.insert(path, stamp);
        }
    }

    /// The files that were written, added or removed since.
    fn changes(&self, now: &Self) -> Vec<PathBuf> {
        let gone = self
            .files
            .keys()
            .filter(|path| !now.files.contains_key(*path));
        let written = now.files.iter();
        let written = written.filter(|(path, stamp)| self.files.get(*path) != Some(*stamp));
        let written = written.map(|(path, _)| path);
        gone.chain(written).cloned().collect()
    }

    /// The same for files that belong to the suite for sure.
    fn suite_changes(&self, now: &Self) -> Vec<PathBuf> {
        let is_of_suite = |path: &PathBuf| {
            let stamps = [self.files.get(path), now.files.get(path)];
            stamps.into_iter().flatten().any(|stamp| stamp.is_of_suite)
        };
        let changed = self.changes(now).into_iter();
        changed.filter(|path| is_of_suite(path)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_noticed_and_hidden_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let look = || {
            let mut snapshot = Snapshot::default();
            snapshot.visit(folder.path());
            snapshot
        };
        fs::create_dir_all(at("tasks")).unwrap();
        fs::create_dir_all(at(".proctor")).unwrap();
        fs::write(at("eval.yaml"), "a").unwrap();
        fs::write(at("prompt.md"), "a").unwrap();
        let before = look();
        fs::write(at(".proctor/run"), "a").unwrap();
        assert_eq!(before.changes(&look()), Vec::<PathBuf>::new());
        fs::write(at("tasks/a.yaml"), "a").unwrap();
        fs::write(at("prompt.md"), "longer").unwrap();
        let now = look();
        assert_eq!(before.changes(&now), [at("prompt.md"), at("tasks/a.yaml")]);
        assert_eq!(before.suite_changes(&now), [at("tasks/a.yaml")]);
        fs::remove_file(at("eval.yaml")).unwrap();
        assert_eq!(now.changes(&look()), [at("eval.yaml")]);
        assert_eq!(now.suite_changes(&look()), [at("eval.yaml")]);
    }
}
