//! The files of a source in the cache, and the digest that shows whether they are still those of the commit.
//!
//! Main function: [`digest`]. Scripts of a source run in its folder and may write there, so every load computes the
//! digest again: a run never uses files that an earlier run left behind.

use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use super::variables::Environment;

/// Proctor's folder in the user's cache folder: `$XDG_CACHE_HOME/proctor`, or `~/.cache/proctor`.
pub fn cache_folder(env: &Environment) -> Option<PathBuf> {
    let set = |name: &str| env.get(name).filter(|value| !value.is_empty());
    let own = set("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = own.or_else(|| Some(Path::new(set("HOME")?).join(".cache")))?;
    Some(cache.join("proctor"))
}

/// The folder of all sources in the cache.
pub fn sources_folder(env: &Environment) -> Option<PathBuf> {
    Some(cache_folder(env)?.join("sources"))
}

/// The folder of a commit in the cache.
pub fn cached_entry(env: &Environment, commit: &str) -> Option<PathBuf> {
    Some(sources_folder(env)?.join(commit))
}

/// The folder with the files of a commit.
pub fn tree(entry: &Path) -> PathBuf {
    entry.join("tree")
}

/// The digest over all files below a folder: paths, contents, links and whether files are executable. Empty folders
/// don't count, as in git.
pub fn digest(root: &Path) -> io::Result<String> {
    let mut all = Sha256::new();
    // git knows neither the order of a folder nor its other properties.
    for entry in WalkDir::new(root).min_depth(1).sort_by_file_name() {
        let entry = entry?;
        let (kind, content) = if entry.file_type().is_dir() {
            continue;
        } else if entry.file_type().is_symlink() {
            let target = fs::read_link(entry.path())?;
            ("link", Sha256::digest(target.as_os_str().as_bytes()))
        } else if entry.file_type().is_file() {
            let mode = entry.metadata()?.permissions().mode();
            let kind = if mode & 0o100 == 0 { "file" } else { "program" };
            (kind, of_file(entry.path())?)
        } else {
            // Opening a pipe would block.
            ("other", Sha256::digest([]))
        };
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let path = path.as_os_str().as_bytes();
        all.update(format!("{kind} {} ", path.len()));
        all.update(path);
        all.update(content);
    }
    Ok(sha256(all))
}

/// The SHA-256 of a file, as `proctor.lock` has it.
pub fn file_digest(path: &Path) -> io::Result<String> {
    of_file(path).map(|digest| format!("sha256:{}", HEXLOWER.encode(&digest)))
}

fn of_file(path: &Path) -> io::Result<sha2::digest::Output<Sha256>> {
    let mut file = fs::File::open(path)?;
    let mut content = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(content.finalize()),
            read => content.update(&buffer[..read]),
        }
    }
}

fn sha256(content: Sha256) -> String {
    format!("sha256:{}", HEXLOWER.encode(&content.finalize()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_change_of_a_checkout_changes_its_digest() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("tasks")).unwrap();
        fs::write(root.join("tasks/a.yaml"), "a").unwrap();
        fs::write(root.join("run.sh"), "exit 0").unwrap();
        symlink("run.sh", root.join("link")).unwrap();
        let first = digest(root).unwrap();
        assert!(first.starts_with("sha256:") && first.len() == 71, "{first}");
        let mut seen = vec![first.clone()];
        let mut changed = |what: &str, change: &dyn Fn(), back: &dyn Fn()| {
            change();
            let now = digest(root).unwrap();
            assert!(!seen.contains(&now), "{what}");
            seen.push(now);
            back();
            assert_eq!(digest(root).unwrap(), first, "{what}, undone");
        };
        let mode = |mode| fs::set_permissions(root.join("run.sh"), Permissions::from_mode(mode));
        changed(
            "a file is added",
            &|| fs::write(root.join("tasks/b.yaml"), "a").unwrap(),
            &|| fs::remove_file(root.join("tasks/b.yaml")).unwrap(),
        );
        changed(
            "a file changes",
            &|| fs::write(root.join("tasks/a.yaml"), "b").unwrap(),
            &|| fs::write(root.join("tasks/a.yaml"), "a").unwrap(),
        );
        changed(
            "a file moves",
            &|| fs::rename(root.join("tasks/a.yaml"), root.join("a.yaml")).unwrap(),
            &|| fs::rename(root.join("a.yaml"), root.join("tasks/a.yaml")).unwrap(),
        );
        changed(
            "a file becomes executable",
            &|| mode(0o755).unwrap(),
            &|| mode(0o644).unwrap(),
        );
        let link = |target: &str| {
            fs::remove_file(root.join("link")).unwrap();
            symlink(target, root.join("link")).unwrap();
        };
        changed("a link changes", &|| link("tasks/a.yaml"), &|| {
            link("run.sh");
        });
        fs::create_dir(root.join("empty")).unwrap();
        assert_eq!(digest(root).unwrap(), first);
    }
}
