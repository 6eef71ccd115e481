//! The program that runs as the guard.
//!
//! Every process under test is started by its own guard, so the guard must start fast. `proctor`
//! itself can be the guard, but it is a large program that the system has to load each time. A
//! small program beside it does the same, and is used if it was built from the same sources.

use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use memchr::memmem;

use crate::os;

/// The name of the small program, which lies beside the `proctor` binary.
const PROGRAM: &str = "proctor-guard";

/// Identifies the sources of the guard. The small program contains it, and prints it as its version.
pub const BUILD: &str = match std::str::from_utf8(&LABEL) {
    Ok(label) => label,
    Err(_) => panic!("the label is ASCII"),
};

const SOURCES: [&[u8]; 13] = [
    include_bytes!("../guard.rs"),
    include_bytes!("host.rs"),
    include_bytes!("order.rs"),
    include_bytes!("program.rs"),
    include_bytes!("report.rs"),
    include_bytes!("signals.rs"),
    include_bytes!("watch.rs"),
    include_bytes!("../os.rs"),
    include_bytes!("../os/descendants.rs"),
    include_bytes!("../os/linux.rs"),
    include_bytes!("../os/linux/processes.rs"),
    include_bytes!("../os/posix.rs"),
    include_bytes!("../os/posix/processes.rs"),
];

const PREFIX: &[u8] = b"proctor-guard build ";

const LABEL: [u8; PREFIX.len() + 16] = label();

/// The prefix and the hash of the sources in hexadecimal digits.
const fn label() -> [u8; PREFIX.len() + 16] {
    let mut label = [0; PREFIX.len() + 16];
    let mut at = 0;
    while at < PREFIX.len() {
        label[at] = PREFIX[at];
        at += 1;
    }
    let mut hash = hash();
    while at < label.len() {
        label[at] = b"0123456789abcdef"[(hash >> 60) as usize];
        hash <<= 4;
        at += 1;
    }
    label
}

/// The 64-bit FNV-1a hash of the sources.
const fn hash() -> u64 {
    // Which of the sources are used differs by build, and this with it.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325 ^ os::LOOK_AGAIN.is_some() as u64;
    let mut source = 0;
    while source < SOURCES.len() {
        let mut at = 0;
        while at < SOURCES[source].len() {
            hash = (hash ^ SOURCES[source][at] as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        source += 1;
    }
    hash
}

/// The program to start as the guard: the small one, or else `proctor` itself.
pub(crate) fn program(proctor: &Path) -> PathBuf {
    // Looked for once, since every start needs it.
    static FOUND: Mutex<Option<(PathBuf, PathBuf)>> = Mutex::new(None);
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, program)) = &*found
        && of == proctor
    {
        return program.clone();
    }
    let program = find(proctor).unwrap_or_else(|| proctor.to_owned());
    *found = Some((proctor.to_owned(), program.clone()));
    program
}

fn find(proctor: &Path) -> Option<PathBuf> {
    match guard_beside(proctor) {
        GuardProgram::SameBuild(program) => Some(program),
        GuardProgram::OtherBuild(_) | GuardProgram::Absent(_) => None,
    }
}

/// The small program beside a `proctor` binary, by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardProgram {
    /// It is of the same sources as this process, and is used.
    SameBuild(PathBuf),
    OtherBuild(PathBuf),
    Absent(PathBuf),
}

/// Looks for the small program beside the binary, wherever links to the binary are.
pub fn guard_beside(proctor: &Path) -> GuardProgram {
    let file = format!("{PROGRAM}{EXE_SUFFIX}");
    let proctor = proctor.canonicalize().unwrap_or(proctor.to_owned());
    let program = proctor.with_file_name(file);
    // It is read and not asked: a program of another origin could do anything.
    match fs::read(&program) {
        Ok(content) if memmem::find(&content, BUILD.as_bytes()).is_some() => {
            GuardProgram::SameBuild(program)
        }
        Ok(_) => GuardProgram::OtherBuild(program),
        Err(_) => GuardProgram::Absent(program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_of_the_same_build_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let proctor = folder.path().join("proctor");
        fs::write(&proctor, "").unwrap();
        assert_eq!(find(&proctor), None);
        let guard = folder.path().join("proctor-guard");
        let other = BUILD.replace(|digit: char| digit.is_ascii_digit(), "x");
        fs::write(&guard, format!("ELF {other} ")).unwrap();
        assert_eq!(find(&proctor), None);
        fs::write(&guard, format!("ELF {BUILD} ")).unwrap();
        let found = find(&proctor).unwrap();
        assert_eq!(found, guard.canonicalize().unwrap());
        // A link to the binary leads to the folder of the binary.
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("proctor");
        std::os::unix::fs::symlink(&proctor, &link).unwrap();
        assert_eq!(find(&link), Some(found));
    }
}
