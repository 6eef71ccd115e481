//! A workspace: a folder whose content each trial starts with in its own folder.
//!
//! Its main type is [`Workspace`].

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use walkdir::WalkDir;

/// A folder whose content each trial starts with in its own folder.
#[derive(Debug)]
pub struct Workspace {
    pub path: PathBuf,
    /// Computed at most once, since all cases of a suite may share a large workspace.
    digest: OnceLock<Result<String, String>>,
}

impl Workspace {
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            digest: OnceLock::new(),
        }
    }

    /// The SHA-256 of its content: names, modes, bytes and targets of links; not its own path.
    pub fn digest(&self) -> io::Result<String> {
        let digest = self
            .digest
            .get_or_init(|| self.hash().map_err(|error| error.to_string()));
        digest.clone().map_err(io::Error::other)
    }

    fn hash(&self) -> io::Result<String> {
        let mut hash = Sha256::new();
        let walk = WalkDir::new(&self.path).min_depth(1).sort_by_file_name();
        for entry in walk {
            let entry = entry.map_err(|error| named(&self.path, &error))?;
            let path = entry.path();
            let failed = |error: io::Error| named(path, &error);
            let name = path.strip_prefix(&self.path).unwrap_or(path);
            add(&mut hash, name.as_os_str().as_bytes());
            let found = fs::symlink_metadata(path).map_err(failed)?;
            if found.is_symlink() {
                let target = fs::read_link(path).map_err(failed)?;
                add(&mut hash, b"link");
                add(&mut hash, target.as_os_str().as_bytes());
            } else if found.is_file() {
                add(&mut hash, b"file");
                hash.update((found.permissions().mode() & 0o777).to_le_bytes());
                hash.update(hash_of_file(path).map_err(failed)?);
            } else {
                add(&mut hash, b"folder");
            }
        }
        Ok(HEXLOWER.encode(&hash.finalize()))
    }
}

/// Adds a text with its length, so that no two lists of texts give the same bytes.
fn add(hash: &mut Sha256, text: &[u8]) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

/// Hashes a file of any size in pieces.
fn hash_of_file(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hash.finalize().into()),
            read => hash.update(&piece[..read]),
        }
    }
}

fn named(path: &Path, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("the workspace `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_part_of_the_content_changes_the_digest_and_the_place_does_not() {
        let place = tempfile::tempdir().unwrap();
        let made = |name: &str, change: &dyn Fn(&Path)| {
            let folder = place.path().join(name);
            fs::create_dir_all(folder.join("sub")).unwrap();
            fs::write(folder.join("sub/a.txt"), "a").unwrap();
            symlink("sub/a.txt", folder.join("link")).unwrap();
            change(&folder);
            Workspace::new(folder).digest().unwrap()
        };
        let original = made("original", &|_| {});
        assert_eq!(made("copy", &|_| {}), original);
        let changes: [&dyn Fn(&Path); 5] = [
            &|folder| fs::write(folder.join("sub/a.txt"), "b").unwrap(),
            &|folder| fs::rename(folder.join("sub/a.txt"), folder.join("sub/b.txt")).unwrap(),
            &|folder| fs::create_dir(folder.join("empty")).unwrap(),
            &|folder| {
                let executable = fs::Permissions::from_mode(0o755);
                fs::set_permissions(folder.join("sub/a.txt"), executable).unwrap();
            },
            &|folder| {
                fs::remove_file(folder.join("link")).unwrap();
                symlink("sub", folder.join("link")).unwrap();
            },
        ];
        for (at, change) in changes.iter().enumerate() {
            assert_ne!(made(&format!("{at}"), *change), original, "{at}");
        }
        let missing = Workspace::new(place.path().join("none")).digest();
        assert!(missing.unwrap_err().to_string().contains("none"));
    }
}
