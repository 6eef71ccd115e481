//! The consent file on disk.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use proctor_core::evals::consent::Consents;
use proctor_core::problem::Problems;

use crate::commands::{drawn, tally};
use crate::exit::Exit;
use crate::output;

/// Reads the file; none is there before the first yes. Gives the exit code if what is wrong with it
/// was said.
pub(super) fn read(path: &Path) -> anyhow::Result<Result<Consents, Exit>> {
    if let Err(error) = path.symlink_metadata()
        && error.kind() == io::ErrorKind::NotFound
    {
        return Ok(Ok(Consents::default()));
    }
    let mut problems = Problems::default();
    if let Some(consents) = Consents::load(path, &mut problems) {
        return Ok(Ok(consents));
    }
    output::message(&drawn(&problems))?;
    let (path, tally) = (path.display(), tally(&problems));
    output::message(&format!("{path}: {tally}; nothing was called\n"))?;
    Ok(Err(Exit::Usage))
}

/// Writes the file whole, or not at all.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    // A link stays one: what it leads to is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = fs::File::create_new(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&beside, path));
    if moved.is_err() {
        // What is left of it is of no use to anybody.
        let _ = fs::remove_file(&beside);
    }
    moved
}
