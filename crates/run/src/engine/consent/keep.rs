//! The consent file on disk.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use proctor_core::evals::consent::Consents;
use proctor_record::problem::Problems;

use crate::engine::error::EngineError;
use crate::engine::host::{Host, HostNotice};

/// Reads the file; a missing file has no consent.
pub(super) fn read(path: &Path, host: &dyn Host) -> Result<Consents, EngineError> {
    if let Err(error) = path.symlink_metadata()
        && error.kind() == io::ErrorKind::NotFound
    {
        return Ok(Consents::default());
    }
    let mut problems = Problems::default();
    if let Some(consents) = Consents::load(path, &mut problems) {
        return Ok(consents);
    }
    host.notice(HostNotice::Problems(&problems));
    Err(EngineError::InvalidFile {
        file: path.to_owned(),
        problems: Box::new(problems),
    })
}

/// Writes the file atomically.
pub(in crate::engine) fn write(path: &Path, text: &str) -> io::Result<()> {
    // A symbolic link stays; its target is replaced.
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
        // The leftover file is useless.
        let _ = fs::remove_file(&beside);
    }
    moved
}
