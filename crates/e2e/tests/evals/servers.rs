//! The example servers, started on the SDKs that `scripts/install-servers` installs.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A running server, and the lines it says.
pub struct Server {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    _folder: Option<TempDir>,
}

impl Server {
    pub fn python() -> Self {
        Self::python_with(&[])
    }

    pub fn python_with(args: &[&str]) -> Self {
        let script = examples().join("python/server.py");
        let mut all = vec![script.to_str().unwrap()];
        all.extend(args);
        Self::start(&cached("python/bin/python"), &all, None)
    }

    pub fn typescript() -> Self {
        Self::typescript_with(&[])
    }

    /// Node looks for packages above the file, so the file is run from a folder in the cache.
    pub fn typescript_with(args: &[&str]) -> Self {
        // `tsx` itself would start another process, which would outlive it.
        let loader = cached("node/node_modules/tsx/dist/loader.mjs");
        let folder = TempDir::new_in(cached("node")).unwrap();
        let inside = folder.path().join("typescript");
        fs::create_dir(&inside).unwrap();
        for (from, to) in [
            ("evals.json", "evals.json"),
            ("typescript/package.json", "typescript/package.json"),
            ("typescript/server.ts", "typescript/server.ts"),
        ] {
            fs::copy(examples().join(from), folder.path().join(to)).unwrap();
        }
        let script = inside.join("server.ts");
        let mut all = vec![
            "--import",
            loader.to_str().unwrap(),
            script.to_str().unwrap(),
        ];
        all.extend(args);
        Self::start(Path::new("node"), &all, Some(folder))
    }

    fn start(program: &Path, args: &[&str], folder: Option<TempDir>) -> Self {
        let mut child = Command::new(program)
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
            _folder: folder,
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

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/evals")
}

/// A file of the cache, found as `scripts/install-servers` finds the cache.
fn cached(path: &str) -> PathBuf {
    let variable = |name| env::var_os(name).map(PathBuf::from);
    let cache = variable("PROCTOR_TEST_CACHE").unwrap_or_else(|| {
        variable("XDG_CACHE_HOME")
            .unwrap_or_else(|| variable("HOME").unwrap().join(".cache"))
            .join("proctor-tests")
    });
    let file = cache.join("evals").join(path);
    assert!(
        file.exists(),
        "`{}` is missing; run `scripts/install-servers`",
        file.display()
    );
    file
}
