//! Starts the fixtures for tests: programs that misbehave on demand.
//!
//! The programs are `fixture-server`, `fixture-agent`, `fixture-kubernetes` and `fixture-tee`; the
//! crate's README lists their modes.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

pub mod client;
pub mod model;
pub mod port;
pub mod regraded;
pub mod session;
pub mod suite;

pub fn fixture() -> PathBuf {
    program("fixture-server")
}

pub fn tee() -> PathBuf {
    program("fixture-tee")
}

pub fn kubernetes() -> PathBuf {
    program("fixture-kubernetes")
}

pub fn proctor() -> PathBuf {
    program("proctor")
}

/// Returns the path of a program of this workspace. Cargo builds programs into the folder of the
/// test, or into its parent.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let found = test
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(&file))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "{name} is not built beside {}; run `cargo build --workspace`",
            test.display()
        )
    })
}

/// A fixture that listens on loopback. Dropping it kills it.
pub struct Fixture {
    child: Child,
    /// Kept open, because a closed stdout would be another fault.
    _stdout: BufReader<ChildStdout>,
    url: String,
}

impl Fixture {
    /// Starts a streamable HTTP server on any port.
    pub fn http(arguments: &[&str]) -> Self {
        Self::listening("--http", arguments)
    }

    /// Starts an HTTP+SSE server on any port.
    pub fn sse(arguments: &[&str]) -> Self {
        Self::listening("--sse", arguments)
    }

    fn listening(transport: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(fixture());
        let command = command.args([transport, "0"]).args(arguments);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the fixture starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut url = String::new();
        stdout
            .read_line(&mut url)
            .expect("the fixture prints its URL");
        assert!(
            url.starts_with("http://"),
            "the fixture printed `{url}` instead of a URL"
        );
        Self {
            child,
            _stdout: stdout,
            url: url.trim().to_owned(),
        }
    }

    /// Returns its URL: `http://127.0.0.1:PORT/mcp`, or `…/sse`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        let rest = self.url.trim_start_matches("http://");
        rest.split_once('/').map_or(rest, |(address, _)| address)
    }

    /// Returns the process, for tests that wait for its end.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the lines of a fixture's log.
pub fn log_lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).expect("the log can be read");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line of the log is JSON"))
        .collect()
}
