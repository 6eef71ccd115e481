//! `proctor evals serve`, from outside: a server that can't ship evals ships some, and nothing else is
//! different.

mod changes;
mod clients;
mod faults;
mod http;
mod spoken;
mod transparency;

use std::path::Path;
use std::process::{Command, Output};

use proctor_e2e::{Fixture, fixture, log_lines, proctor};
use serde_json::{Value, json};
use tempfile::TempDir;

use self::spoken::SpokenSession;
use crate::servers::installed;
use crate::shipping::{calls, content, eval};

/// A folder with evals.
pub struct Shelf {
    folder: TempDir,
}

impl Shelf {
    pub fn new(evals: &[Value]) -> Self {
        let shelf = Self {
            folder: TempDir::new().unwrap(),
        };
        shelf.write(&json!(evals).to_string());
        shelf
    }

    /// With one eval, which is valid.
    pub fn of(id: &str) -> Self {
        Self::new(&[one(id)])
    }

    pub fn write(&self, text: &str) {
        // As an editor does: never half a file.
        let new = self.folder.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.path("evals.yaml")).unwrap();
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The words that serve these evals in front of a command.
    pub fn serving(&self, command: &[String]) -> Vec<String> {
        let words = ["evals", "serve", "--evals", &self.path("evals.yaml"), "--"];
        let proctor = proctor().display().to_string();
        let words = words.iter().map(ToString::to_string);
        std::iter::once(proctor)
            .chain(words)
            .chain(command.iter().cloned())
            .collect()
    }
}

pub fn one(id: &str) -> Value {
    let text =
        r#"[{"type":"text","text":"3","x-unknown":{"n":12345678901234567890,"z":1.5,"a":100}}]"#;
    eval(id, &calls("add", &json!({"a": 1, "b": 2})), &content(text))
}

pub fn fixture_with(words: &[&str]) -> Vec<String> {
    let mut command = vec![fixture().display().to_string()];
    command.extend(words.iter().map(ToString::to_string));
    command
}

pub fn everything() -> Vec<String> {
    let program = installed("node/node_modules/.bin/mcp-server-everything");
    vec![program.display().to_string(), "stdio".to_owned()]
}

pub fn memory() -> Vec<String> {
    let program = installed("node/node_modules/.bin/mcp-server-memory");
    vec![program.display().to_string()]
}

pub fn git() -> Vec<String> {
    let program = installed("python/bin/mcp-server-git");
    vec![program.display().to_string()]
}

fn run(words: &[&str], command: &[String], place: &Path) -> Output {
    let mut all = Command::new(proctor());
    all.args(words).arg("--").args(command).current_dir(place);
    all.env("MEMORY_FILE_PATH", place.join("memory.jsonl"));
    all.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Writes evals from a server's tools, and runs them as if the server shipped them.
fn init_and_run(command: &[String]) {
    let shelf = Shelf::new(&[]);
    let place = tempfile::tempdir().unwrap();
    let made = Command::new("git")
        .args(["init", "--quiet", "--initial-branch=main"])
        .current_dir(place.path())
        .status();
    assert!(made.unwrap().success());
    let file = shelf.path("evals.yaml");
    std::fs::remove_file(&file).unwrap();
    let written = run(
        &["evals", "init", "--yes", "--out", &file],
        command,
        place.path(),
    );
    assert!(written.status.success(), "{}", text(&written.stderr));
    let served = shelf.serving(command);
    let listed = run(&["evals", "list", "-o", "json"], &served, place.path());
    assert!(listed.status.success(), "{}", text(&listed.stderr));
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let shown = &listed["servers"][0];
    assert_eq!(shown["capability"].as_array().unwrap().len(), 3, "{shown}");
    assert_eq!(shown["listChanged"], true);
    let words = [
        "evals",
        "run",
        "--yes",
        "--level",
        "execution",
        "-o",
        "json",
    ];
    let ran = run(&words, &served, place.path());
    assert!(
        ran.status.success(),
        "{}{}",
        text(&ran.stdout),
        text(&ran.stderr)
    );
    let ran: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert!(!ran["results"].as_array().unwrap().is_empty());
}

#[test]
fn e35_server_everything_ships_what_is_written_for_it() {
    init_and_run(&everything());
}

#[test]
fn e35_memory_ships_what_is_written_for_it() {
    init_and_run(&memory());
}

#[test]
fn e35_mcp_server_git_ships_what_is_written_for_it() {
    init_and_run(&git());
}

#[test]
fn e35_a_fixture_of_each_era_ships_what_passes() {
    for era in ["handshake", "stateless"] {
        let shelf = Shelf::of("adds");
        let served = shelf.serving(&fixture_with(&["--era", era]));
        let ran = run(&["evals", "run", "--yes"], &served, Path::new("/"));
        assert!(
            ran.status.success(),
            "{era}: {}{}",
            text(&ran.stdout),
            text(&ran.stderr)
        );
    }
}

#[test]
fn e35_a_server_with_evals_of_its_own_ships_ours() {
    let shelf = Shelf::of("ours");
    let log = shelf.path("log");
    let fixture = fixture_with(&[
        "--mode",
        "evals-page=1",
        "--log",
        &log,
        "--era",
        "handshake",
    ]);
    let mut spoken = SpokenSession::start(&shelf.serving(&fixture));
    let capabilities = spoken.initialize()["result"]["capabilities"].clone();
    assert_eq!(capabilities["evals"]["listChanged"], true, "{capabilities}");
    let listed = spoken.ask("evals/list", &json!({}));
    assert_eq!(crate::ids(&listed), ["ours"]);
    let seen = spoken.finish();
    let told = format!(
        "warning: the server ships its own evals; `{}` replaces them\n",
        shelf.path("evals.yaml")
    );
    assert_eq!(seen.stderr, told);
    let lines = log_lines(Path::new(&log));
    assert!(
        !lines
            .iter()
            .any(|line| line.to_string().contains("evals/list"))
    );
}

#[test]
fn e35_a_file_with_mistakes_is_not_served() {
    let shelf = Shelf::new(&[]);
    shelf.write("evals:\n  - id: a\n    name: A\n");
    let ran = run(
        &["evals", "serve", "--evals", &shelf.path("evals.yaml")],
        &["false".to_owned()],
        Path::new("/"),
    );
    assert_eq!(ran.status.code(), Some(2));
    assert_eq!(text(&ran.stdout), "");
    let said = text(&ran.stderr);
    assert!(
        said.contains("evals.yaml:2:5") && said.contains(": 3 errors\n"),
        "{said}"
    );
    let missing = run(
        &["evals", "serve", "--evals", "/nowhere.yaml"],
        &["false".to_owned()],
        Path::new("/"),
    );
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn e35_warnings_do_not_keep_evals_from_being_served() {
    let mut secret = one("warned");
    secret["input"]["arguments"]["password"] = json!("hunter2!");
    let shelf = Shelf::new(&[secret]);
    let mut spoken = SpokenSession::start(&shelf.serving(&fixture_with(&["--era", "handshake"])));
    spoken.initialize();
    assert_eq!(
        crate::ids(&spoken.ask("evals/list", &json!({}))),
        ["warned"]
    );
    assert!(spoken.finish().stderr.contains("looks like a secret"));
}

#[test]
fn e35_without_a_server_it_says_what_is_missing() {
    let shelf = Shelf::of("a");
    let words = ["evals", "serve", "--evals", &shelf.path("evals.yaml")];
    let ran = Command::new(proctor()).args(words).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    assert!(
        text(&ran.stderr).contains("no server given"),
        "{}",
        text(&ran.stderr)
    );
}

/// Serves evals in front of a fixture that listens, and gives the address.
pub struct ListeningServer {
    spoken: SpokenSession,
    pub url: String,
    _fixture: Option<Fixture>,
}

impl ListeningServer {
    pub fn before(shelf: &Shelf, fixture: Fixture, words: &[&str]) -> Self {
        let url = fixture.url().to_owned();
        Self {
            _fixture: Some(fixture),
            ..Self::at(shelf, &url, words)
        }
    }

    pub fn at(shelf: &Shelf, url: &str, words: &[&str]) -> Self {
        let mut command = shelf.serving(&[]);
        command.pop();
        command.extend(["--url", url].map(str::to_owned));
        command.extend(words.iter().map(ToString::to_string));
        let mut spoken = SpokenSession::start(&command);
        let url = text(&spoken.line()).trim().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Self {
            spoken,
            url,
            _fixture: None,
        }
    }

    /// Waits until stderr has a text.
    pub fn wait_for(&self, text: &str) {
        self.spoken.wait_for(text);
    }

    pub fn finish(self) -> spoken::ServeOutcome {
        self.spoken.terminate()
    }
}
