//! Puts the program of a package into the cache.
//!
//! Its main function is [`write_program`].

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use proctor_contain::scratch::{Scratch, sweep_in};

use super::archive::PackedProgram;

/// Writes a program beside its folder, and moves the folder to its place.
pub(super) fn write_program(path: &Path, packed: &PackedProgram) -> io::Result<()> {
    let unplaced = || io::Error::other("it has no folder");
    let folder = path.parent().ok_or_else(unplaced)?;
    let all = folder.parent().ok_or_else(unplaced)?;
    fs::create_dir_all(all)?;
    sweep_in(all);
    let scratch = Scratch::new_in(all)?;
    let entry = scratch.folder("entry")?;
    let program = entry.join(path.file_name().unwrap_or_default());
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(packed.mode)
        .open(&program)?;
    file.write_all(&packed.content)?;
    file.set_permissions(Permissions::from_mode(packed.mode))?;
    file.sync_all()?;
    drop(file);
    if folder.exists() {
        // It has other content than its name says.
        fs::rename(folder, scratch.path().join("old"))?;
    }
    match fs::rename(&entry, folder) {
        // Another process was faster.
        Err(_) if path.is_file() => Ok(()),
        moved => moved,
    }
}
