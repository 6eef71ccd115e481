//! Finding and reading the files that a suite names.
//!
//! Its main type is [`FileOrigin`]: the origin of a file decides which files it may name. A file
//! from another repository can only name files inside it; the user's own files may name any file.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use proctor_record::hint::nearest;
use proctor_record::problem::{Code, Problem, SourceText, Span, WithSpan};
use walkdir::WalkDir;

use crate::decode::Context;
use crate::document::MAX_BYTES;

/// The maximum number of files and folders that a glob visits.
const MAX_VISITED: usize = 1_000_000;

/// The first bytes of a file that stands for another one in Git LFS.
pub const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The origin of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOrigin {
    /// The user's own files.
    Own,
    Source {
        /// Its name in the suite.
        name: String,
        /// Its folder, without symbolic links.
        root: PathBuf,
    },
}

impl FileOrigin {
    /// Resolves the path `written` in a file of this origin in `folder`.
    pub fn resolve(&self, folder: &Path, written: &str) -> Result<PathBuf, Problem> {
        let path = normalise(&folder.join(written));
        match self {
            Self::Own => Ok(path),
            Self::Source { name, root } => {
                let outside = || escape(written, name);
                // Checked before any access to the disk: files outside must not be probed.
                if !path.starts_with(root) {
                    return Err(outside());
                }
                match fs::canonicalize(&path) {
                    Ok(real) if !real.starts_with(root) => Err(outside()),
                    // A missing file is reported when it is read.
                    _ => Ok(path),
                }
            }
        }
    }

    /// A message if the folder at which a glob starts does not exist.
    pub fn missing_folder(&self, folder: &Path, written: &str) -> Option<String> {
        let base = here(self.resolve(folder, split_glob(written).0).ok()?);
        (!base.is_dir()).then(|| format!("the folder `{}` does not exist", base.display()))
    }

    /// The files that a glob of this origin matches, in byte order of their paths.
    pub fn glob(&self, folder: &Path, written: &str) -> Result<Vec<PathBuf>, Problem> {
        let (base, pattern) = split_glob(written);
        let base = here(self.resolve(folder, base)?);
        let matcher = compile_glob(pattern)?;
        let mut found = Vec::new();
        let walk = WalkDir::new(&base).follow_links(true).min_depth(1);
        for (visited, entry) in walk.into_iter().enumerate() {
            if visited >= MAX_VISITED {
                return Err(Problem::error(
                    Code::Limit,
                    format!("the glob `{written}` visits more than {MAX_VISITED} files"),
                ));
            }
            // A loop of links or a folder without permission hides nothing that could be read.
            let Ok(entry) = entry else { continue };
            let Ok(relative) = entry.path().strip_prefix(&base) else {
                continue;
            };
            if entry.file_type().is_file() && matcher.is_match(relative) {
                if let Self::Source { name, root } = self {
                    let real = fs::canonicalize(entry.path()).unwrap_or_default();
                    if !real.starts_with(root) {
                        return Err(escape(&relative.to_string_lossy(), name));
                    }
                }
                found.push(normalise(entry.path()));
            }
        }
        found.sort_by(|a, b| {
            a.as_os_str()
                .as_encoded_bytes()
                .cmp(b.as_os_str().as_encoded_bytes())
        });
        Ok(found)
    }
}

/// The folder that a file names. Reports one that does not exist.
pub fn existing_folder(
    origin: &FileOrigin,
    written: &WithSpan<String>,
    cx: &Context<'_>,
) -> Option<PathBuf> {
    let path = match origin.resolve(cx.source.folder(), &written.value) {
        Ok(path) => here(path),
        Err(problem) => {
            cx.report(written.span, problem);
            return None;
        }
    };
    if !path.is_dir() {
        let message = format!("`{}` is not a folder", path.display());
        let problem = Problem::error(Code::File, message);
        cx.report(written.span, problem.maybe_hint(neighbour_hint(&path)));
    }
    Some(path)
}

fn escape(written: &str, name: &str) -> Problem {
    Problem::error(
        Code::Escape,
        format!("`{written}` is outside the source `{name}`"),
    )
    .hint("files from another repository can only name files inside it")
}

/// Reads a text file of bounded size.
pub fn read(path: &Path) -> Result<SourceText, Problem> {
    let shown = path.display();
    let fail = |message: String| Problem::error(Code::File, message).in_file(path);
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let hint = submodule_hint(path).or_else(|| neighbour_hint(path));
            fail(format!("`{shown}` does not exist")).maybe_hint(hint)
        }
        _ => fail(format!("`{shown}` can't be read: {error}")),
    })?;
    if metadata.is_dir() {
        return Err(fail(format!("`{shown}` is a folder, not a file")));
    }
    // A pipe or device would block or never end.
    if !metadata.is_file() {
        return Err(fail(format!("`{shown}` is not a regular file")));
    }
    let too_large = || {
        Problem::error(
            Code::Limit,
            format!("`{shown}` is larger than {} MiB", MAX_BYTES >> 20),
        )
        .in_file(path)
    };
    if metadata.len() > MAX_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| fail(format!("`{shown}` can't be read: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large());
    }
    if bytes.starts_with(LFS_POINTER) {
        let problem = fail(format!(
            "`{shown}` is a Git LFS pointer, not the file itself"
        ));
        return Err(problem.hint(
            "Proctor does not fetch files from Git LFS; for a source, pass your own checkout with `--source NAME=DIR`",
        ));
    }
    String::from_utf8(bytes)
        .map(|text| SourceText::new(path, text))
        .map_err(|error| not_utf8(path, error.as_bytes(), error.utf8_error().valid_up_to()))
}

fn not_utf8(path: &Path, bytes: &[u8], at: usize) -> Problem {
    let valid = String::from_utf8_lossy(&bytes[..at]);
    let line = valid.matches('\n').count() + 1;
    let column = valid.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    let span = Span {
        line: u32::try_from(line).unwrap_or(u32::MAX),
        column: u32::try_from(column).unwrap_or(u32::MAX),
        chars: 1,
    };
    let lossy = SourceText::new(path, String::from_utf8_lossy(bytes).into_owned());
    Problem::error(Code::Syntax, "the file is not UTF-8")
        .at(&lossy, span)
        .hint(format!("invalid byte 0x{:02X}", bytes[at]))
}

/// A hint, if a path leads into a submodule, which Proctor does not fetch.
pub fn submodule_hint(path: &Path) -> Option<String> {
    let listed = |root: &&Path| root.join(".gitmodules").is_file();
    let root = path.ancestors().skip(1).find(listed)?;
    let inside = path.strip_prefix(root).ok()?;
    let modules = read(&root.join(".gitmodules")).ok()?;
    let paths = modules.text().lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "path").then_some(value.trim())
    });
    let module = paths
        .into_iter()
        .find(|module| inside.starts_with(module))?;
    Some(format!(
        "`{module}` is a git submodule, which Proctor does not fetch; for a source, pass your own checkout with \
         `--source NAME=DIR`"
    ))
}

/// A suggestion: a similar name in the same folder.
pub fn neighbour_hint(path: &Path) -> Option<String> {
    let wanted = path.file_stem()?.to_str()?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(folder) else {
        return Some(format!("the folder `{}` does not exist", folder.display()));
    };
    // Endings are alike anyway, and would make any two short names look alike.
    let names: Vec<PathBuf> = entries
        .take(1_000)
        .filter_map(|e| Some(e.ok()?.path()))
        .collect();
    let stems = names.iter().filter_map(|name| name.file_stem()?.to_str());
    let near = nearest(wanted, stems)?;
    let name = names
        .iter()
        .find(|name| name.file_stem().is_some_and(|stem| stem == near))?;
    Some(format!("did you mean `{}`?", name.file_name()?.display()))
}

/// Replaces an empty path with `.`.
fn here(path: PathBuf) -> PathBuf {
    if path.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        path
    }
}

/// Splits a glob into the folder before its first wildcard and the rest.
fn split_glob(written: &str) -> (&str, &str) {
    let wild = written.find(['*', '?', '[', '{']).unwrap_or(written.len());
    match written[..wild].rfind('/') {
        Some(0) => ("/", &written[1..]),
        Some(at) => (&written[..at], &written[at + 1..]),
        None => ("", written),
    }
}

fn compile_glob(pattern: &str) -> Result<GlobMatcher, Problem> {
    GlobBuilder::new(pattern.strip_prefix("./").unwrap_or(pattern))
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| {
            let message = format!("invalid glob `{pattern}`: {}", error.kind());
            Problem::error(Code::Value, message)
        })
}

/// Removes `.` and `..` without access to the disk.
pub fn normalise(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match out.components().next_back() {
                Some(Component::Normal(_)) => {
                    out.pop();
                }
                Some(Component::RootDir) => {}
                _ => out.push(component),
            },
            _ => out.push(component),
        }
    }
    out
}

#[cfg(test)]
mod tests;
