//! The official SDK clients, unchanged, through every proxy: what they see is what they see without one.
//!
//! What is not here, and why: mcp-server-git has no HTTP, so nothing can stand before its URL;
//! server-everything speaks the handshake era only; the older HTTP+SSE has no session by streamable HTTP, so
//! `evals serve` does not offer it. The stateless era is that of mcp-server-git and of our own fixture.

use std::process::Command;
use std::time::Duration;

use proctor_e2e::{Fixture, fixture};
use proctor_record::transcript::{Call, CallOutcome, CallRequest};
use proctor_wire::proxy::Admission;
use serde_json::{Value, json};

use super::packages::{cached, finish, folder, program};
use super::ways::{Door, ListeningServer, ProxyRoute, RecordedMessages};

/// How long a session may take.
const BOUND: Duration = Duration::from_mins(5);

const PROXIES: [ProxyRoute; 5] = [
    ProxyRoute::Relay,
    ProxyRoute::Reverse(Admission::Header),
    ProxyRoute::Bridge(Admission::Header),
    ProxyRoute::Record,
    ProxyRoute::Serve,
];

/// A client, and the era that it asks for first.
#[derive(Debug, Clone, Copy)]
enum Client {
    TypeScript1,
    /// In the stateless era, if the server speaks it.
    TypeScript2,
    /// The same.
    Python,
    /// In the handshake era.
    OldPython,
}

/// A session, the server that it is for, and what its record must have.
struct SdkSession {
    session: &'static str,
    server: Door,
    calls: &'static [&'static str],
    /// The call that is given up.
    cancelled: Option<usize>,
}

impl Client {
    /// Plays a session through a door; gives what it told.
    fn play(
        self,
        session: &str,
        repository: &str,
        door: &Door,
        within: &std::path::Path,
    ) -> Vec<String> {
        let files = match self {
            Self::TypeScript1 => ["clients/typescript-1.mjs", "clients/session.mjs"],
            Self::TypeScript2 => ["clients/typescript-2.mjs", "clients/session.mjs"],
            Self::Python | Self::OldPython => ["clients/python.py", "clients/session.mjs"],
        };
        let mode = match self {
            Self::TypeScript2 | Self::Python => "auto",
            Self::TypeScript1 | Self::OldPython => "legacy",
        };
        let own = folder(&files);
        let mut task = door.task();
        task["session"] = json!(session);
        task["repository"] = json!(repository);
        task["mode"] = json!(mode);
        let (runner, file) = match self {
            Self::Python | Self::OldPython => (cached("evals/python/bin/python"), "python.py"),
            Self::TypeScript1 => ("node".into(), "typescript-1.mjs"),
            Self::TypeScript2 => ("node".into(), "typescript-2.mjs"),
        };
        let mut command = Command::new(runner);
        let command = command.arg(own.path().join(file)).arg(task.to_string());
        let output = finish(command.current_dir(within), BOUND);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{self:?} {door:?}: {said}\n{stderr}"
        );
        said.lines().map(str::to_owned).collect()
    }
}

/// What a client told, but for what `evals serve` is there to add.
fn without_splice(lines: &[String]) -> Vec<String> {
    let without = |line: &String| {
        let mut line: Value = serde_json::from_str(line).expect("a client tells JSON");
        if line["step"] == "server" {
            let capabilities = &mut line["result"]["capabilities"];
            for (group, key) in [
                ("experimental", "evals"),
                ("extensions", "dev.mcp-proctor/evals"),
            ] {
                let members = capabilities[group].as_object_mut();
                let removed = members.and_then(|members| members.shift_remove(key));
                assert!(
                    removed.is_some(),
                    "nothing was added to `{group}`: {capabilities}"
                );
                if capabilities[group]
                    .as_object()
                    .is_some_and(serde_json::Map::is_empty)
                {
                    let all = capabilities.as_object_mut().expect("it was one");
                    all.shift_remove(group);
                }
            }
        }
        line.to_string()
    };
    lines.iter().map(without).collect()
}

/// What was asked for, in a word.
fn word(call: &Call) -> &str {
    match &call.request {
        CallRequest::Tool { name, .. } | CallRequest::Prompt { name, .. } => name,
        CallRequest::Resource { uri } => uri,
    }
}

impl SdkSession {
    /// Direct, and through every proxy that there is for the server, at once.
    fn on(&self, client: Client, repository: &str) {
        let direct = self.through(ProxyRoute::Direct, client, repository);
        assert!(direct.len() > 8, "{direct:#?}");
        std::thread::scope(|scope| {
            for way in PROXIES.into_iter().filter(|way| way.leads_to(&self.server)) {
                let direct = &direct;
                scope.spawn(move || {
                    let mut told = self.through(way, client, repository);
                    let mut expected = direct.clone();
                    if way == ProxyRoute::Serve {
                        told = without_splice(&told);
                        expected = expected.iter().map(|line| reprinted(line)).collect();
                    }
                    for (told, expected) in told.iter().zip(&expected) {
                        if !is_http_own(client, way, told) {
                            assert_eq!(told, expected, "{client:?} {way:?} {}", self.session);
                        }
                    }
                    assert_eq!(told.len(), expected.len(), "{client:?} {way:?}");
                });
            }
        });
    }

    fn through(&self, way: ProxyRoute, client: Client, repository: &str) -> Vec<String> {
        let opened = way.open(&self.server);
        let told = client.play(self.session, repository, &opened.door, opened.folder());
        if let Some(kept) = opened.close() {
            self.check(&kept, &format!("{client:?} {way:?} {}", self.session));
        }
        told
    }

    /// A client that looks for the era with another process has two records: one of them has the calls.
    fn check(&self, kept: &RecordedMessages, place: &str) {
        let calls = kept.calls();
        let words: Vec<&str> = calls.iter().map(|call| word(call)).collect();
        assert_eq!(words, self.calls, "{place}");
        for (at, call) in calls.iter().enumerate() {
            let is_answered = !matches!(call.answer, CallOutcome::None);
            let is_given_up = self.cancelled == Some(at);
            assert!(is_answered || is_given_up, "{place}: {call:?}");
        }
        for trial in &kept.trials {
            assert!(trial.ended.is_some(), "{place}: the record has no end");
            assert!(trial.torn.is_none(), "{place}");
        }
    }
}

/// Whether a line tells what HTTP is, and not what stands between: an unknown method of the stateless era is a
/// 404 there, and this client tells that, with the server's answer in it.
fn is_http_own(client: Client, way: ProxyRoute, told: &str) -> bool {
    matches!((client, way), (Client::TypeScript2, ProxyRoute::Bridge(_)))
        && told.contains(r#""step":"unknown method""#)
        && told.contains(r#"\"code\":-32601"#)
}

/// As [`without_splice`] prints it.
fn reprinted(line: &str) -> String {
    let line: Value = serde_json::from_str(line).expect("a client tells JSON");
    line.to_string()
}

fn everything(server: Door) -> SdkSession {
    SdkSession {
        session: "everything",
        server,
        calls: &[
            "echo",
            "get-sum",
            "get-structured-content",
            "get-sum",
            "trigger-long-running-operation",
            "trigger-long-running-operation",
            "trigger-sampling-request",
            "trigger-elicitation-request",
            "demo://resource/static/document/features.md",
            "args-prompt",
            "demo://nowhere",
            "no-such-prompt",
            "no-such-tool",
        ],
        cancelled: Some(4),
    }
}

fn everything_on_stdio(client: Client) {
    let file = program("node/node_modules/.bin/mcp-server-everything");
    everything(Door::Command(vec![file, "stdio".to_owned()])).on(client, "");
}

fn everything_on_http(client: Client) {
    let server = ListeningServer::everything("streamableHttp");
    everything(Door::http(&server.url)).on(client, "");
}

fn everything_on_the_older_http(client: Client) {
    let server = ListeningServer::everything("sse");
    everything(Door::sse(&server.url)).on(client, "");
}

fn git_on_stdio(client: Client) {
    let repository = tempfile::tempdir().expect("a folder can be made");
    let git = |words: &[&str]| {
        let status = Command::new("git")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
            .args(words)
            .current_dir(repository.path())
            .status()
            .expect("git starts");
        assert!(status.success(), "git {words:?}");
    };
    git(&["init", "--quiet"]);
    std::fs::write(repository.path().join("file"), "text\n").expect("a file can be written");
    git(&["add", "file"]);
    git(&["commit", "--quiet", "-m", "first"]);
    let play = SdkSession {
        session: "git",
        server: Door::Command(vec![program("python/bin/mcp-server-git")]),
        calls: &[
            "git_status",
            "git_log",
            "git_show",
            "git_status",
            "git_log",
            "no-such-tool",
        ],
        cancelled: None,
    };
    play.on(client, repository.path().to_str().expect("a path is text"));
}

/// The rounds of one call are one call.
const FIXTURE: &[&str] = &[
    "echo",
    "ask",
    "ask",
    "fixture://text",
    "greet",
    "no-such-tool",
];

fn fixture_on_both(client: Client) {
    let play = |server| SdkSession {
        session: "fixture",
        server,
        calls: FIXTURE,
        cancelled: None,
    };
    play(Door::Command(vec![fixture().display().to_string()])).on(client, "");
    let server = Fixture::http(&[]);
    play(Door::http(server.url())).on(client, "");
}

#[test]
fn typescript_1_with_everything_on_stdio() {
    everything_on_stdio(Client::TypeScript1);
}

#[test]
fn typescript_1_with_everything_on_http() {
    everything_on_http(Client::TypeScript1);
    everything_on_the_older_http(Client::TypeScript1);
}

#[test]
fn typescript_1_with_git() {
    git_on_stdio(Client::TypeScript1);
}

#[test]
fn typescript_2_with_everything_on_stdio() {
    everything_on_stdio(Client::TypeScript2);
}

#[test]
fn typescript_2_with_everything_on_http() {
    everything_on_http(Client::TypeScript2);
}

#[test]
fn typescript_2_with_git() {
    git_on_stdio(Client::TypeScript2);
}

#[test]
fn typescript_2_with_a_stateless_server_that_asks() {
    fixture_on_both(Client::TypeScript2);
}

#[test]
fn python_with_everything_on_stdio() {
    everything_on_stdio(Client::Python);
}

#[test]
fn python_with_everything_on_http() {
    everything_on_http(Client::Python);
    everything_on_the_older_http(Client::OldPython);
}

#[test]
fn python_with_git() {
    git_on_stdio(Client::Python);
}

#[test]
fn python_with_a_stateless_server_that_asks() {
    fixture_on_both(Client::Python);
}
