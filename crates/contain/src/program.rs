//! Resolves the name of a program, so that a wrong name is an error before anything starts. Looks
//! only where the process itself would: in its folder and its `PATH`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use thiserror::Error;

/// Why a name could not be resolved to a program.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ProgramError {
    /// A bare name that is in no folder of `PATH`.
    #[error("program `{0}` was not found in PATH")]
    NotInPath(String),
    /// A path that does not exist.
    #[error("program `{0}` does not exist")]
    Missing(PathBuf),
    /// A file without execute permission, or not a file.
    #[error("program `{0}` is not executable")]
    NotExecutable(PathBuf),
}

/// Returns the absolute path of a program: a name with a slash is relative to `folder`, any other
/// name is looked up in `path`. Does not follow symbolic links, since programs look at their own
/// name.
pub fn resolve(
    program: &OsStr,
    folder: &Path,
    path: Option<&str>,
) -> Result<PathBuf, ProgramError> {
    if program.as_bytes().contains(&b'/') {
        let file = folder.join(program);
        return match rank(&file) {
            Rank::Executable => Ok(file),
            Rank::Other => Err(ProgramError::NotExecutable(file)),
            Rank::Absent => Err(ProgramError::Missing(file)),
        };
    }
    let mut other = None;
    // An empty entry means the current folder, and joining it gives that.
    for entry in path.into_iter().flat_map(|path| path.split(':')) {
        let file = folder.join(entry).join(program);
        match rank(&file) {
            Rank::Executable => return Ok(file),
            Rank::Other => other = other.or(Some(file)),
            Rank::Absent => {}
        }
    }
    Err(match other {
        Some(file) if !program.is_empty() => ProgramError::NotExecutable(file),
        _ => ProgramError::NotInPath(program.to_string_lossy().into_owned()),
    })
}

enum Rank {
    Executable,
    Other,
    Absent,
}

fn rank(file: &Path) -> Rank {
    match file.metadata() {
        Ok(found) if found.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok() => {
            Rank::Executable
        }
        Ok(_) => Rank::Other,
        Err(_) => Rank::Absent,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn programs_resolve_like_in_the_process_itself() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (name, mode) in [
            ("bin/tool", 0o755),
            ("old/tool", 0o644),
            ("old/data", 0o644),
        ] {
            let file = root.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        }
        let check = |program: &str, path: Option<&str>, expected: Result<&str, ProgramError>| {
            let found = resolve(OsStr::new(program), root, path);
            assert_eq!(
                found,
                expected.map(|file| root.join(file)),
                "{program} {path:?}"
            );
        };
        let missing = |name: &str| Err(ProgramError::Missing(root.join(name)));
        let unfit = |name: &str| Err(ProgramError::NotExecutable(root.join(name)));
        let unknown = |name: &str| Err(ProgramError::NotInPath(name.into()));
        check("bin/tool", None, Ok("bin/tool"));
        check("./bin/tool", None, Ok("./bin/tool"));
        check("./tool", Some("bin"), missing("./tool"));
        check("old/tool", None, unfit("old/tool"));
        check("old/", None, unfit("old/"));
        check("tool", Some("bin"), Ok("bin/tool"));
        check("tool", Some("nowhere:old:bin"), Ok("bin/tool"));
        check("data", Some("old:bin"), unfit("old/data"));
        check("tool", Some(""), unknown("tool"));
        check("tool", None, unknown("tool"));
        check("", Some("bin"), unknown(""));
    }
}
