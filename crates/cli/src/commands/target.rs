//! The files of `--out`, `--junit` and `--report`.
//!
//! Main types: [`Targets`] and [`Target`]. A file is replaced in one step; devices and pipes are written to
//! directly. Proctor checks that it can write before it starts anything.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use proctor_contain::os::is_system_path;
use proctor_report::ReportError;
use rustix::fs::{Access, access};

/// The maximum number of symbolic links to follow, as in the kernel.
const LINKS: usize = 40;

/// The targets that the flags name.
pub(in crate::commands) struct Targets {
    pub(in crate::commands) out: Option<Target>,
    pub(in crate::commands) junit: Option<Target>,
    pub(in crate::commands) report: Option<Target>,
}

/// A place to write a result to.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) enum Target {
    /// A file, new or existing, with all symbolic links resolved.
    File(PathBuf),
    /// A device or a pipe.
    Stream(PathBuf),
}

impl Targets {
    pub(in crate::commands) fn resolve(
        out: Option<&Path>,
        junit: Option<&Path>,
        report: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let targets = Self {
            out: out.map(Target::open).transpose()?,
            junit: junit.map(Target::open).transpose()?,
            report: report.map(Target::open).transpose()?,
        };
        for (one, other, names) in [
            (&targets.out, &targets.junit, "`--out` and `--junit`"),
            (&targets.out, &targets.report, "`--out` and `--report`"),
            (&targets.junit, &targets.report, "`--junit` and `--report`"),
        ] {
            if one.is_some() && one == other {
                bail!("{names} name the same file");
            }
        }
        Ok(targets)
    }
}

impl Target {
    /// The target of a path that the user named.
    pub(in crate::commands) fn open(path: &Path) -> anyhow::Result<Self> {
        let failed = || format!("can't write `{}`", path.display());
        Self::resolve(path).with_context(failed)
    }

    fn resolve(path: &Path) -> anyhow::Result<Self> {
        let path = std::path::absolute(path)?;
        match fs::metadata(&path) {
            Ok(is) if is.is_dir() => bail!("is a directory"),
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

    /// A file in a directory that Proctor can write to.
    fn file(path: &Path) -> anyhow::Result<Self> {
        let folder = path.parent().context("not a file path")?;
        let folder = fs::canonicalize(folder)
            .with_context(|| format!("directory `{}` does not exist", folder.display()))?;
        let path = folder.join(path.file_name().context("not a file path")?);
        // Permissions are not the only obstacle, so try it.
        let (_, temporary) = create_beside(&path)?;
        fs::remove_file(temporary)?;
        Ok(Self::File(path))
    }

    /// Writes the whole result; readers of a file see the new content or the old, never a part.
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
        // The partial file is useless.
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

/// Creates a temporary file beside another. Only its owner can read it: results contain server messages.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    // Processes in different containers may have the same id.
    let now = jiff::Timestamp::now().as_nanosecond();
    let temporary = path.with_file_name(format!(".proctor-{}-{now}", std::process::id()));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    Ok((file, temporary))
}

/// The target of a chain of symbolic links, which need not exist.
fn followed(mut path: PathBuf) -> anyhow::Result<PathBuf> {
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(&path).join(next),
            Err(_) => return Ok(path),
        }
    }
    bail!("too many levels of symbolic links")
}
