//! The runs below a folder, and how people name one: by its folder, as `latest`, by part of its name, or by
//! a file that holds it.
//!
//! Main functions: [`find`], [`resolve`] and [`list`]. They read only the first line of each run, and the
//! first bytes of a file.

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use proctor_record::hint::{counted, listed, nearest};
use proctor_record::record::{RecordError, RunReader};

/// The word that names the newest run.
pub const LATEST: &str = "latest";

/// How many runs an error lists.
const LISTED: usize = 10;

/// A folder below the folder of runs.
#[derive(Debug)]
pub struct RunEntry {
    /// The name of the folder.
    pub name: String,
    pub folder: PathBuf,
    /// The run, or the reason why it can't be read.
    pub run: Result<RunReader, RecordError>,
}

/// What a text names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedRun {
    /// The folder of a run.
    Folder(PathBuf),
    /// A run in one file ([`crate::pack`]).
    Pack(PathBuf),
    /// A result file of another tool ([`crate::import`]).
    ResultFile(PathBuf),
}

/// Why a name does not lead to a run.
#[derive(Debug, thiserror::Error)]
pub enum RunNameError {
    /// Several runs have the text in their names.
    #[error(
        "`{text}` matches {}: {}{}; write more of the name",
        counted(candidates.len(), "run"),
        listed(candidates.iter().take(LISTED).map(String::as_str)),
        more(candidates.len())
    )]
    Ambiguous {
        text: String,
        /// The names of the runs, newest first.
        candidates: Vec<String>,
    },
    /// The text is neither a folder nor part of a run's name.
    #[error("run `{text}` not found: not a folder, and not part of a name in `{}`{}", runs.display(), suggestion(nearest.as_deref()))]
    NotFound {
        text: String,
        /// The folder of runs.
        runs: PathBuf,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// There is no run to choose from.
    #[error("run `{text}` not found: `{}` contains no runs; `proctor check` creates one", runs.display())]
    Empty {
        text: String,
        /// The folder of runs.
        runs: PathBuf,
    },
    /// The text names a file that holds a run, where a folder is needed.
    #[error("`{}` is a file: this command needs the folder of a run", path.display())]
    NotAFolder { path: PathBuf },
    /// The file holds no run.
    #[error(
        "`{}` is neither a packed run (`.tar.gz`) nor a result file (JSON)",
        path.display()
    )]
    UnknownFile { path: PathBuf },
    /// The folder of runs can't be listed.
    #[error("could not list `{}`", runs.display())]
    Io {
        /// The folder of runs.
        runs: PathBuf,
        #[source]
        source: io::Error,
    },
}

fn more(count: usize) -> String {
    match count.saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!("; did you mean `{name}`?"),
        None => "; `proctor result list` shows the runs".to_owned(),
    }
}

/// The runs below a folder, newest first. Unreadable ones come last; a folder that does not exist has none.
pub fn list(runs: &Path) -> Result<Vec<RunEntry>, RunNameError> {
    let failed = |source| RunNameError::Io {
        runs: runs.to_owned(),
        source,
    };
    let entries = match fs::read_dir(runs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let folder = entry.path();
        if folder.is_dir() {
            found.push(RunEntry {
                name: entry.file_name().to_string_lossy().into_owned(),
                run: RunReader::open(&folder),
                folder,
            });
        }
    }
    // Runs of the same moment are numbered by their names.
    found.sort_by(|a, b| (started(b), &b.name).cmp(&(started(a), &a.name)));
    Ok(found)
}

/// The folder below a folder of runs that has exactly this name. The name is compared, and never part of a path.
pub fn named(runs: &Path, name: &str) -> Result<Option<PathBuf>, RunNameError> {
    let failed = |source| RunNameError::Io {
        runs: runs.to_owned(),
        source,
    };
    for entry in fs::read_dir(runs).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy() == name && entry.path().is_dir() {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Whether a folder is the record of a run.
pub fn is_run(folder: &Path) -> bool {
    folder.join(proctor_record::record::RUN).is_file()
}

/// Whether a folder holds runs, and is not a run itself.
pub fn is_store(folder: &Path) -> bool {
    if is_run(folder) {
        return false;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| is_run(&entry.path()))
}

/// When the run started, as text that sorts: all times are UTC.
fn started(entry: &RunEntry) -> Option<&str> {
    let run = entry.run.as_ref().ok()?;
    // Without the `Z`, a whole second sorts before its fractions.
    Some(run.started().started.trim_end_matches('Z'))
}

/// The run that a text names: as [`resolve`], or a file that holds a run.
pub fn find(runs: &Path, text: &Path) -> Result<NamedRun, RunNameError> {
    let file = if text == Path::new(LATEST) {
        None
    } else {
        file_kind(text)
    };
    let named = match file {
        Some(FileKind::Gzip) => return Ok(NamedRun::Pack(text.to_owned())),
        Some(FileKind::Json) => return Ok(NamedRun::ResultFile(text.to_owned())),
        Some(FileKind::Other) | None => resolve(runs, text),
    };
    match named {
        Err(RunNameError::NotFound { .. } | RunNameError::Empty { .. }) if file.is_some() => {
            Err(RunNameError::UnknownFile {
                path: text.to_owned(),
            })
        }
        named => named.map(NamedRun::Folder),
    }
}

/// What the first bytes of a file show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    Gzip,
    Json,
    Other,
}

/// The kind of a file; `None` if it is not a regular file, or can't be read.
fn file_kind(path: &Path) -> Option<FileKind> {
    if !path.is_file() {
        return None;
    }
    let mut start = Vec::new();
    let opened = File::open(path);
    opened.ok()?.take(512).read_to_end(&mut start).ok()?;
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
    Some(match text.trim_ascii_start() {
        [0x1f, 0x8b, ..] => FileKind::Gzip,
        [b'{' | b'[', ..] => FileKind::Json,
        _ => FileKind::Other,
    })
}

/// The folder of the run that a text names: a run's folder, `latest`, or a unique part of a name in `runs`.
///
/// A name that equals the text wins over names that contain it.
pub fn resolve(runs: &Path, text: &Path) -> Result<PathBuf, RunNameError> {
    let name = text.to_string_lossy();
    let is_latest = name == LATEST;
    if !is_latest && text.join(proctor_record::record::RUN).is_file() {
        return Ok(text.to_owned());
    }
    let entries = list(runs)?;
    if is_latest {
        let newest = entries.into_iter().find(|entry| entry.run.is_ok());
        return newest
            .map(|entry| entry.folder)
            .ok_or_else(|| not_found(runs, &name, &[]));
    }
    if let Some(entry) = entries.iter().find(|entry| entry.name == name) {
        return Ok(entry.folder.clone());
    }
    let is_part = |entry: &&RunEntry| !name.is_empty() && entry.name.contains(&*name);
    let fitting: Vec<&RunEntry> = entries.iter().filter(is_part).collect();
    match fitting[..] {
        [entry] => Ok(entry.folder.clone()),
        // The error of the record says what the folder lacks.
        [] if text.is_dir() => Ok(text.to_owned()),
        [] if matches!(file_kind(text), Some(FileKind::Gzip | FileKind::Json)) => {
            Err(RunNameError::NotAFolder {
                path: text.to_owned(),
            })
        }
        [] => Err(not_found(runs, &name, &entries)),
        _ => Err(RunNameError::Ambiguous {
            text: name.into_owned(),
            candidates: fitting.iter().map(|entry| entry.name.clone()).collect(),
        }),
    }
}

fn not_found(runs: &Path, text: &str, entries: &[RunEntry]) -> RunNameError {
    let (text, runs) = (text.to_owned(), runs.to_owned());
    if entries.is_empty() {
        return RunNameError::Empty { text, runs };
    }
    let word = text.rsplit('/').next().unwrap_or(&text);
    let names = || entries.iter().map(|entry| entry.name.as_str());
    let near = nearest(word, names()).or_else(|| {
        let suite = nearest(word, names().map(suite_part))?;
        names().find(|name| suite_part(name) == suite)
    });
    RunNameError::NotFound {
        nearest: near.map(str::to_owned),
        text,
        runs,
    }
}

/// The part of a run's name that its suite gave it: `20261115-101500-my-suite` without the time.
fn suite_part(name: &str) -> &str {
    let rest = name.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
    if rest.is_empty() { name } else { rest }
}
