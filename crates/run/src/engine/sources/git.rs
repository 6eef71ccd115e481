//! Runs git, contained like every other program.
//!
//! Its main type is [`Git`]. git gets no argument that it could take for an option, asks no question, runs no hook, and
//! uses only the protocols that a source may have. The user's own configuration stays in effect, since credential
//! helpers and proxies are set there.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_contain::process::{GRACE, Process, ProcessExit, Spawn, SpawnError};
use proctor_core::suite::Environment;
use proctor_record::duration;
use proctor_record::redact::Redactor;
use tokio::io::AsyncReadExt;
use tokio::time::{sleep, timeout};

use crate::steps::MODEL_KEYS;

/// The maximum size of git's output, apart from the contents of files.
const MAX_OUTPUT: u64 = 64 << 20;
/// The maximum size of what git downloads.
pub(super) const MAX_DOWNLOAD: u64 = 2 << 30;
/// The maximum duration of one command.
const MAX_DURATION: Duration = Duration::from_mins(30);
/// How often the size of a download is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// The variables of git that concern the user, not a repository. The others could lead git into the repository
/// that Proctor runs in, for example from a hook.
const OWN_VARIABLES: [&str; 9] = [
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
];

/// Settings that hold for every command, whatever the user's configuration says.
const SETTINGS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.askPass=",
    "core.fsmonitor=false",
    "credential.interactive=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    // A server that stops sending is an error after a minute.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
];

/// Why a command of git failed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git can't be started: {0}")]
    Start(#[from] SpawnError),
    #[error("{0}")]
    Failed(String),
    #[error("the download is larger than {} GiB", MAX_DOWNLOAD >> 30)]
    TooLarge,
    #[error("not complete after {}", duration::render(MAX_DURATION))]
    TimedOut,
    #[error("git's output can't be read: {0}")]
    Output(io::Error),
}

/// A bare repository that git works on.
pub(super) struct Git {
    env: BTreeMap<String, String>,
    guard: PathBuf,
    /// The repository.
    pub(super) folder: PathBuf,
    redactor: Redactor,
}

impl Git {
    pub(super) fn new(
        users: &Environment,
        guard: &Path,
        folder: PathBuf,
        redactor: Redactor,
    ) -> Self {
        Self {
            env: environment(users),
            guard: guard.to_owned(),
            folder,
            redactor,
        }
    }

    /// Creates the repository, without the user's template, which may have hooks.
    pub(super) async fn init(&self) -> Result<(), GitError> {
        self.run(&["init", "--quiet", "--bare", "--template="], None)
            .await
            .map(drop)
    }

    /// Fetches from another repository.
    pub(super) async fn fetch(
        &self,
        url: &str,
        wanted: &[String],
        is_shallow: bool,
    ) -> Result<(), GitError> {
        let mut words = vec![
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
        ];
        if is_shallow {
            words.push("--depth=1");
        }
        words.extend(["--", url]);
        words.extend(wanted.iter().map(String::as_str));
        self.run(&words, Some(MAX_DOWNLOAD)).await.map(drop)
    }

    /// The commit that a name stands for.
    pub(super) async fn commit(&self, name: &str) -> Result<String, GitError> {
        let name = format!("{name}^{{commit}}");
        let words = [
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &name,
        ];
        let found = self.run(&words, None).await?;
        Ok(String::from_utf8_lossy(&found).trim().to_owned())
    }

    /// Runs a command and returns its output. With a limit, the repository may not become larger.
    pub(super) async fn run(
        &self,
        words: &[&str],
        limit: Option<u64>,
    ) -> Result<Vec<u8>, GitError> {
        let mut process = self.start(words)?;
        process.stdin = None;
        let stdout = process.stdout.take();
        let mut output = Vec::new();
        let reading = async {
            if let Some(stdout) = stdout {
                stdout.take(MAX_OUTPUT).read_to_end(&mut output).await?;
            }
            Ok(())
        };
        let guarded = async {
            tokio::select! {
                read = reading => read.map_err(GitError::Output),
                () = self.outgrown(limit) => Err(GitError::TooLarge),
            }
        };
        timeout(MAX_DURATION, guarded)
            .await
            .map_err(|_| GitError::TimedOut)??;
        self.finish(process).await?;
        Ok(output)
    }

    /// Starts a command that the caller talks to.
    pub(super) fn start(&self, words: &[&str]) -> Result<Process, GitError> {
        let mut args: Vec<OsString> = vec!["--git-dir".into(), self.folder.clone().into()];
        for setting in SETTINGS {
            args.extend(["-c".into(), setting.into()]);
        }
        args.extend(words.iter().map(Into::into));
        let spawn = Spawn {
            program: "git".into(),
            args,
            env: self.env.clone(),
            // Relative paths in a URL have been resolved, so any folder will do.
            folder: self.folder.parent().unwrap_or(&self.folder).to_owned(),
            guard: self.guard.clone(),
            grace: GRACE,
        };
        Ok(spawn.start()?)
    }

    /// Waits for the end of a command, which must be a success.
    pub(super) async fn finish(&self, mut process: Process) -> Result<(), GitError> {
        let ended = timeout(MAX_DURATION, process.wait()).await;
        match ended.map_err(|_| GitError::TimedOut)? {
            ProcessExit::Exited(0) => Ok(()),
            other => {
                let said = summary(&process.stderr_tail(&self.redactor));
                Err(GitError::Failed(if said.is_empty() {
                    format!("git {other}")
                } else {
                    said
                }))
            }
        }
    }

    /// Returns when the repository exceeds the limit.
    async fn outgrown(&self, limit: Option<u64>) {
        let Some(limit) = limit else {
            return std::future::pending().await;
        };
        loop {
            sleep(LOOK).await;
            let folder = self.folder.clone();
            let size = tokio::task::spawn_blocking(move || size_of(&folder)).await;
            if size.is_ok_and(|size| size > limit) {
                return;
            }
        }
    }
}

/// The bytes of all files below a folder.
fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_of(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// The environment of git.
fn environment(users: &Environment) -> BTreeMap<String, String> {
    let is_kept = |name: &str| {
        let is_setting = ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"]
            .iter()
            .any(|start| name.starts_with(start));
        let is_foreign = name.starts_with("GIT_") || name == "SSH_ASKPASS";
        let is_own = is_setting || OWN_VARIABLES.contains(&name);
        !MODEL_KEYS.contains(&name) && (is_own || !is_foreign)
    };
    let kept = users.iter().filter(|(name, _)| is_kept(name));
    let mut env: BTreeMap<String, String> = kept.map(|(n, v)| (n.clone(), v.clone())).collect();
    for (name, value) in [
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ALLOW_PROTOCOL", "file:http:https:ssh"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("LC_ALL", "C"),
    ] {
        env.insert(name.to_owned(), value.to_owned());
    }
    // ssh would ask on the terminal, which it does not have.
    env.entry("GIT_SSH_COMMAND".to_owned())
        .or_insert_with(|| "ssh -oBatchMode=yes".to_owned());
    env
}

/// The errors of git on one line.
fn summary(stderr: &str) -> String {
    let lines = || {
        stderr
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    let is_error = |line: &&str| line.starts_with("fatal:") || line.starts_with("error:");
    let mut said: Vec<&str> = lines().filter(is_error).collect();
    if said.is_empty() {
        said = lines().collect();
        said = said.split_off(said.len().saturating_sub(3));
    }
    said.truncate(3);
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_gets_no_variable_of_a_repository_and_no_model_key() {
        let names = [
            "PATH",
            "GIT_DIR",
            "GIT_INDEX_FILE",
            "GIT_CONFIG_PARAMETERS",
            "GIT_ASKPASS",
            "SSH_ASKPASS",
            "OPENAI_API_KEY",
            "GIT_SSL_CAINFO",
            "GIT_CONFIG_KEY_0",
            "SSH_AUTH_SOCK",
            "https_proxy",
        ];
        let users = names.map(|name| (name.to_owned(), "v".to_owned())).into();
        let env = environment(&users);
        let of_users = env.iter().filter(|(_, value)| *value == "v");
        let of_users: Vec<&str> = of_users.map(|(name, _)| name.as_str()).collect();
        let expected = [
            "GIT_CONFIG_KEY_0",
            "GIT_SSL_CAINFO",
            "PATH",
            "SSH_AUTH_SOCK",
            "https_proxy",
        ];
        assert_eq!(of_users, expected);
        assert_eq!(env["GIT_TERMINAL_PROMPT"], "0");
    }

    #[test]
    fn errors_of_git_are_put_on_one_line() {
        let check = |stderr: &str, expected: &str| assert_eq!(summary(stderr), expected);
        check("warning: w\nfatal: no\n", "fatal: no");
        check("a\nb\n\nc\nd\n", "b; c; d");
        check("", "");
    }
}
