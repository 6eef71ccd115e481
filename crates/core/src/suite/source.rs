//! Sources: other git repositories that task sets take tasks from.
//!
//! Main types: [`TaskSource`] and [`Repository`]. Nothing here uses the network: a source is either in the cache, at
//! the commit that `proctor.lock` pins, or its cases are missing.

use std::path::{Path, PathBuf};

use super::checkout;
use super::lock_file::{LockFile, SourcePin};
use super::variables::Environment;

/// Another git repository that provides cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSource {
    /// Its name in the suite.
    pub name: String,
    /// The repository as written.
    pub repo: String,
    pub repository: Repository,
    /// A branch, tag or commit; the repository's default branch if absent.
    pub reference: Option<String>,
    pub state: SourceState,
}

/// Whether the files of a source are here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    /// The user's own checkout.
    Given(PathBuf),
    /// In the cache, and unchanged since it was fetched.
    Cached { pin: SourcePin, root: PathBuf },
    /// `proctor.lock` has no commit for it.
    Unpinned,
    /// Pinned, but not in the cache.
    Missing(SourcePin),
    /// In the cache, but its files are no longer those of the commit.
    Changed(SourcePin),
}

impl TaskSource {
    /// The folder with its files, if it is here.
    pub fn root(&self) -> Option<&Path> {
        match &self.state {
            SourceState::Given(root) | SourceState::Cached { root, .. } => Some(root),
            SourceState::Unpinned | SourceState::Missing(_) | SourceState::Changed(_) => None,
        }
    }

    /// The commit that `proctor.lock` pins.
    pub fn pin(&self) -> Option<&SourcePin> {
        match &self.state {
            SourceState::Cached { pin, .. }
            | SourceState::Missing(pin)
            | SourceState::Changed(pin) => Some(pin),
            SourceState::Given(_) | SourceState::Unpinned => None,
        }
    }

    /// Why its files are not here.
    pub fn absence(&self) -> Option<String> {
        let name = &self.name;
        match &self.state {
            SourceState::Given(_) | SourceState::Cached { .. } => None,
            SourceState::Unpinned => Some(format!(
                "the source `{name}` is not pinned in `proctor.lock`"
            )),
            SourceState::Missing(pin) => Some(format!(
                "the source `{name}` is not in the cache at its pinned commit {}",
                pin.short()
            )),
            SourceState::Changed(pin) => Some(format!(
                "the cached files of the source `{name}` are not those of its pinned commit {}",
                pin.short()
            )),
        }
    }
}

/// Looks for a source in the lock file and the cache.
pub(super) fn look_up(
    repo: &str,
    reference: Option<&str>,
    lock: &LockFile,
    env: &Environment,
) -> SourceState {
    let Some(pin) = lock.source(repo, reference) else {
        return SourceState::Unpinned;
    };
    let Some(root) = checkout::cached_entry(env, &pin.commit).map(|entry| checkout::tree(&entry))
    else {
        return SourceState::Missing(pin.clone());
    };
    if !root.is_dir() {
        return SourceState::Missing(pin.clone());
    }
    match checkout::digest(&root) {
        Ok(digest) if digest == pin.tree => SourceState::Cached {
            pin: pin.clone(),
            root,
        },
        _ => SourceState::Changed(pin.clone()),
    }
}

/// The location of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repository {
    /// A URL, or `user@host:path`.
    Remote(String),
    /// A folder of this machine.
    Local(PathBuf),
}

/// The protocols that git may use.
const PROTOCOLS: [&str; 4] = ["https", "http", "ssh", "file"];

impl Repository {
    /// Parses the location that an eval file in `folder` has. Returns the reason and a hint if git must not get it.
    pub fn parse(written: &str, folder: &Path) -> Result<Self, (String, &'static str)> {
        const FORMS: &str = "write a URL such as `https://github.com/OWNER/REPO`, `git@HOST:PATH`, or a path that \
                             starts with `./`, `../` or `/`";
        let invalid = || (format!("invalid repository `{written}`"), FORMS);
        let is_odd = |c: char| c.is_control() || c.is_whitespace();
        if written.is_empty() || written.starts_with('-') || written.contains(is_odd) {
            return Err(invalid());
        }
        if let Some((protocol, rest)) = written.split_once("://") {
            return remote(written, protocol, rest).ok_or_else(invalid)?;
        }
        if matches!(written, "." | "..")
            || ["/", "./", "../"]
                .iter()
                .any(|start| written.starts_with(start))
        {
            return Ok(Self::Local(super::files::normalise(&folder.join(written))));
        }
        let (first, rest) = written.split_once('/').unwrap_or((written, ""));
        match first.split_once(':') {
            // `ext::COMMAND` and the like run programs.
            Some((host, path)) if !host.is_empty() && !path.starts_with([':', '-']) => {
                Ok(Self::Remote(written.to_owned()))
            }
            None if first.contains('.') && !rest.is_empty() => {
                Ok(Self::Remote(format!("https://{written}")))
            }
            Some(_) | None => Err(invalid()),
        }
    }
}

/// A URL, if its protocol and host are allowed.
fn remote(
    written: &str,
    protocol: &str,
    rest: &str,
) -> Option<Result<Repository, (String, &'static str)>> {
    if !PROTOCOLS.contains(&protocol) {
        return None;
    }
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    // git passes a host to ssh, where it must not be an option.
    if host.starts_with('-') || user.starts_with('-') || (host.is_empty() && protocol != "file") {
        return None;
    }
    if user.contains(':') {
        return Some(Err((
            "the URL of the repository contains a password".to_owned(),
            "remove it, and let git's credential helper answer",
        )));
    }
    Some(Ok(Repository::Remote(written.to_owned())))
}

/// Whether git can take this text as the name of a branch, tag or commit, and as nothing else.
pub(super) fn is_reference(text: &str) -> bool {
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\+".contains(c);
    !text.is_empty()
        && text != "@"
        && !text.contains(is_odd)
        && !["..", "@{", "//"].iter().any(|part| text.contains(part))
        && !text.starts_with(['-', '/', '.'])
        && !text.ends_with(['/', '.'])
        && text.strip_suffix(".lock").is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_locations_reach_git() {
        let check = |written: &str, expected: Option<Repository>| {
            let found = Repository::parse(written, Path::new("suites/a")).ok();
            assert_eq!(found, expected, "{written}");
        };
        let remote = |url: &str| Some(Repository::Remote(url.to_owned()));
        let local = |path: &str| Some(Repository::Local(path.into()));
        for url in [
            "https://github.com/o/r",
            "https://user@host/o/r.git",
            "ssh://git@host:22/o/r",
            "git@github.com:o/r.git",
            "host:r.git",
            "file:///srv/r.git",
        ] {
            check(url, remote(url));
        }
        check("github.com/o/r", remote("https://github.com/o/r"));
        check("../r", local("suites/r"));
        check("./r", local("suites/a/r"));
        check("/srv/r", local("/srv/r"));
        check(".", local("suites/a"));
        for refused in [
            "",
            "r",
            "o/r",
            "-uhttps://host/r",
            "--upload-pack=touch x",
            "ext::sh -c 'touch x'",
            "ext::sh",
            "fd::3",
            "ext::https://host/r",
            "ftp://host/r",
            "git://host/r",
            "ssh://-oProxyCommand=x/r",
            "ssh://-o@host/r",
            "https:///r",
            "https://user:secret@host/r",
            "host:-r",
            ":r",
            "https://host/a b",
            "https://host/\nr",
        ] {
            check(refused, None);
        }
        let (message, _) = Repository::parse("https://u:p@host/r", Path::new("")).unwrap_err();
        assert!(!message.contains("p@host"), "{message}");
    }

    #[test]
    fn only_plain_names_are_references() {
        for good in [
            "v1",
            "v1.2.0",
            "main",
            "feature/a-b",
            "refs/tags/v1",
            "1.0",
            "a@b",
        ] {
            assert!(is_reference(good), "{good}");
        }
        for bad in [
            "", "-v", "--all", "+main", "a:b", "a..b", "a b", "a~1", "a^", "refs/*", "@", "@{-1}",
            "/a", "a/", ".a", "a.lock", "a\\b", "a\n",
        ] {
            assert!(!is_reference(bad), "{bad}");
        }
    }
}
