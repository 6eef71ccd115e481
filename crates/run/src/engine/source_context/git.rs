//! Reads HEAD of a repository as git writes it: in `.git`, in the `.git` file of a worktree, in
//! loose and packed refs.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};

/// The maximum size of a file with one ref or path.
const LONGEST: u64 = 4096;

/// How much of `packed-refs` is read.
const MOST_REFS: u64 = 64 << 20;

/// The maximum number of symbolic refs to follow, the same as git's.
const DEPTH: usize = 5;

/// What HEAD points to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) commit: Option<String>,
    pub(super) branch: Option<String>,
}

/// HEAD of the repository that contains this folder.
pub(super) fn head(folder: &Path) -> Option<Head> {
    let folder = folder.canonicalize().ok()?;
    let git = folder.ancestors().find_map(git_folder)?;
    let shared = match line(&git.join("commondir")) {
        Some(path) => git.join(path),
        None => git.clone(),
    };
    let mut text = line(&git.join("HEAD"))?;
    let branch = symbolic(&text).and_then(|name| name.strip_prefix("refs/heads/"));
    let branch = branch.map(str::to_owned);
    for _ in 0..DEPTH {
        let Some(name) = symbolic(&text) else {
            let commit = Some(text).filter(|text| is_hash(text));
            return Some(Head { commit, branch });
        };
        let found = line(&shared.join(name)).or_else(|| packed(&shared, name));
        let Some(found) = found else { break };
        text = found;
    }
    let commit = None;
    Some(Head { commit, branch })
}

/// The repository's git folder, if it belongs to this folder. Worktrees and submodules name it in a
/// file.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let named = line(&git)?;
    let path = named.strip_prefix("gitdir:")?.trim();
    Some(folder.join(path))
}

/// The only line of a short file. Links and pipes are ignored, since git creates none here.
fn line(path: &Path) -> Option<String> {
    let is_file = path.symlink_metadata().ok()?.is_file();
    let mut bytes = Vec::new();
    let file = is_file.then(|| File::open(path).ok())??;
    file.take(LONGEST + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > LONGEST {
        return None;
    }
    let text = String::from_utf8(bytes).ok()?;
    let text = text.trim_end_matches(['\n', '\r']);
    let is_plain = !text.is_empty() && !text.chars().any(char::is_control);
    is_plain.then(|| text.to_owned())
}

/// The target of a symbolic ref, if its name can't lead out of the repository.
fn symbolic(text: &str) -> Option<&str> {
    let name = text.strip_prefix("ref:")?.trim();
    let is_plain = |part: Component<'_>| match part {
        // No part of a ref starts with a dot; `.invalid` marks refs that are stored elsewhere.
        Component::Normal(part) => !part.as_encoded_bytes().starts_with(b"."),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            false
        }
    };
    let is_ref = name.starts_with("refs/") && Path::new(name).components().all(is_plain);
    is_ref.then_some(name)
}

/// A ref in `packed-refs`.
fn packed(shared: &Path, name: &str) -> Option<String> {
    let path = shared.join("packed-refs");
    let is_file = path.symlink_metadata().ok()?.is_file();
    let file = is_file.then(|| File::open(path).ok())??;
    let mut lines = BufReader::new(file.take(MOST_REFS)).split(b'\n');
    lines.find_map(|line| {
        let line = String::from_utf8(line.ok()?).ok()?;
        let (hash, found) = line.split_once(' ')?;
        (found == name && is_hash(hash)).then(|| hash.to_owned())
    })
}

fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    /// A folder with these files in its `.git`.
    fn repository(files: &[(&str, &str)]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(".git").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn check(folder: &Path, branch: Option<&str>, commit: Option<&str>) {
        let found = head(folder).expect("a HEAD");
        let found = (found.branch.as_deref(), found.commit.as_deref());
        assert_eq!(found, (branch, commit));
    }

    #[test]
    fn a_branch_is_followed_to_its_commit() {
        let commit = format!("{COMMIT}\n");
        let packed = format!("# pack-refs with: peeled \n{COMMIT} refs/heads/a/b\n^{COMMIT}\n");
        for files in [
            [
                ("HEAD", "ref: refs/heads/a/b\n"),
                ("refs/heads/a/b", &*commit),
            ],
            [("HEAD", "ref: refs/heads/a/b\n"), ("packed-refs", &*packed)],
        ] {
            let folder = repository(&files);
            let below = folder.path().join("x/y");
            fs::create_dir_all(&below).unwrap();
            check(&below, Some("a/b"), Some(COMMIT));
        }
    }

    #[test]
    fn a_loose_ref_is_newer_than_a_packed_one() {
        let packed = format!("{} refs/heads/main\n", COMMIT.replace('0', "f"));
        let commit = format!("{COMMIT}\n");
        let folder = repository(&[
            ("HEAD", "ref: refs/heads/main\n"),
            ("refs/heads/main", &commit),
            ("packed-refs", &packed),
        ]);
        check(folder.path(), Some("main"), Some(COMMIT));
    }

    #[test]
    fn a_detached_head_has_a_commit_and_no_branch() {
        let long = COMMIT.repeat(2)[..64].to_owned();
        for commit in [COMMIT, &long] {
            let folder = repository(&[("HEAD", &format!("{commit}\n"))]);
            check(folder.path(), None, Some(commit));
        }
    }

    #[test]
    fn a_new_branch_has_no_commit() {
        let folder = repository(&[("HEAD", "ref: refs/heads/main\n")]);
        check(folder.path(), Some("main"), None);
    }

    #[test]
    fn a_worktree_has_its_own_head_and_the_shared_refs() {
        let commit = format!("{COMMIT}\n");
        let main = repository(&[
            ("HEAD", "ref: refs/heads/main\n"),
            ("refs/heads/side", &commit),
            ("worktrees/w/HEAD", "ref: refs/heads/side\n"),
            ("worktrees/w/commondir", "../..\n"),
        ]);
        let worktree = tempfile::tempdir().unwrap();
        let own = main.path().join(".git/worktrees/w");
        let text = format!("gitdir: {}\n", own.display());
        fs::write(worktree.path().join(".git"), text).unwrap();
        check(worktree.path(), Some("side"), Some(COMMIT));
    }

    #[test]
    fn without_a_repository_there_is_no_head() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(head(folder.path()), None);
        assert_eq!(head(&folder.path().join("none")), None);
    }

    #[test]
    fn a_head_that_git_did_not_write_is_ignored() {
        let huge = format!("ref: refs/heads/{}", "a".repeat(1 << 20));
        for text in [&*huge, "", "\n", "ref: refs/heads/a\u{1b}[2J\n"] {
            let folder = repository(&[("HEAD", text)]);
            assert_eq!(head(folder.path()), None);
        }
        for text in [
            "ref: ../../etc/passwd\n",
            "ref: refs/heads/../../../secret\n",
            "ref: /etc/passwd\n",
            "ref: refs/heads/.invalid\n",
            "not a hash\n",
        ] {
            let folder = repository(&[("HEAD", text), ("../secret", COMMIT)]);
            check(folder.path(), None, None);
        }
        let folder = repository(&[("other", COMMIT)]);
        let path = folder.path().join(".git/HEAD");
        fs::write(&path, b"ref: refs/heads/\xff\n").unwrap();
        assert_eq!(head(folder.path()), None);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("other", &path).unwrap();
        assert_eq!(head(folder.path()), None);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(head(folder.path()), None);
    }

    #[test]
    fn circular_refs_have_no_commit() {
        let folder = repository(&[
            ("HEAD", "ref: refs/heads/a\n"),
            ("refs/heads/a", "ref: refs/heads/b\n"),
            ("refs/heads/b", "ref: refs/heads/a\n"),
        ]);
        check(folder.path(), Some("a"), None);
    }
}
