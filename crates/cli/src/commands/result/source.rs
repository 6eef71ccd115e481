//! Opens the run that the user named, whatever holds it: a folder, a pack, a result file, or a store.
//!
//! The main type is [`RunSource`]. A pack is unpacked, and a result file imported, into a private folder that
//! lives as long as the source. So all commands read records, and nothing else.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::Context;
use proctor_contain::scratch::{self, Scratch};
use proctor_core::gate::Gate;
use proctor_core::import;
use proctor_core::pack::{self, PackLimits};
use proctor_core::runs::{self, NamedRun};
use proctor_core::summary::Summary;
use proctor_record::event::RunStarted;
use proctor_record::record::RunReader;
use proctor_report::Report;
use proctor_run::engine::runs::RUNS;

use super::super::{engine, known_secrets, store};

/// A run that is open for reading.
pub(in crate::commands) struct RunSource {
    run: RunReader,
    /// The path that reports show: a private folder means nothing to the user.
    shown: PathBuf,
    /// The folder of a copy, which is removed with the source.
    scratch: Option<Scratch>,
}

impl RunSource {
    pub(in crate::commands) fn run(&self) -> &RunReader {
        &self.run
    }

    /// Whether the run is a temporary copy of a file.
    pub(in crate::commands) fn is_copy(&self) -> bool {
        self.scratch.is_some()
    }

    /// The path that reports show.
    pub(in crate::commands) fn shown(&self) -> &Path {
        &self.shown
    }

    /// The shortest name by which a command in the working directory finds the run.
    pub(in crate::commands) fn name(&self) -> String {
        let name = self.shown.strip_prefix(RUNS).unwrap_or(&self.shown);
        name.display().to_string()
    }

    /// Whether both are the same run, also if one of them is a pack of the other, or both are merged from the same
    /// shards by two commands.
    pub(in crate::commands) fn is_same(&self, other: &Self) -> bool {
        let path = |source: &Self| source.shown.canonicalize().ok();
        let start = |source: &Self| {
            let RunStarted { started, name, .. } = source.run.started();
            (started.clone(), name.clone())
        };
        path(self) == path(other) || start(self) == start(other)
    }

    /// The report of the run, which names the path that the user gave.
    pub(in crate::commands) fn report<'a>(
        &'a self,
        summary: &'a Summary,
        gate: &'a Gate,
    ) -> Report<'a> {
        let report = Report::new(&self.run, summary, gate);
        Report {
            folder: &self.shown,
            // A copy can't be resumed.
            resumable: report.resumable && !self.is_copy(),
            ..report
        }
    }
}

/// Opens the run that the user named.
pub(in crate::commands) fn open(run: &Path) -> anyhow::Result<RunSource> {
    if let Some(url) = store::url(run) {
        let shards = store::fetch(url)?;
        return copied(run.to_owned(), |_, folder| {
            engine()?.merge(&shards, Some(folder))?;
            Ok(url.rsplit('/').next().map(str::to_owned))
        });
    }
    match runs::find(Path::new(RUNS), run)? {
        NamedRun::Folder(folder) => Ok(RunSource {
            run: RunReader::open(&folder)?,
            shown: folder,
            scratch: None,
        }),
        NamedRun::Pack(file) => copied(file, |file, folder| {
            let input = File::open(file)?;
            Ok(pack::unpack(
                BufReader::new(input),
                folder,
                PackLimits::default(),
            )?)
        }),
        NamedRun::ResultFile(file) => copied(file, |file, folder| {
            import::import(file, folder, known_secrets())?;
            Ok(None)
        }),
    }
}

/// A run that is copied from a file into a private folder. `copy` returns the run's name, if the file has it.
fn copied(
    file: PathBuf,
    copy: impl FnOnce(&Path, &Path) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<RunSource> {
    scratch::sweep();
    let scratch = Scratch::new().context("can't create a temporary folder")?;
    let folder = scratch.folder("copy")?;
    let name = copy(&file, &folder).with_context(|| format!("can't open `{}`", file.display()))?;
    // Reports name a run by its folder. The scratch folder has files of its own.
    let parent = scratch.folder("run")?;
    let named = parent.join(name.unwrap_or_else(|| stem(&file)));
    fs::rename(&folder, &named).context("can't name the temporary folder")?;
    Ok(RunSource {
        run: RunReader::open(&named)?,
        shown: file,
        scratch: Some(scratch),
    })
}

/// The name of the run in a file that does not name it: that of the file without its extensions.
fn stem(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let extensions = [".tar.gz", ".tgz", ".json"];
    let stem = extensions.iter().find_map(|end| name.strip_suffix(end));
    match stem.unwrap_or(&name) {
        "" => "run".to_owned(),
        stem => stem.to_owned(),
    }
}
