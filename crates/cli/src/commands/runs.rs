//! Where runs are kept, unless somebody says.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where runs are kept, unless somebody says.
pub(super) const RUNS: &str = ".proctor/runs";

/// Keeps runs out of the repository that they are made in, the first time that there are any. Where
/// that can't be written, runs are kept all the same, or say themselves why not.
pub(super) fn ignore() {
    let runs = Path::new(RUNS);
    let Some(folder) = runs.parent().filter(|_| !runs.exists()) else {
        return;
    };
    let mut new = OpenOptions::new();
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let _ = made
        .and_then(|()| {
            let ignore = folder.join(".gitignore");
            new.write(true).create_new(true).open(ignore)
        })
        .and_then(|mut file| file.write_all(b"*\n"));
}

/// Folders for a run, the best first: the time and a name, and then a number too.
pub(super) fn folders(runs: &Path, name: &str) -> impl Iterator<Item = PathBuf> + use<> {
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let word: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(40)
        .collect();
    let base = runs.join(format!("{time}-{word}"));
    let runs = runs.to_owned();
    let numbered = (2_u32..).map(move |number| runs.join(format!("{time}-{word}-{number}")));
    std::iter::once(base).chain(numbered)
}
