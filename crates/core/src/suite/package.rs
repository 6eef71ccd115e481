//! Packages of extensions: a local program, or one in a release of a repository.
//!
//! Main types: [`Package`] and [`ReleasePackage`]. Nothing here uses the network: a released program is either in the
//! cache, with the digest that `proctor.lock` pins, or absent.

use std::path::{Path, PathBuf};

use super::checkout::{cache_folder, file_digest};
use super::lock_file::{ExtensionPin, LockFile, ProgramPin};
use super::variables::Environment;

/// The start of the URL of a released package.
const GITHUB: &str = "https://github.com/";

/// The location of an extension's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Package {
    Local(PathBuf),
    Release(ReleasePackage),
}

/// A program in a release of a GitHub repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleasePackage {
    /// The package as written.
    pub written: String,
    pub owner: String,
    pub repo: String,
    /// The tag of the release; the latest release if absent.
    pub tag: Option<String>,
    /// Who signed the pinned release, for any platform.
    pub signer: Option<String>,
    pub state: PackageState,
}

/// Whether a released program is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageState {
    /// In the cache, with the pinned digest.
    Cached { pin: ExtensionPin, program: PathBuf },
    /// `proctor.lock` has no digest of it for this platform, and perhaps a release.
    Unpinned { release: Option<String> },
    /// Pinned, but not in the cache, or changed there.
    Missing { release: String, pin: ProgramPin },
}

impl ReleasePackage {
    /// Parses `https://github.com/OWNER/REPO[@TAG]`.
    pub fn parse(written: &str) -> Option<Self> {
        let address = written.strip_prefix(GITHUB)?;
        let (place, tag) = match address.split_once('@') {
            Some((place, tag)) => (place, Some(tag)),
            None => (address, None),
        };
        let (owner, repo) = place.trim_end_matches('/').split_once('/')?;
        let is_known = is_name(owner) && is_name(repo) && tag.is_none_or(is_release);
        is_known.then(|| Self {
            written: written.to_owned(),
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            tag: tag.map(str::to_owned),
            signer: None,
            state: PackageState::Unpinned { release: None },
        })
    }

    /// The program, if it is here.
    pub fn program(&self) -> Option<&Path> {
        match &self.state {
            PackageState::Cached { program, .. } => Some(program),
            PackageState::Unpinned { .. } | PackageState::Missing { .. } => None,
        }
    }

    /// Looks for the program in the lock file and the cache.
    #[must_use]
    pub(super) fn looked_up(mut self, lock: &LockFile, env: &Environment) -> Self {
        let Some(pin) = lock.extension(&self.written) else {
            return self;
        };
        self.signer = pin.files.values().find_map(|files| files.signer.clone());
        let release = pin.release.clone();
        self.state = match pin.files.get(&platform()) {
            None => PackageState::Unpinned {
                release: Some(release),
            },
            Some(files) => match self.cached_program(files, env) {
                Some(program) => PackageState::Cached {
                    pin: pin.clone(),
                    program,
                },
                None => PackageState::Missing {
                    release,
                    pin: files.clone(),
                },
            },
        };
        self
    }

    fn cached_program(&self, pin: &ProgramPin, env: &Environment) -> Option<PathBuf> {
        let program = self.program_path(&pin.archive, env)?;
        let digest = program.is_file().then(|| file_digest(&program))?.ok()?;
        (digest == pin.program).then_some(program)
    }

    /// The path in the cache of the program in an archive with this digest.
    pub fn program_path(&self, archive: &str, env: &Environment) -> Option<PathBuf> {
        let folder = archive.strip_prefix("sha256:")?;
        let all = cache_folder(env)?.join("extensions");
        Some(all.join(folder).join(self.program_name()))
    }

    /// The name of the program in the archive, which is the archive's name without `.zip`.
    pub fn program_name(&self) -> String {
        format!("{}-{}", self.repo, platform())
    }
}

/// This platform in Go's words, such as `linux-amd64`.
pub fn platform() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{system}-{machine}")
}

fn is_name(text: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !text.is_empty() && text.chars().all(is_known) && !text.starts_with(['.', '-'])
}

/// Whether a text is the tag of a release: it becomes a part of a URL.
pub fn is_release(text: &str) -> bool {
    !text.contains("..") && text.split('/').all(is_tag_part)
}

fn is_tag_part(part: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    !part.is_empty() && part.chars().all(is_known) && !part.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_names_an_owner_a_repository_and_perhaps_a_release() {
        let check = |written: &str, expected: Option<(&str, &str, Option<&str>)>| {
            let found = ReleasePackage::parse(written);
            let found = found.as_ref();
            let found = found.map(|p| (p.owner.as_str(), p.repo.as_str(), p.tag.as_deref()));
            assert_eq!(found, expected, "{written}");
        };
        check("https://github.com/o/r@v1", Some(("o", "r", Some("v1"))));
        check("https://github.com/o/r.x", Some(("o", "r.x", None)));
        check(
            "https://github.com/o/r/@a/v1+b",
            Some(("o", "r", Some("a/v1+b"))),
        );
        for refused in [
            "https://example.com/o/r@v1",
            "http://github.com/o/r@v1",
            "https://github.com/o",
            "https://github.com/o/r/x@v1",
            "https://github.com/o/r@",
            "https://github.com/o/r@../../x",
            "https://github.com/o/r@-v",
            "https://github.com/o/r@v1?x",
            "https://github.com/o/r@a//b",
            "https://github.com/../r@v1",
            "https://github.com/o/r%2e@v1",
        ] {
            check(refused, None);
        }
    }
}
