//! The files that a run's result is written to, besides what is shown.
//!
//! Main types: [`Targets`] and [`Target`]. A file appears in one step; what is no file is written to, and
//! stays what it is. Whether that can be done is found out before anything is started.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use proctor_contain::os::is_system_path;
use proctor_report::ReportError;
use rustix::fs::{Access, access};

/// How many links may lead from one to the next, as for the system.
const LINKS: usize = 40;

/// What was asked for.
pub(in crate::commands) struct Targets {
    pub(in crate::commands) out: Option<Target>,
    pub(in crate::commands) junit: Option<Target>,
}

/// Something to write to.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) enum Target {
    /// A file, or a place for one, behind all links.
    File(PathBuf),
    /// Something else that takes bytes: a device, a pipe.
    Stream(PathBuf),
}

impl Targets {
    pub(in crate::commands) fn resolve(
        out: Option<&Path>,
        junit: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let open = |path: &Path| {
            let failed = || format!("can't write `{}`", path.display());
            Target::resolve(path).with_context(failed)
        };
        let targets = Self {
            out: out.map(open).transpose()?,
            junit: junit.map(open).transpose()?,
        };
        if targets.out.is_some() && targets.out == targets.junit {
            bail!("`--out` and `--junit` name the same file");
        }
        Ok(targets)
    }
}

impl Target {
    fn resolve(path: &Path) -> anyhow::Result<Self> {
        let path = std::path::absolute(path)?;
        match fs::metadata(&path) {
            Ok(is) if is.is_dir() => bail!("it is a folder"),
            Ok(is) if !is.is_file() || is_system_path(&path) => {
                access(&path, Access::WRITE_OK)?;
                Ok(Self::Stream(path))
            }
            Ok(_) => {
                access(&path, Access::WRITE_OK)?;
                Self::file(&fs::canonicalize(&path)?)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::file(&followed(path)?),
            Err(error) => Err(error.into()),
        }
    }

    /// A file in a folder that takes one.
    fn file(path: &Path) -> anyhow::Result<Self> {
        let folder = path.parent().context("it is no file")?;
        let folder = fs::canonicalize(folder)
            .with_context(|| format!("there is no folder `{}`", folder.display()))?;
        let path = folder.join(path.file_name().context("it is no file")?);
        // Rights are not all that may be in the way.
        let (_, temporary) = create_beside(&path)?;
        fs::remove_file(temporary)?;
        Ok(Self::File(path))
    }

    /// Writes all of it; whoever looks for a file finds all of it, or what was there before.
    pub(in crate::commands) fn write(
        &self,
        render: impl FnOnce(&mut dyn Write) -> Result<(), ReportError>,
    ) -> anyhow::Result<()> {
        let (Self::File(path) | Self::Stream(path)) = self;
        let written = match self {
            Self::File(path) => replace(path, render),
            Self::Stream(path) => OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(path)
                .map_err(ReportError::from)
                .and_then(|file| fill(file, render)),
        };
        written.with_context(|| format!("can't write `{}`", path.display()))
    }
}

fn replace(
    path: &Path,
    render: impl FnOnce(&mut dyn Write) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let (file, temporary) = create_beside(path)?;
    let written = fill(file, render).and_then(|()| Ok(fs::rename(&temporary, path)?));
    if written.is_err() {
        // What is left of it is of no use to anybody.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn fill(
    file: File,
    render: impl FnOnce(&mut dyn Write) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let mut out = BufWriter::new(file);
    render(&mut out)?;
    Ok(out.flush()?)
}

/// A new file in the folder of another, for its owner only: results may hold what servers said.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    // Processes in different containers may have the same number.
    let now = jiff::Timestamp::now().as_nanosecond();
    let temporary = path.with_file_name(format!(".proctor-{}-{now}", std::process::id()));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    Ok((file, temporary))
}

/// Where links that lead to nothing lead.
fn followed(mut path: PathBuf) -> anyhow::Result<PathBuf> {
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(&path).join(next),
            Err(_) => return Ok(path),
        }
    }
    bail!("too many links lead from one to the next")
}
