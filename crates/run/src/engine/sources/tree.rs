//! Writes the files of a commit to a folder.
//!
//! Its main function is [`write`]. git only lists and prints objects here, so neither a filter nor a hook nor an
//! attribute has an effect. Folders come first, then files, then links: so no file is written through a link of the
//! same commit, whatever the commit contains.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use proctor_core::printable::printable;
use proctor_core::suite::LFS_POINTER;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};

use super::git::{Git, GitError};

const MAX_FILES: usize = 100_000;
const MAX_FILE: u64 = 256 << 20;
const MAX_ALL: u64 = 1 << 30;
/// The maximum length of the target of a link, as on Linux.
const MAX_TARGET: u64 = 4096;

/// Why the files of a commit can't be written.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("git printed an unexpected list of files")]
    Malformed,
    #[error("it has more than {MAX_FILES} files")]
    TooMany,
    #[error("`{path}` is larger than {} MiB", MAX_FILE >> 20)]
    FileTooLarge { path: String },
    #[error("the target of the link `{0}` is longer than {MAX_TARGET} bytes")]
    LinkTooLong(String),
    #[error("its files are larger than {} MiB", MAX_ALL >> 20)]
    TooLarge,
    #[error("refused: the path `{0}` in the commit is not a path of a file")]
    Path(String),
    #[error("`{path}` can't be written: {error}")]
    Write { path: String, error: io::Error },
}

/// What a commit contains that was not written.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    pub(super) submodules: Vec<String>,
    /// Files whose content is in Git LFS.
    pub(super) pointers: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    File,
    Program,
    Link,
    Submodule,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    kind: EntryKind,
    object: String,
    size: u64,
    path: PathBuf,
}

impl Entry {
    fn shown(&self) -> String {
        printable(&self.path.to_string_lossy()).into_owned()
    }

    fn failed(&self, error: io::Error) -> TreeError {
        TreeError::Write {
            path: self.shown(),
            error,
        }
    }
}

/// Writes the files of a commit to a folder that is created.
pub(super) async fn write(git: &Git, commit: &str, root: &Path) -> Result<LeftOut, TreeError> {
    let words = ["ls-tree", "-r", "-l", "-z", "--full-tree", commit];
    let mut entries = parse(&git.run(&words, None).await?)?;
    entries.sort_by_key(|entry| entry.kind == EntryKind::Link);
    make_folders(root, &entries)?;
    let mut left_out = LeftOut::default();
    let (modules, entries): (Vec<Entry>, Vec<Entry>) = entries
        .into_iter()
        .partition(|entry| entry.kind == EntryKind::Submodule);
    left_out.submodules = modules.iter().map(Entry::shown).collect();

    let mut process = git.start(&["cat-file", "--batch", "--buffer"])?;
    let streams = (process.stdin.take(), process.stdout.take());
    let (Some(mut stdin), Some(stdout)) = streams else {
        return Err(TreeError::Malformed);
    };
    let mut objects = String::new();
    for entry in &entries {
        objects.push_str(&entry.object);
        objects.push('\n');
    }
    // git prints while it reads, and would block if it had to wait for us.
    let asking = async move { stdin.write_all(objects.as_bytes()).await };
    let reading = async {
        let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
        for entry in &entries {
            if copy(entry, root, &mut stdout).await? {
                left_out.pointers.push(entry.shown());
            }
        }
        Ok::<_, TreeError>(())
    };
    let (asked, read) = tokio::join!(asking, reading);
    read?;
    asked.map_err(GitError::Output)?;
    git.finish(process).await?;
    Ok(left_out)
}

/// Copies one object to its file. Returns whether it is a pointer of Git LFS.
async fn copy(
    entry: &Entry,
    root: &Path,
    from: &mut (impl AsyncRead + AsyncBufReadExt + Unpin),
) -> Result<bool, TreeError> {
    let mut head = String::new();
    let lost = |error: io::Error| TreeError::Git(GitError::Output(error));
    from.read_line(&mut head).await.map_err(lost)?;
    if head.trim_end() != format!("{} blob {}", entry.object, entry.size) {
        return Err(TreeError::Malformed);
    }
    let path = root.join(&entry.path);
    let mut content = from.take(entry.size);
    let mut start = Vec::new();
    if entry.kind == EntryKind::Link {
        content.read_to_end(&mut start).await.map_err(lost)?;
        symlink(OsStr::from_bytes(&start), &path).map_err(|error| entry.failed(error))?;
    } else {
        let mode = match entry.kind {
            EntryKind::Program => 0o755,
            EntryKind::File | EntryKind::Link | EntryKind::Submodule => 0o644,
        };
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(mode).open(&path);
        let mut file = opened.map_err(|error| entry.failed(error))?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = content.read(&mut buffer).await.map_err(lost)?;
            if read == 0 {
                break;
            }
            if start.is_empty() {
                start.extend(buffer[..read].iter().take(LFS_POINTER.len()));
            }
            file.write_all(&buffer[..read])
                .map_err(|error| entry.failed(error))?;
        }
    }
    // A newline ends each object. If git ended early, it is absent.
    match from.read_u8().await.map_err(lost)? {
        b'\n' => Ok(entry.kind != EntryKind::Link && start == LFS_POINTER),
        _ => Err(TreeError::Malformed),
    }
}

fn make_folders(root: &Path, entries: &[Entry]) -> Result<(), TreeError> {
    let mut folders: BTreeSet<&Path> = [Path::new("")].into();
    for entry in entries {
        folders.extend(entry.path.parent());
        // git leaves an empty folder for a submodule.
        folders.extend((entry.kind == EntryKind::Submodule).then_some(&*entry.path));
    }
    for folder in folders {
        fs::create_dir_all(root.join(folder)).map_err(|error| TreeError::Write {
            path: printable(&folder.to_string_lossy()).into_owned(),
            error,
        })?;
    }
    Ok(())
}

/// Parses what `git ls-tree -l -z` prints: `MODE TYPE OBJECT SIZE<TAB>PATH<NUL>`.
fn parse(listed: &[u8]) -> Result<Vec<Entry>, TreeError> {
    let mut entries = Vec::new();
    let mut all = 0;
    for record in listed.split(|byte| *byte == 0).filter(|r| !r.is_empty()) {
        let entry = entry(record)?;
        if entry.size > MAX_FILE {
            return Err(TreeError::FileTooLarge {
                path: entry.shown(),
            });
        }
        if entry.kind == EntryKind::Link && entry.size > MAX_TARGET {
            return Err(TreeError::LinkTooLong(entry.shown()));
        }
        all += entry.size;
        if all > MAX_ALL {
            return Err(TreeError::TooLarge);
        }
        entries.push(entry);
        if entries.len() > MAX_FILES {
            return Err(TreeError::TooMany);
        }
    }
    Ok(entries)
}

fn entry(record: &[u8]) -> Result<Entry, TreeError> {
    let tab = record.iter().position(|byte| *byte == b'\t');
    let (head, path) = record.split_at(tab.ok_or(TreeError::Malformed)?);
    let path = Path::new(OsStr::from_bytes(&path[1..]));
    let head = str::from_utf8(head).map_err(|_| TreeError::Malformed)?;
    let [mode, _, object, size] = head.split_ascii_whitespace().collect::<Vec<_>>()[..] else {
        return Err(TreeError::Malformed);
    };
    let kind = match mode {
        "100644" | "100664" => EntryKind::File,
        "100755" => EntryKind::Program,
        "120000" => EntryKind::Link,
        "160000" => EntryKind::Submodule,
        _ => return Err(TreeError::Malformed),
    };
    if !is_plain(path) {
        let shown = printable(&path.to_string_lossy()).into_owned();
        return Err(TreeError::Path(shown));
    }
    Ok(Entry {
        kind,
        object: object.to_owned(),
        size: match kind {
            EntryKind::Submodule => 0,
            EntryKind::File | EntryKind::Program | EntryKind::Link => {
                size.parse().map_err(|_| TreeError::Malformed)?
            }
        },
        path: path.to_owned(),
    })
}

/// Whether a path stays below its root, and out of the folder of a repository.
fn is_plain(path: &Path) -> bool {
    let is_name = |component: Component<'_>| match component {
        Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
        _ => false,
    };
    // `components` hides `.` and empty names.
    let bytes = path.as_os_str().as_bytes();
    let has_odd_name = bytes
        .split(|byte| *byte == b'/')
        .any(|name| name.is_empty() || name == b".");
    !has_odd_name && path.components().all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(listed: &str) -> Result<Vec<Entry>, String> {
        parse(listed.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_list_of_files_is_parsed() {
        let listed = "100755 blob aa      12\tbin/a b\x00160000 commit bb       -\tvendor\0";
        let entries = parsed(listed).unwrap();
        let expected = [
            Entry {
                kind: EntryKind::Program,
                object: "aa".to_owned(),
                size: 12,
                path: "bin/a b".into(),
            },
            Entry {
                kind: EntryKind::Submodule,
                object: "bb".to_owned(),
                size: 0,
                path: "vendor".into(),
            },
        ];
        assert_eq!(entries, expected);
    }

    #[test]
    fn hostile_and_huge_commits_are_refused() {
        for path in [
            "../a",
            "a/../../b",
            "/etc/passwd",
            ".git/config",
            "a/.GIT/x",
            "a//b",
            "./a",
            "",
        ] {
            let found = parsed(&format!("100644 blob aa 1\t{path}\0")).unwrap_err();
            assert!(found.starts_with("refused: the path"), "{path}: {found}");
        }
        let check = |listed: &str, expected: &str| {
            assert_eq!(parsed(listed).unwrap_err(), expected);
        };
        check(
            "100644 blob aa 268435457\tbig\0",
            "`big` is larger than 256 MiB",
        );
        check(
            "120000 blob aa 5000\tlink\0",
            "the target of the link `link` is longer than 4096 bytes",
        );
        let many = "100644 blob aa 268435456\tbig\0".repeat(5);
        check(&many, "its files are larger than 1024 MiB");
        let many = "100644 blob aa 1\ta\0".repeat(MAX_FILES + 1);
        check(&many, "it has more than 100000 files");
        let malformed = "git printed an unexpected list of files";
        check("040000 tree aa -\ta\0", malformed);
        check("100644 blob aa\ta\0", malformed);
        check("100644 blob aa 1\0", malformed);
    }
}
