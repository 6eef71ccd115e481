//! The example servers, started on the SDKs that `scripts/install-servers` installs.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The evals of the examples.
pub const EXAMPLE: &str = include_str!("../../../../examples/evals/evals.json");

/// A running server, and the lines it says.
pub struct Server {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    _copy: Copy,
}

impl Server {
    pub fn python() -> Self {
        Self::python_with(&[])
    }

    pub fn python_with(args: &[&str]) -> Self {
        Self::start(Copy::python(EXAMPLE), args)
    }

    pub fn typescript() -> Self {
        Self::typescript_with(&[])
    }

    pub fn typescript_with(args: &[&str]) -> Self {
        Self::start(Copy::typescript(EXAMPLE), args)
    }

    pub fn start(copy: Copy, args: &[&str]) -> Self {
        let mut child = Command::new(&copy.program)
            .args(&copy.args)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = child.stdout.take().unwrap();
        Self {
            child,
            stdin,
            lines: BufReader::new(stdout).lines(),
            _copy: copy,
        }
    }

    pub fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    pub fn next(&mut self) -> Value {
        let line = self.lines.next().expect("the server goes on").unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Sends a request, and waits for its answer.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}));
        let answer = self.next();
        assert_eq!(answer["id"], 7, "{answer}");
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An example server in a folder of its own, with evals that may be others, and how it is started.
pub struct Copy {
    pub program: PathBuf,
    pub args: Vec<String>,
    _folder: TempDir,
}

impl Copy {
    pub fn python(evals: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let files = ["python/server.py"];
        Self {
            program: cached("python/bin/python"),
            args: vec![written(&folder, evals, &files)],
            _folder: folder,
        }
    }

    /// Node looks for packages above the file, so the file is run from a folder in the cache.
    pub fn typescript(evals: &str) -> Self {
        let folder = TempDir::new_in(cached("node")).unwrap();
        let files = ["typescript/server.ts", "typescript/package.json"];
        // `tsx` itself would start another process, which would outlive it.
        let loader = cached("node/node_modules/tsx/dist/loader.mjs");
        let script = written(&folder, evals, &files);
        Self {
            program: PathBuf::from("node"),
            args: vec!["--import".to_owned(), loader.display().to_string(), script],
            _folder: folder,
        }
    }
}

/// Copies files of an example, the first of which is started, and puts evals where it looks for them.
fn written(folder: &TempDir, evals: &str, files: &[&str]) -> String {
    let to = |name: &str| folder.path().join(name);
    fs::write(to("evals.json"), evals).unwrap();
    for file in files {
        fs::create_dir_all(to(file).parent().unwrap()).unwrap();
        fs::copy(examples().join(file), to(file)).unwrap();
    }
    to(files[0]).display().to_string()
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/evals")
}

/// A file of the cache that belongs to the examples, found as `scripts/install-servers` finds the cache.
pub fn cached(path: &str) -> PathBuf {
    installed(&format!("evals/{path}"))
}

/// A file of the cache that belongs to a server or a client.
pub fn installed(path: &str) -> PathBuf {
    let variable = |name| env::var_os(name).map(PathBuf::from);
    let cache = variable("PROCTOR_TEST_CACHE").unwrap_or_else(|| {
        variable("XDG_CACHE_HOME")
            .unwrap_or_else(|| variable("HOME").unwrap().join(".cache"))
            .join("proctor-tests")
    });
    let file = cache.join(path);
    assert!(
        file.exists(),
        "`{}` is missing; run `scripts/install-servers`",
        file.display()
    );
    file
}
