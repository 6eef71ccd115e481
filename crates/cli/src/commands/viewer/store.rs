//! The runs that are served.
//!
//! The main type is [`RunStore`]. The name of a run in a request is only compared with the names that exist; it never
//! becomes a part of a path.

use std::path::{Path, PathBuf};

use anyhow::bail;
use proctor_core::runs::{self, RunEntry, RunNameError};
use proctor_record::record::RunReader;
use proctor_run::engine::runs::RUNS;

use crate::commands::result::source::{self, RunSource};

/// The runs that are served, and the one that is shown first.
pub(super) struct RunStore {
    content: StoreContent,
    /// The name of the run that the user named; `None` for a folder of runs.
    start: Option<String>,
}

enum StoreContent {
    /// All runs of a folder.
    Folder(PathBuf),
    /// A copy of a pack or a result file.
    Copy(Box<RunSource>),
}

impl RunStore {
    /// The runs that the user named.
    pub(super) fn open(named: Option<&Path>) -> anyhow::Result<Self> {
        let folder = match named {
            None => Some(Path::new(RUNS)),
            Some(path) => runs::is_store(path).then_some(path),
        };
        if let Some(folder) = folder {
            if runs::list(folder)?.is_empty() {
                bail!(
                    "`{}` contains no runs; `proctor check` creates one",
                    folder.display()
                );
            }
            return Ok(Self {
                content: StoreContent::Folder(folder.to_owned()),
                start: None,
            });
        }
        let source = source::open(named.unwrap_or(Path::new(runs::LATEST)))?;
        let folder = source.run().folder().to_owned();
        let name = folder.file_name().map(|name| name.to_string_lossy());
        let start = name.map(std::borrow::Cow::into_owned);
        let parent = folder.parent().map(|parent| match parent.as_os_str() {
            name if name.is_empty() => Path::new("."),
            _ => parent,
        });
        let content = match parent {
            // The runs beside a run are those that it can be compared with.
            Some(parent) if !source.is_copy() => StoreContent::Folder(parent.to_owned()),
            _ => StoreContent::Copy(Box::new(source)),
        };
        Ok(Self { content, start })
    }

    /// What the user named.
    pub(super) fn shown(&self) -> &Path {
        match &self.content {
            StoreContent::Folder(folder) => folder,
            StoreContent::Copy(source) => source.shown(),
        }
    }

    /// The name of the run to show first: the one that the user named, or else the newest.
    pub(super) fn start(&self) -> Option<&str> {
        self.start.as_deref()
    }

    /// All runs, newest first.
    pub(super) fn entries(&self) -> Result<Vec<RunEntry>, RunNameError> {
        match &self.content {
            StoreContent::Folder(folder) => runs::list(folder),
            StoreContent::Copy(source) => Ok(vec![RunEntry {
                name: self.start.clone().unwrap_or_default(),
                folder: source.run().folder().to_owned(),
                run: RunReader::open(source.run().folder()),
            }]),
        }
    }

    /// The folder of a run, and the path that its pages show; `None` if no run has this name.
    pub(super) fn find(&self, name: &str) -> Result<Option<(PathBuf, PathBuf)>, RunNameError> {
        match &self.content {
            StoreContent::Folder(folder) => {
                let found = runs::named(folder, name)?;
                Ok(found.map(|folder| (folder.clone(), folder)))
            }
            StoreContent::Copy(source) => {
                let is_meant = self.start.as_deref() == Some(name);
                let folder = source.run().folder().to_owned();
                Ok(is_meant.then(|| (folder, source.shown().to_owned())))
            }
        }
    }
}
