//! Suites from recordings (`proctor init --from`) of real servers, recorded with Claude Code and with the TypeScript SDK:
//! each passes at once and again, and fails when the server is changed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use proctor_e2e::proctor;
use serde_json::{Value, json};

use super::agents::{Agent, scripted};
use super::packages::{finish, folder, program};
use super::ways::Door;

const BOUND: Duration = Duration::from_mins(2);

/// What records a session.
#[derive(Debug, Clone, Copy)]
enum Recorder {
    ClaudeCode,
    TypeScript,
}

/// A server with calls to make, and a tool of it that can be renamed.
struct Recorded {
    command: Vec<String>,
    calls: Value,
    tool: &'static str,
}

fn memory(place: &Path) -> Recorded {
    let file = place.join("memory.jsonl").display().to_string();
    let ada = json!({"name": "Ada", "entityType": "person", "observations": ["likes tea"]});
    Recorded {
        command: vec![
            "env".to_owned(),
            format!("MEMORY_FILE_PATH={file}"),
            program("node/node_modules/.bin/mcp-server-memory"),
        ],
        calls: json!([
            {"tool": "create_entities", "arguments": {"entities": [ada]}},
            {"tool": "search_nodes", "arguments": {"query": "tea"}},
            {"tool": "read_graph", "arguments": {}},
        ]),
        tool: "search_nodes",
    }
}

fn everything(_: &Path) -> Recorded {
    Recorded {
        command: vec![
            program("node/node_modules/.bin/mcp-server-everything"),
            "stdio".to_owned(),
        ],
        calls: json!([
            {"tool": "echo", "arguments": {"message": "at 2026-11-16T10:00:00Z, 'quoted' # not a comment"}},
            {"tool": "get-sum", "arguments": {"a": 2, "b": 40}},
            {"tool": "get-structured-content", "arguments": {"location": "New York"}},
            {"tool": "get-tiny-image", "arguments": {}},
        ]),
        tool: "get-sum",
    }
}

fn git(place: &Path) -> Recorded {
    let repository = place.join("repository");
    std::fs::create_dir(&repository).expect("a folder can be made");
    let git = |words: &[&str]| {
        let name = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
        let mut command = Command::new("git");
        let command = command.args(name).args(words).current_dir(&repository);
        assert!(command.status().expect("git starts").success());
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(repository.join("notes.txt"), "milk\n").expect("a file can be written");
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "Add notes"]);
    let repo_path = repository.display().to_string();
    Recorded {
        command: vec![program("python/bin/mcp-server-git")],
        calls: json!([
            {"tool": "git_status", "arguments": {"repo_path": repo_path}},
            {"tool": "git_log", "arguments": {"repo_path": repo_path, "max_count": 1}},
            {"tool": "git_show", "arguments": {"repo_path": repo_path, "revision": "HEAD"}},
        ]),
        tool: "git_log",
    }
}

/// Records a session, and gives the folder of the record.
fn record(client: Recorder, recorded: &Recorded, place: &Path) -> PathBuf {
    let out = place.join("recordings");
    let mut words = vec![proctor().display().to_string()];
    words.extend(["record", "--out"].map(str::to_owned));
    words.extend([out.display().to_string(), "--".to_owned()]);
    words.extend(recorded.command.iter().cloned());
    let output = match client {
        Recorder::TypeScript => {
            let client = folder(&["clients/calls.mjs"]);
            let told = json!({"command": words, "calls": recorded.calls}).to_string();
            let mut command = Command::new("node");
            let file = client.path().join("calls.mjs");
            finish(command.arg(file).arg(told).current_dir(place), BOUND)
        }
        Recorder::ClaudeCode => {
            let home = tempfile::tempdir().expect("a folder can be made");
            let model = scripted(home.path(), &recorded.calls);
            let door = Door::Command(words);
            let mut command = Agent::ClaudeCode.command(&door, &model.url, home.path());
            finish(command.current_dir(place), BOUND)
        }
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{client:?}: {stderr}");
    let found = std::fs::read_dir(&out).expect("there are recordings");
    let folders: Vec<PathBuf> = found.map(|entry| entry.expect("an entry").path()).collect();
    let [folder] = &folders[..] else {
        panic!("{folders:?}: {stderr}");
    };
    folder.clone()
}

fn run(place: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = finish(
        Command::new(proctor()).args(words).current_dir(place),
        BOUND,
    );
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[track_caller]
fn works(client: Recorder, server: fn(&Path) -> Recorded, expected: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let place = folder.path();
    let recorded = server(place);
    let record = record(client, &recorded, place);
    let (code, text) = run(
        place,
        &["init", "suite", "--from", &record.display().to_string()],
    );
    assert_eq!(code, Some(0), "{text}");
    let calls = recorded.calls.as_array().expect("a list").len();
    assert!(
        text.contains(&format!("the script makes {calls} recorded calls")),
        "{text}"
    );
    assert!(!text.contains("note:"), "{text}");
    let eval = std::fs::read_to_string(place.join("suite/eval.yaml")).expect("an eval file");
    for part in expected {
        assert!(eval.contains(part), "`{part}` is not in\n{eval}");
    }
    let (code, text) = run(place, &["validate", "--strict", "suite/eval.yaml"]);
    assert_eq!(code, Some(0), "{text}");
    // At once, and again on what the first run left.
    for _ in 0..2 {
        let (code, text) = run(place, &["check", "suite/eval.yaml"]);
        assert_eq!(code, Some(0), "{client:?}: {text}\n{eval}");
    }
    for mode in ["renamed", "other-results", "broken"] {
        change(place, &recorded, mode);
        let (code, text) = run(place, &["check", "suite/eval.yaml"]);
        assert!(matches!(code, Some(1 | 3)), "{mode} {code:?}: {text}");
    }
}

/// Puts a changed server into the suite.
fn change(place: &Path, recorded: &Recorded, mode: &str) {
    let file = place.join("suite/mcp-config.yaml");
    let config = std::fs::read_to_string(&file).expect("an MCP config");
    let line = config
        .lines()
        .skip_while(|line| !line.starts_with("mcpServers"));
    let name = line.skip(1).find_map(|line| line.trim().strip_suffix(':'));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/changed.mjs");
    let mut args = vec![
        script.display().to_string(),
        mode.to_owned(),
        recorded.tool.to_owned(),
    ];
    args.extend(recorded.command.iter().cloned());
    let name = name.expect("a server").trim_matches('"');
    let config = json!({"mcpServers": {name: {"command": "node", "args": args}}});
    std::fs::write(
        file,
        format!(
            "mcpServers:\n  {name}:\n    {}\n",
            config["mcpServers"][name]
        ),
    )
    .expect("a file can be written");
}

const MEMORY: [&str; 4] = [
    "server: mcp-server-memory",
    "tool: create_entities",
    "# the tool says that it changes state, so its result is not compared",
    "likes tea",
];
const EVERYTHING: [&str; 3] = [
    "# arguments.message was \"at 2026-11-16T10:00:00Z, 'quoted' # not a comment\"",
    "The sum of 2 and 40 is 42.",
    "mimeType: \"image/png\"",
];
const GIT: [&str; 3] = [
    "# arguments.repo_path was \"/",
    "On branch main",
    "It says nothing about agents",
];

#[test]
fn memory_recorded_with_claude_code() {
    works(Recorder::ClaudeCode, memory, &MEMORY);
}

#[test]
fn memory_recorded_with_typescript() {
    works(Recorder::TypeScript, memory, &MEMORY);
}

#[test]
fn everything_recorded_with_claude_code() {
    works(Recorder::ClaudeCode, everything, &EVERYTHING);
}

#[test]
fn everything_recorded_with_typescript() {
    works(Recorder::TypeScript, everything, &EVERYTHING);
}

#[test]
fn git_recorded_with_claude_code() {
    works(Recorder::ClaudeCode, git, &GIT);
}

#[test]
fn git_recorded_with_typescript() {
    works(Recorder::TypeScript, git, &GIT);
}
