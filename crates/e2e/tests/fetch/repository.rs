//! A git repository on this machine, and a suite that takes its tasks from there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use proctor_e2e::session::Session;
use proctor_e2e::suite::{ECHO_IF_GOOD, SuiteFixture};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A repository with a branch `main`.
pub struct Repository {
    folder: TempDir,
}

impl Repository {
    pub fn new() -> Self {
        let repository = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs git in the repository, without the configuration of the user. Returns what it prints.
    pub fn git(&self, words: &[&str]) -> String {
        self.git_with(words, b"")
    }

    pub fn git_with(&self, words: &[&str], input: &[u8]) -> String {
        use std::io::Write;
        let mut git = Command::new("git")
            .args(words)
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs([
                ("GIT_AUTHOR_NAME", "A"),
                ("GIT_AUTHOR_EMAIL", "a@example.test"),
            ])
            .envs([
                ("GIT_COMMITTER_NAME", "A"),
                ("GIT_COMMITTER_EMAIL", "a@example.test"),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        git.stdin.take().unwrap().write_all(input).unwrap();
        let output = git.wait_with_output().unwrap();
        assert!(output.status.success(), "git {words:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a task whose prompt is this text.
    pub fn task(&self, prompt: &str) {
        self.write("tasks/task.yaml", &task(prompt));
    }

    /// Commits everything and moves the tag `v1` there. Returns the commit.
    pub fn release(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", "change"]);
        self.git(&["tag", "--force", "-m", "release", "v1"]);
        self.git(&["rev-parse", "HEAD"])
    }
}

/// A task whose prompt is this text. The scripted model calls `echo` if it contains `good`.
pub fn task(prompt: &str) -> String {
    let spec = json!({"prompt": {"inline": prompt}});
    json!({"kind": "Task", "apiVersion": "mcpchecker/v1alpha2", "metadata": {"name": "task"}, "spec": spec})
        .to_string()
}

/// A suite with the source `shared`, and a cache of its own.
pub struct Stage {
    pub suite: SuiteFixture,
    pub cache: TempDir,
}

impl Stage {
    /// A suite whose tasks come from `repo` at `v1`.
    pub fn at(repo: &str) -> Self {
        Self::with(&json!({"repo": repo, "ref": "v1"}), &json!({}))
    }

    pub fn with(source: &Value, set: &Value) -> Self {
        let stage = Self {
            suite: SuiteFixture::new(ECHO_IF_GOOD, &[]),
            cache: tempfile::tempdir().unwrap(),
        };
        stage.eval(source, set);
        stage
    }

    pub fn eval(&self, source: &Value, set: &Value) {
        let used = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
        let mut all = json!({"source": "shared", "assertions": used});
        for (key, value) in set.as_object().unwrap() {
            all[key] = value.clone();
        }
        if all.get("path").is_none() && all.get("glob").is_none() {
            all["glob"] = json!("tasks/*.yaml");
        }
        let config = json!({"sources": {"shared": source}, "taskSets": [all]});
        self.suite.eval(&config, &json!({}));
    }

    pub fn cache(&self) -> String {
        self.cache.path().display().to_string()
    }

    /// `proctor check` with these arguments.
    pub fn check(&self, words: &[&str]) -> Session {
        self.suite
            .check(words)
            .env("XDG_CACHE_HOME", &self.cache())
            .env("GIT_CONFIG_NOSYSTEM", "1")
    }

    /// Any other command, in the folder of the suite.
    pub fn proctor(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(proctor_e2e::proctor());
        command
            .args(words)
            .current_dir(self.suite.folder())
            .env("XDG_CACHE_HOME", self.cache())
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    /// The lock file, or nothing.
    pub fn lock(&self) -> String {
        fs::read_to_string(self.suite.path("proctor.lock")).unwrap_or_default()
    }

    /// What is in the cache of sources: commits, and what an interrupted fetch left.
    pub fn cached(&self) -> Vec<String> {
        let folder = self.cache.path().join("proctor/sources");
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// The files of a commit in the cache.
    pub fn tree(&self, commit: &str) -> PathBuf {
        self.cache
            .path()
            .join("proctor/sources")
            .join(commit)
            .join("tree")
    }
}

/// Exit code and output of a command.
pub fn said(output: &Output) -> (Option<i32>, String) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    (output.status.code(), format!("{stdout}{stderr}"))
}

/// A command failed with a configuration error that says this.
pub fn refused(output: &Output, expected: &str) {
    let (code, text) = said(output);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains(expected), "{text}\nexpected: {expected}");
}
